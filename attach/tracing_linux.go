package attach

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
)

var tracingTypes = map[kallscope.Mechanism]ebpf.AttachType{
	kallscope.Fentry:        ebpf.AttachTraceFEntry,
	kallscope.Fexit:         ebpf.AttachTraceFExit,
	kallscope.Fsession:      bpf.AttachFsession,
	kallscope.FentryMulti:   bpf.AttachFentryMulti,
	kallscope.FexitMulti:    bpf.AttachFexitMulti,
	kallscope.FsessionMulti: bpf.AttachFsessionMulti,
}

// tracing attaches by fentry, fexit and fsession: a program and a link for each
// target, because the function is fixed when the program loads.
type tracing struct {
	*group
	template *bpf.Template
	loaded   []*ebpf.Program
	causes   *causes
}

// newTracingTemplate makes the template of the programs of a group by BTF id.
func newTracingTemplate(l *loader, g *group) (*bpf.Template, error) {
	spec, err := l.spec(g.mechanism, ebpf.Tracing, tracingTypes[g.mechanism])
	if err != nil {
		return nil, err
	}
	template, err := l.template(spec)
	if err != nil {
		return nil, supportedOr(g.mechanism, err)
	}
	return template, nil
}

func newTracing(l *loader, g *group) (linker, error) {
	template, err := newTracingTemplate(l, g)
	if err != nil {
		return nil, err
	}
	return &tracing{group: g, template: template, causes: l.causes}, nil
}

func (m *tracing) programs() []*ebpf.Program { return m.loaded }

func (m *tracing) release() error { return m.template.Close() }

func (m *tracing) link(indexes []int) (link.Link, error) {
	index := indexes[0]
	cookie := uint64(index) + 1
	program, err := m.template.Load(bpf.Instance{
		BTFObject: m.object.FD(), BTFID: m.ids[index], Cookie: cookie, Addr: m.targets[index].Addr,
	})
	if err != nil {
		return nil, &loadError{err}
	}
	l, err := bpf.LinkTracing(program, tracingTypes[m.mechanism], cookie)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	m.loaded = append(m.loaded, program)
	return l, nil
}

// A loadError is from loading the program of one function.
type loadError struct{ error }

func (e *loadError) Error() string { return "load program: " + e.error.Error() }

func (e *loadError) Unwrap() error { return e.error }

// explained adds what the verifier's text leaves open.
func (e *loadError) explained() error {
	switch text := e.Error(); {
	case strings.Contains(text, "__noreturn"):
		return fmt.Errorf("%w; it never returns: use fentry", e)
	case strings.Contains(text, " is unsupported"):
		return fmt.Errorf("%w; arg0 is the first one: use kprobe.multi or kprobe", e)
	}
	return e
}

// blames: whatever is not about the process, the verifier and the trampoline
// decide for one function.
func (m *tracing) blames(err error) bool { return !aboutProcess(err) }

// aboutProcess reports whether an error has nothing to do with a target.
func aboutProcess(err error) bool {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EFAULT, unix.EBADF} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (m *tracing) refusal(t *kallscope.Target, err error) error {
	if load, ok := errors.AsType[*loadError](err); ok {
		return load.explained()
	}
	return m.causes.trampolineRefusal(t, err)
}

// maxTrampolineLinks is BPF_MAX_TRAMP_LINKS of include/linux/bpf.h.
const maxTrampolineLinks = 38

// trampolineRefusal explains errors of links that go by a trampoline.
func (c *causes) trampolineRefusal(t *kallscope.Target, err error) error {
	switch {
	case errors.Is(err, bpf.ErrNotSupp):
		return answerf(bpf.ErrNotSupp, "more arguments than a trampoline of this kernel passes on, or no direct calls of ftrace (arm64 before 6.4)")
	case errors.Is(err, unix.E2BIG):
		return answerf(unix.E2BIG, "other programs take all %d places of this function's trampoline (BPF_MAX_TRAMP_LINKS)", maxTrampolineLinks)
	case errors.Is(err, unix.EBUSY):
		return answerf(unix.EBUSY, "the function's site is in use by a live patch or another direct call: %s", c.holder(t))
	}
	return err
}

func (m *tracing) explain(err error) error { return supportedOr(m.mechanism, err) }

// programIsBad reports whether the verifier found fault with a program rather
// than with the function that it was loaded for.
func programIsBad(err error) bool {
	var verifier *bpf.VerifierError
	return errors.As(err, &verifier) && verifier.InProgram()
}
