package attach

import (
	"errors"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
)

// kprobeMulti attaches by kprobe.multi, kretprobe.multi and kprobe.session
// links: one program, one system call for all targets, by entry address. By
// site the kernel would take them too, but bpf_get_attach_cookie() searches the
// link's addresses for the entry (bpf_kprobe_multi_cookie() in
// kernel/trace/bpf_trace.c), and finds none of the functions that begin with an
// endbr64.
type kprobeMulti struct {
	*group
	program *ebpf.Program
}

func newKprobeMulti(l *loader, g *group) (linker, error) {
	t := ebpf.AttachTraceKprobeMulti
	if g.mechanism == kallscope.KprobeSession {
		t = ebpf.AttachTraceKprobeSession
	}
	spec, err := l.spec(g.mechanism, ebpf.Kprobe, t)
	if err != nil {
		return nil, err
	}
	program, err := load(spec)
	if err != nil {
		return nil, supportedOr(g.mechanism, err)
	}
	return &kprobeMulti{g, program}, nil
}

func (m *kprobeMulti) programs() []*ebpf.Program { return []*ebpf.Program{m.program} }

// link passes addresses, or names where the plan has no addresses.
func (m *kprobeMulti) link(indexes []int) (link.Link, error) {
	o := link.KprobeMultiOptions{Cookies: cookies(indexes), Session: m.mechanism == kallscope.KprobeSession}
	if m.targets[indexes[0]].Addr == 0 {
		o.Symbols = make([]string, len(indexes))
		for i, index := range indexes {
			o.Symbols[i] = m.targets[index].Name
		}
	} else {
		o.Addresses = make([]uintptr, len(indexes))
		for i, index := range indexes {
			o.Addresses[i] = uintptr(m.targets[index].Addr)
		}
	}
	if m.mechanism == kallscope.KretprobeMulti {
		return link.KretprobeMulti(m.program, o)
	}
	return link.KprobeMulti(m.program, o)
}

// blames: one address without a site gives EINVAL for the whole link, a name
// that is missing ESRCH, which cilium/ebpf reports as fs.ErrNotExist. A module
// that goes away meanwhile gives EINVAL too.
func (m *kprobeMulti) blames(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, fs.ErrNotExist)
}

// refusal keeps the errno and leaves out what cilium/ebpf guesses of it.
func (m *kprobeMulti) refusal(t *kallscope.Target, err error) error {
	for _, errno := range []unix.Errno{unix.EINVAL, unix.ENOENT} { // ENOENT on 7.3
		if errors.Is(err, errno) {
			return answerf(errno, "no ftrace site at %#x, the entry of %s, or its module has gone", t.Addr, t.Func)
		}
	}
	return answerf(unix.ESRCH, "no function named %s can be traced, or the link has that name twice", t.Name)
}

func (m *kprobeMulti) explain(err error) error { return supportedOr(m.mechanism, err) }
