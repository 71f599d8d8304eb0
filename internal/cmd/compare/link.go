//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linkTypeKprobeMulti is BPF_LINK_TYPE_KPROBE_MULTI, include/uapi/linux/bpf.h.
const linkTypeKprobeMulti = 8

// bpf is the system call, with an attribute that has no pointers to Go memory
// but those that the caller keeps.
func bpf(cmd int, attr unsafe.Pointer, size uintptr) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// largestLink returns the number of functions of the largest kprobe.multi link
// that is attached, 0 without any. It holds no link for longer than it looks.
func largestLink() int {
	largest := 0
	for id := uint32(0); ; {
		attr := struct{ start, next, flags uint32 }{start: id}
		if _, err := bpf(unix.BPF_LINK_GET_NEXT_ID, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
			return largest
		}
		id = attr.next
		largest = max(largest, linkFunctions(id))
	}
}

// linkFunctions returns the number of functions of a link. While a link is
// being attached it has an id already, but cannot be opened: EAGAIN
// (bpf_link_by_id() in kernel/bpf/syscall.c).
func linkFunctions(id uint32) int {
	attr := struct{ id, next, flags uint32 }{id: id}
	fd, err := bpf(unix.BPF_LINK_GET_FD_BY_ID, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	// struct bpf_link_info up to the fields of kprobe_multi that are of use
	// here; count is there since v6.6.
	var info struct {
		typ, id, prog, _ uint32
		addrs            uint64
		count, flags     uint32
		missed           uint64
	}
	get := struct {
		fd, size uint32
		info     uint64
	}{uint32(fd), uint32(unsafe.Sizeof(info)), uint64(uintptr(unsafe.Pointer(&info)))}
	_, err = bpf(unix.BPF_OBJ_GET_INFO_BY_FD, unsafe.Pointer(&get), unsafe.Sizeof(get))
	runtime.KeepAlive(&info)
	if err != nil || info.typ != linkTypeKprobeMulti {
		return 0
	}
	return int(info.count)
}

// createLink attaches a program to addresses by kprobe.multi and returns the
// link.
func createLink(prog int, addrs []uintptr, cookies []uint64) (int, error) {
	attr := struct {
		prog, target, typ, flags uint32
		multiFlags, count        uint32
		syms, addrs, cookies     uint64
	}{
		prog: uint32(prog), typ: unix.BPF_TRACE_KPROBE_MULTI, count: uint32(len(addrs)),
		addrs:   uint64(uintptr(unsafe.Pointer(unsafe.SliceData(addrs)))),
		cookies: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(cookies)))),
	}
	fd, err := bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(addrs)
	runtime.KeepAlive(cookies)
	return fd, err
}
