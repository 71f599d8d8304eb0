package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/feature"
)

// kprobe attaches by a perf event for each target, by address, or by name and
// offset where addresses are hidden. Where perf events have no cookies (before
// v5.15) each target has a program of its own.
type kprobe struct {
	*group
	pmu      *bpf.KprobePMU
	template *bpf.Template // nil with cookies
	causes   *causes
	loaded   []*ebpf.Program
}

func newKprobe(l *loader, g *group) (linker, error) {
	spec, err := l.spec(g.mechanism, ebpf.Kprobe, ebpf.AttachNone)
	if err != nil {
		return nil, err
	}
	k := &kprobe{group: g, causes: l.causes}
	if k.pmu, err = bpf.NewKprobePMU(); err != nil {
		return nil, supportedOr(g.mechanism, err)
	}
	if feature.Cookies() != nil {
		k.template, err = l.template(spec)
		return k, err
	}
	program, err := load(spec)
	if err != nil {
		return nil, supportedOr(g.mechanism, err)
	}
	k.loaded = []*ebpf.Program{program}
	return k, nil
}

func (k *kprobe) programs() []*ebpf.Program { return k.loaded }

func (k *kprobe) release() error {
	if k.template == nil {
		return nil
	}
	return k.template.Close()
}

func (k *kprobe) link(indexes []int) (link.Link, error) {
	index := indexes[0]
	target := &k.targets[index]
	at := bpf.ProbePoint{Name: target.Name, Offset: uint64(target.Offset), Return: k.mechanism == kallscope.Kretprobe}
	if target.Addr != 0 {
		at.Addr = target.Addr + uint64(target.Offset)
	}
	event, err := k.pmu.Open(at)
	if err != nil {
		return nil, err
	}
	cookie := uint64(index) + 1
	if k.template == nil {
		return bpf.LinkKprobe(k.loaded[0], event, cookie, true)
	}
	program, err := k.template.Load(bpf.Instance{Cookie: cookie, Addr: target.Addr})
	if err != nil {
		return nil, errors.Join(&loadError{err}, unix.Close(event))
	}
	k.loaded = append(k.loaded, program)
	return bpf.LinkKprobe(program, event, cookie, false)
}

// blames: EACCES is about kernel.perf_event_paranoid.
func (k *kprobe) blames(err error) bool {
	var load *loadError
	return !aboutProcess(err) && !errors.Is(err, unix.EACCES) && !errors.As(err, &load)
}

func (k *kprobe) refusal(t *kallscope.Target, err error) error {
	switch {
	case errors.Is(err, unix.EINVAL):
		return answerf(unix.EINVAL, "kprobes must stay out of it: %s", k.causes.keptOut(t))
	case errors.Is(err, unix.EOPNOTSUPP):
		return answerf(unix.EOPNOTSUPP, "this instruction can be neither stepped over nor emulated")
	case errors.Is(err, unix.EILSEQ):
		return answerf(unix.EILSEQ, "no instruction begins at offset %#x", t.Offset)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return answerf(unix.EADDRNOTAVAIL, "several functions are named %s: %s; use MODULE:%[1]s or an address", t.Name, k.causes.namesakes(t))
	case errors.Is(err, fs.ErrNotExist):
		return answerf(unix.ENOENT, "%s", k.absent(t))
	}
	return err
}

// absent says why there is no function of a name.
func (k *kprobe) absent(t *kallscope.Target) string {
	if strings.Contains(t.Name, ".") {
		return fmt.Sprintf("no function named %s, or an old kernel (4.18) that takes no name with a dot; use its address", t.Name)
	}
	return fmt.Sprintf("no function named %s%s", t.Name, k.causes.variants(t))
}

func (k *kprobe) explain(err error) error { return supportedOr(k.mechanism, err) }
