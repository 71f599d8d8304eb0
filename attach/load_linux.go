package attach

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/feature"
)

// A loader makes programs of the caller's specs once the mechanism is known.
type loader struct {
	programs Programs
	kernel   *kallscope.Kernel
	types    *btf.Cache // shared, because decoding the kernel's BTF takes long
	causes   *causes
}

// spec returns the caller's spec for a mechanism, with the maps that its
// instructions name.
func (l *loader) spec(m kallscope.Mechanism, typ ebpf.ProgramType, t ebpf.AttachType) (*ebpf.ProgramSpec, error) {
	spec, field := l.byRole(m)
	if spec == nil {
		return nil, fmt.Errorf("the plan needs a program for this mechanism; set Programs.%s", field)
	}
	spec = spec.Copy()
	spec.Type, spec.AttachType, spec.AttachTo = typ, t, ""
	for i := range spec.Instructions {
		ins := &spec.Instructions[i]
		switch {
		case ins.IsKfuncCall():
			l.resolveKfunc(ins)
		case ins.IsLoadFromMap() && ins.Map() == nil:
			m, ok := l.programs.Maps[ins.Reference()]
			if !ok {
				return nil, fmt.Errorf("load program %s: it refers to map %q, which is not among the maps", spec.Name, ins.Reference())
			}
			if err := ins.AssociateMap(m); err != nil {
				return nil, fmt.Errorf("load program %s: map %s: %w", spec.Name, ins.Reference(), err)
			}
		}
	}
	return spec, nil
}

func (l *loader) byRole(m kallscope.Mechanism) (spec *ebpf.ProgramSpec, field string) {
	switch m {
	case kallscope.KretprobeMulti, kallscope.Fexit, kallscope.FexitMulti, kallscope.Kretprobe:
		return l.programs.Return, "Return"
	case kallscope.KprobeSession, kallscope.Fsession, kallscope.FsessionMulti:
		return l.programs.Session, "Session"
	}
	return l.programs.Entry, "Entry"
}

// resolveKfunc puts the BTF id of a kernel function into a call, without the
// comparison of prototypes that cilium/ebpf makes: bpf_session_is_return() and
// bpf_session_cookie() take no argument before v7.0 and the context since, and
// a program that always passes the context is right on both. What is not found
// is left to cilium/ebpf, which knows weak references.
func (l *loader) resolveKfunc(ins *asm.Instruction) {
	ids := l.kernel.BTFIDs(kallscope.Func{Name: ins.Reference(), Module: kallscope.Vmlinux})
	if len(ids) != 1 {
		return
	}
	resolved := asm.Instruction{OpCode: ins.OpCode, Src: asm.PseudoKfuncCall, Constant: int64(ids[0].ID)}.
		WithSymbol(ins.Symbol()).WithSource(ins.Source())
	if fn := btf.FuncMetadata(ins); fn != nil {
		resolved = btf.WithFuncMetadata(resolved, fn)
	}
	*ins = resolved
}

// load loads a program for any number of functions.
func load(spec *ebpf.ProgramSpec) (*ebpf.Program, error) {
	program, err := bpf.Charged(func() (*ebpf.Program, error) { return ebpf.NewProgram(spec) })
	if err != nil {
		return nil, fmt.Errorf("load program %s: %w", spec.Name, err)
	}
	return program, nil
}

// template prepares a program for one function at a time.
func (l *loader) template(spec *ebpf.ProgramSpec) (*bpf.Template, error) {
	t, err := bpf.NewTemplate(spec, l.types)
	if err != nil {
		return nil, fmt.Errorf("load program %s: %w", spec.Name, err)
	}
	return t, nil
}

// supportedOr asks for the mechanism before it believes an error: a kernel
// without it answers with whatever its checks come to.
func supportedOr(m kallscope.Mechanism, err error) error {
	if problem := Supported(m); problem != nil && !errors.Is(err, problem) {
		return problem
	}
	return denied("/", err)
}

// denied adds to EPERM what may be behind it, where the mechanism as such is
// permitted.
func denied(root string, err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	return fmt.Errorf("%w%s: %s", err, number(err), feature.WhyDenied(root))
}

// underLockdown says what the verifier does not: under confidentiality it knows
// no helper that reads the kernel's memory (LOCKDOWN_BPF_READ_KERNEL in
// bpf_base_func_proto(), kernel/bpf/helpers.c).
func underLockdown(k *kallscope.Kernel, err error) error {
	var v *ebpf.VerifierError
	if !errors.As(err, &v) || k.Switches().Lockdown != "confidentiality" {
		return err
	}
	if !slices.ContainsFunc(v.Log, func(line string) bool { return strings.Contains(line, "bpf_probe_read") }) {
		return err
	}
	return fmt.Errorf("%w; kernel lockdown is %q: no bpf_probe_read_kernel() or the like", err, "confidentiality")
}
