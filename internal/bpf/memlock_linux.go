package bpf

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// Charged calls f, and once more when that fails with EPERM and lifting
// RLIMIT_MEMLOCK may help: before v5.11 maps and programs are charged to it for
// as long as they are loaded, also root's. On newer kernels no limit is touched
// unless there is no permission anyway. That the limit cannot be lifted is no
// error of its own.
//
// What is left of EPERM is the number alone: cilium/ebpf takes it for too low a
// limit on every kernel.
func Charged[T any](f func() (T, error)) (T, error) {
	v, err := f()
	if errors.Is(err, unix.EPERM) && liftMemlock() {
		v, err = f()
	}
	if errors.Is(err, unix.EPERM) {
		err = unix.EPERM
	}
	return v, err
}

// liftMemlock reports whether there was a limit and it could be lifted.
var liftMemlock = sync.OnceValue(func() bool {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil || old.Cur == unix.RLIM_INFINITY {
		return false
	}
	infinite := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &infinite) == nil
})
