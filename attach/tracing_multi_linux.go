package attach

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
)

// tracingMulti attaches by fentry.multi, fexit.multi and fsession.multi links:
// one program, loaded for no function, and one system call for all targets of a
// BTF object, by id.
type tracingMulti struct {
	*group
	program *ebpf.Program
	causes  *causes
}

func newTracingMulti(l *loader, g *group) (linker, error) {
	template, err := newTracingTemplate(l, g)
	if err != nil {
		return nil, err
	}
	defer template.Close()
	program, err := template.Load(bpf.Instance{BTFObject: g.object.FD()})
	if err != nil {
		return nil, supportedOr(g.mechanism, fmt.Errorf("load program: %w", err))
	}
	return &tracingMulti{g, program, l.causes}, nil
}

func (m *tracingMulti) programs() []*ebpf.Program { return []*ebpf.Program{m.program} }

func (m *tracingMulti) link(indexes []int) (link.Link, error) {
	ids := make([]uint32, len(indexes))
	for i, index := range indexes {
		ids[i] = m.ids[index]
	}
	return bpf.LinkTracingMulti(m.program, tracingTypes[m.mechanism], ids, cookies(indexes))
}

// blames: see tracing. E2BIG is about one of the targets where there are so few
// that the search does not take it for too many.
func (m *tracingMulti) blames(err error) bool { return !aboutProcess(err) }

func (m *tracingMulti) refusal(t *kallscope.Target, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return answerf(unix.ENOENT, "the kernel finds no ftrace site by the name of this BTF id")
	case errors.Is(err, unix.EINVAL):
		return answerf(unix.EINVAL, "its arguments do not fit a trampoline, the verifier denies it, or it never returns")
	}
	return m.causes.trampolineRefusal(t, err)
}

func (m *tracingMulti) explain(err error) error { return supportedOr(m.mechanism, err) }
