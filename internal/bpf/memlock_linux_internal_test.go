package bpf

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// TestCharged: whether the limit could be lifted or not, the error is that of
// the call, without what cilium/ebpf guesses of it.
func TestCharged(t *testing.T) {
	old := liftMemlock
	defer func() { liftMemlock = old }()
	for _, lifted := range []bool{false, true} {
		liftMemlock = func() bool { return lifted }
		calls := 0
		_, err := Charged(func() (int, error) {
			calls++
			return 0, fmt.Errorf("%w (MEMLOCK may be too low)", unix.EPERM)
		})
		qt.Check(t, qt.Equals(err, error(unix.EPERM)))
		qt.Check(t, qt.Equals(calls == 2, lifted))
	}
	v, err := Charged(func() (int, error) { return 7, nil })
	qt.Check(t, qt.Equals(v, 7))
	qt.Check(t, qt.IsNil(err))
	_, err = Charged(func() (int, error) { return 0, unix.E2BIG })
	qt.Check(t, qt.Equals(err, error(unix.E2BIG)))
}
