// Package bpf makes the bpf(2) calls that cilium/ebpf has nothing for: programs
// loaded by BTF id, links by BTF id with cookies, kprobes by address.
package bpf

import (
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Attach types of enum bpf_attach_type (include/uapi/linux/bpf.h) that
// cilium/ebpf does not name.
const (
	AttachFsession      ebpf.AttachType = 58
	AttachFentryMulti   ebpf.AttachType = 59
	AttachFexitMulti    ebpf.AttachType = 60
	AttachFsessionMulti ebpf.AttachType = 61
)

// Commands of enum bpf_cmd.
const (
	progLoad          = 5
	rawTracepointOpen = 17
	linkCreate        = 28
)

// call makes a system call with the part of union bpf_attr that the command
// uses.
func call[T any](cmd uintptr, attr *T) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	runtime.KeepAlive(attr)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// pointer is a pointer in union bpf_attr, where it has 64 bits as it has here. It
// keeps what it points to alive as long as the attr is, and in its place.
type pointer struct{ ptr unsafe.Pointer }

func sliceOf[T any](s []T) pointer { return pointer{unsafe.Pointer(unsafe.SliceData(s))} }

func stringOf(s string) pointer { return sliceOf(append([]byte(s), 0)) }
