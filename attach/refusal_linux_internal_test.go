package attach

import (
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// TestRefusal: an error number says what it stands for in that place, and is
// still the number.
func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		linker interface{ refusal(error) error }
		errno  unix.Errno
		want   string
	}{
		{&kprobe{}, unix.EINVAL, ".*notrace, or in the blacklist.*cannot be probed"},
		{&kprobe{}, unix.EOPNOTSUPP, "EOPNOTSUPP: this instruction can be neither stepped over nor emulated"},
		{&kprobe{}, unix.EILSEQ, "EILSEQ: no instruction begins at this offset"},
		{&kprobe{}, unix.EADDRNOTAVAIL, ".*several functions have this name and addresses are hidden"},
		{&kprobe{}, unix.ENOENT, ".*no such function"},
		{&kprobeMulti{}, unix.EINVAL, ".*no ftrace site at this address, or its module has gone"},
		{&tracing{}, errNotSupp, "ENOTSUPP: more arguments than a trampoline .* or no direct calls"},
		{&tracing{}, unix.EBUSY, ".*in use by a live patch or another direct call"},
		{&tracing{}, unix.E2BIG, ".*other programs take all places of this function.*"},
	} {
		err := test.linker.refusal(test.errno)
		qt.Check(t, qt.ErrorMatches(err, test.want))
		qt.Check(t, qt.ErrorIs(err, test.errno))
	}
}
