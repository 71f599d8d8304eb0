package attach

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/feature"
)

// kprobeMulti attaches by kprobe.multi and kretprobe.multi links: one program,
// one system call for all targets, by entry address. By site the kernel would
// take them too, but bpf_get_attach_cookie() searches the link's addresses for
// the entry (bpf_kprobe_multi_cookie() in kernel/trace/bpf_trace.c), and finds
// none of the functions that begin with an endbr64.
type kprobeMulti struct {
	program *ebpf.Program
	group   *group
	attach  func(*ebpf.Program, link.KprobeMultiOptions) (link.Link, error)
}

func newLinker(programs Programs, g *group) (*kprobeMulti, error) {
	m := &kprobeMulti{group: g, attach: link.KprobeMulti}
	spec := programs.Entry
	if g.mechanism == kallscope.KretprobeMulti {
		spec, m.attach = programs.Return, link.KretprobeMulti
	}
	if spec == nil {
		return nil, errors.New("the plan needs a program for this mechanism; set Programs.Entry or Programs.Return")
	}
	spec = spec.Copy()
	spec.Type, spec.AttachType = ebpf.Kprobe, ebpf.AttachTraceKprobeMulti
	var err error
	if m.program, err = load(spec, programs.Maps); err != nil {
		return nil, m.explain(err)
	}
	return m, nil
}

// link passes addresses, or names where the plan has no addresses.
func (m *kprobeMulti) link(indexes []int) (link.Link, error) {
	o := link.KprobeMultiOptions{Cookies: make([]uint64, len(indexes))}
	for i, index := range indexes {
		o.Cookies[i] = uint64(index) + 1
	}
	if m.group.targets[indexes[0]].Addr == 0 {
		o.Symbols = make([]string, len(indexes))
		for i, index := range indexes {
			o.Symbols[i] = m.group.targets[index].Name
		}
	} else {
		o.Addresses = make([]uintptr, len(indexes))
		for i, index := range indexes {
			o.Addresses[i] = uintptr(m.group.targets[index].Addr)
		}
	}
	return m.attach(m.program, o)
}

// blames: one address without a site gives EINVAL for the whole link, a name
// that is missing ESRCH, which cilium/ebpf reports as fs.ErrNotExist. A module
// that goes away meanwhile gives EINVAL too.
func (m *kprobeMulti) blames(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, fs.ErrNotExist)
}

// refusal keeps the errno and leaves out what cilium/ebpf guesses of it.
func (m *kprobeMulti) refusal(err error) error {
	for _, errno := range []unix.Errno{unix.EINVAL, unix.ENOENT} { // ENOENT on 7.3
		if errors.Is(err, errno) {
			return fmt.Errorf("%w: no ftrace site at this address, or its module has gone", errno)
		}
	}
	return fmt.Errorf("%w: no function of this name can be traced", unix.ESRCH)
}

// explain asks for the mechanism before it believes an errno.
func (m *kprobeMulti) explain(err error) error {
	if problem := Supported(m.group.mechanism); problem != nil {
		return problem
	}
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%d targets are more than a link takes (1048576, MAX_KPROBE_MULTI_CNT): %w; narrow the patterns", len(m.group.indexes), err)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%d targets: %w: the kernel, or this process's memory cgroup, has no room for them; narrow the patterns", len(m.group.indexes), err)
	}
	return err
}

// linkMissed returns the kernel's count of hits that a link missed; zero
// before v6.7, which does not count them.
func linkMissed(l link.Link) (uint64, error) {
	info, err := l.Info()
	if err != nil {
		return 0, err
	}
	multi := info.KprobeMulti()
	if multi == nil {
		return 0, nil
	}
	return multi.Missed, nil
}

// Supported returns nil when the running kernel has the mechanism and this
// process may use it. Otherwise it says which of the two it is:
// [kallscope.ErrNotSupported], with what the kernel lacks, or
// [kallscope.ErrRestricted]. It asks the kernel and attaches nothing.
func Supported(m kallscope.Mechanism) error {
	switch err := feature.KprobeMulti(); {
	case err == nil:
		return nil
	case errors.Is(err, feature.ErrPermission):
		return fmt.Errorf("%s: %w: %w; run as root, or with CAP_BPF and CAP_PERFMON", m, kallscope.ErrRestricted, err)
	case errors.Is(err, feature.ErrNotBuilt):
		return fmt.Errorf("%s: %w: it was built without CONFIG_FPROBE", m, kallscope.ErrNotSupported)
	case errors.Is(err, feature.ErrTooOld):
		return fmt.Errorf("%s: %w: it is older than this mechanism (Linux 5.18)", m, kallscope.ErrNotSupported)
	default:
		return fmt.Errorf("%s: %w", m, err)
	}
}
