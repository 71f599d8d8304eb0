//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// getppid makes exactly n raw calls from one thread. The Go runtime never makes
// this call by itself, so it is also the process's number.
func getppid(n int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range n {
		unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	}
	return nil
}

// reads makes exactly n raw calls of pread64 from one thread, of the first byte.
// The Go runtime makes none itself, but for one at its start in a control group
// that can limit CPUs: its own reads use read.
func reads(n int, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var b [1]byte
	fd := f.Fd()
	for i := range n {
		got, _, errno := unix.Syscall6(unix.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&b[0])), 1, 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("pread64 %d of %s: %w", i, file, errno)
		}
		if got != 1 {
			return fmt.Errorf("pread64 %d of %s: %w", i, file, io.ErrUnexpectedEOF)
		}
	}
	return nil
}

// forks starts this program n times, to do nothing, and waits for each.
func forks(n int) error {
	for range n {
		if out, err := exec.Command("/proc/self/exe", "-getppid", "0").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}
