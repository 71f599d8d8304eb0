// Package bpf makes the bpf(2) calls that cilium/ebpf has nothing for.
package bpf

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linkCreate is BPF_LINK_CREATE in enum bpf_cmd, kprobeMulti is
// BPF_TRACE_KPROBE_MULTI in enum bpf_attach_type (include/uapi/linux/bpf.h).
const (
	linkCreate  = 28
	kprobeMulti = 42
)

// kprobeMultiAttr is the part of union bpf_attr that link_create.kprobe_multi
// uses.
type kprobeMultiAttr struct {
	progFD     uint32
	targetFD   uint32
	attachType uint32
	flags      uint32
	multiFlags uint32
	count      uint32
	syms       uint64
	addrs      uint64
	cookies    uint64
}

// ProbeKprobeMulti asks the kernel for a kprobe.multi link on an unreadable
// array, which attaches nothing, and returns the error number: EFAULT where the
// mechanism is there, EOPNOTSUPP where the kernel was built without FPROBE,
// EINVAL where it is older than kprobe.multi (bpf_kprobe_multi_link_attach() in
// kernel/trace/bpf_trace.c). progFD is a program loaded as kprobe.multi.
func ProbeKprobeMulti(progFD int) error {
	attr := kprobeMultiAttr{
		progFD:     uint32(progFD),
		attachType: kprobeMulti,
		count:      1,
		addrs:      1, // in the first page, which nothing can be mapped to
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, linkCreate, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(&attr)
	if errno == 0 {
		unix.Close(int(fd))
		return fmt.Errorf("kernel attached to an unreadable array")
	}
	return errno
}
