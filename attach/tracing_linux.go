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
}

func newTracing(l *loader, g *group) (linker, error) {
	spec, err := l.spec(g.mechanism, ebpf.Tracing, tracingTypes[g.mechanism])
	if err != nil {
		return nil, err
	}
	template, err := l.template(spec)
	if err != nil {
		return nil, supportedOr(g.mechanism, err)
	}
	return &tracing{group: g, template: template}, nil
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

// errNotSupp is ENOTSUPP of include/linux/errno.h, which user space should not
// see but does.
const errNotSupp = unix.Errno(524)

// A reworded error number has a better text than the C library's.
type reworded struct {
	error
	text string
}

func (e *reworded) Error() string { return e.text }

func (e *reworded) Unwrap() error { return e.error }

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

func (m *tracing) refusal(err error) error {
	var load *loadError
	switch {
	case errors.As(err, &load):
		return load
	case errors.Is(err, errNotSupp):
		return &reworded{errNotSupp, "ENOTSUPP: more arguments than a trampoline of this kernel passes on, or no direct calls"}
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w: other programs take all places of this function (BPF_MAX_TRAMP_LINKS)", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: the function's site is in use by a live patch or another direct call", err)
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
