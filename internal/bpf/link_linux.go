package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// linkAttr is what all kinds of link_create have in union bpf_attr.
type linkAttr struct {
	progFD, targetFD uint32
	attachType       uint32
	_                uint32 // flags
}

func newLinkAttr(prog *ebpf.Program, t ebpf.AttachType) linkAttr {
	return linkAttr{progFD: uint32(prog.FD()), attachType: uint32(t)}
}

type tracingMultiAttr struct {
	linkAttr
	ids     pointer
	cookies pointer
	count   uint32
	_       uint32
}

type tracingAttr struct {
	linkAttr
	_      uint64 // target_btf_id
	cookie uint64
}

type perfEventAttr struct {
	linkAttr
	cookie uint64
}

// unreadable is in the first page, which nothing can be mapped to.
const unreadable = 1

// errAttached is a bug of the kernel.
var errAttached = errors.New("the kernel attached to an unreadable array")

// ProbeKprobeMulti asks the kernel for a kprobe.multi link, or a session, on an
// unreadable array, which attaches nothing, and returns the error number:
// EFAULT where the mechanism is there, EOPNOTSUPP where the kernel was built
// without FPROBE, EINVAL where it is older (bpf_kprobe_multi_link_attach() in
// kernel/trace/bpf_trace.c). The program was loaded for the attach type.
func ProbeKprobeMulti(prog *ebpf.Program, t ebpf.AttachType) error {
	return probe(&struct {
		linkAttr
		flags, count         uint32
		syms, addrs, cookies uint64
	}{linkAttr: newLinkAttr(prog, t), count: 1, addrs: unreadable})
}

// ProbeTracingMulti is ProbeKprobeMulti for the links by BTF ids
// (bpf_tracing_multi_attach() in kernel/trace/bpf_trace.c).
func ProbeTracingMulti(prog *ebpf.Program, t ebpf.AttachType) error {
	return probe(&struct {
		linkAttr
		ids, cookies uint64
		count, _     uint32
	}{linkAttr: newLinkAttr(prog, t), ids: unreadable, count: 1})
}

func probe[T any](attr *T) error {
	fd, err := call(linkCreate, attr)
	if err == nil {
		unix.Close(fd)
		return errAttached
	}
	return err
}

// LinkTracingMulti attaches a program to functions of one BTF object, that
// which it was loaded for, by their ids, each with a cookie. All or none is
// attached; the error number does not say which one is to blame. Since v7.2.
func LinkTracingMulti(prog *ebpf.Program, t ebpf.AttachType, ids []uint32, cookies []uint64) (link.Link, error) {
	if len(ids) != len(cookies) {
		return nil, fmt.Errorf("%d ids and %d cookies", len(ids), len(cookies))
	}
	return newLink(call(linkCreate, &tracingMultiAttr{
		linkAttr: newLinkAttr(prog, t), ids: sliceOf(ids), cookies: sliceOf(cookies), count: uint32(len(ids)),
	}))
}

// LinkTracing attaches a program to the function that it was loaded for. The
// cookie is left out where the kernel has none for these links (before v5.19);
// the error number is that of the last try.
func LinkTracing(prog *ebpf.Program, t ebpf.AttachType, cookie uint64) (link.Link, error) {
	fd, err := call(linkCreate, &tracingAttr{linkAttr: newLinkAttr(prog, t), cookie: cookie})
	if errors.Is(err, unix.EINVAL) {
		fd, err = call(rawTracepointOpen, &struct {
			name   uint64
			progFD uint32
			_      uint32
		}{progFD: uint32(prog.FD())})
	}
	return newLink(fd, err)
}

func newLink(fd int, err error) (link.Link, error) {
	if err != nil {
		return nil, err
	}
	return link.NewFromFD(fd)
}
