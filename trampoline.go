package kallscope

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// A trampoline is what the rules of the mechanisms by BTF id say of a function:
// bpf_check_attach_target() in kernel/bpf/verifier.c, btf_distill_func_proto()
// in kernel/bpf/btf.c, arch_prepare_bpf_trampoline().
type trampoline struct {
	btfscan.Shape
	limits trampolineLimits
	id     BTFID
	err    error // there is none for exactly this function
}

// trampolineLimits are what differs between kernels.
type trampolineLimits struct {
	registers  int  // that arguments may take
	aggregates bool // structs by value may be arguments
	unions     bool // and unions
}

const (
	maxTrampolineArgs  = 12 // MAX_BPF_FUNC_ARGS in include/linux/bpf.h
	oldTrampolineArgs  = 6  // what x86 could pass on before v6.6 (473e3150e30a)
	maxTrampolineValue = 16 // bytes of a struct by value
)

// limitsOf looks at what the code of the kernel has, not at its version:
// functions that came with more than six arguments, a field that came with
// structs. Nothing came with unions (v6.18); fsession did two releases later,
// so between them unions are left out that the kernel would take.
func (p *planner) limitsOf(b *btfscan.BTF) trampolineLimits {
	l := trampolineLimits{registers: maxTrampolineArgs}
	if p.kernel.identity.Arch == "amd64" && !p.hasText(Vmlinux, "save_args") && !p.hasText(Vmlinux, "arch_bpf_trampoline_size") {
		l.registers = oldTrampolineArgs
	}
	_, _, l.aggregates = b.StructMember("btf_func_model", "arg_flags")
	l.unions = b.HasEnumerator("BPF_TRACE_FSESSION")
	return l
}

// trampoline returns the facts about the function of a question.
func (p *planner) trampoline(q *question) *trampoline {
	if q.trampoline == nil {
		q.trampoline = p.newTrampoline(q.fn())
	}
	return q.trampoline
}

func (p *planner) newTrampoline(f Func) *trampoline {
	t := new(trampoline)
	if t.id, t.err = p.kernel.TracingID(f); t.err != nil {
		return t
	}
	b, err := p.kernel.openBTF(t.id.Object)
	if err != nil {
		t.err = err
		return t
	}
	if p.limits == nil {
		vmlinux, err := p.kernel.openBTF(Vmlinux)
		if err != nil {
			t.err = err
			return t
		}
		limits := p.limitsOf(vmlinux)
		p.limits = &limits
	}
	t.limits = *p.limits
	fn, ok := b.FuncByID(t.id.ID)
	if !ok {
		t.err = fmt.Errorf("%s: %w", t.id, ErrNotFound)
		return t
	}
	t.err = b.ShapeInto(fn.Proto, &t.Shape)
	return t
}

func (t *trampoline) ambiguous() bool { return errors.Is(t.err, ErrAmbiguous) }

func (t *trampoline) noBTF() bool { return t.err != nil && !t.ambiguous() }

// largeStruct returns the index of the first argument that is a struct or union
// which cannot be passed on, or -1.
func (t *trampoline) largeStruct() int {
	return slices.IndexFunc(t.Params, func(v btfscan.Value) bool {
		return v.Aggregate() && (v.Size > maxTrampolineValue || !t.limits.aggregates || v.Class == btfscan.ClassUnion && !t.limits.unions)
	})
}

// oddValue reports whether the result or an argument is of a type that has no
// place in a register.
func (t *trampoline) oddValue() bool {
	odd := func(v btfscan.Value) bool {
		return v.Class == btfscan.ClassFloat || v.Class == btfscan.ClassOther || v.Aggregate() && v.Size == 0
	}
	return odd(t.Ret) || slices.ContainsFunc(t.Params, func(v btfscan.Value) bool { return odd(v) || v.Class == btfscan.ClassVoid })
}

// tooManyArgs counts arguments, and registers where a struct takes several.
func (t *trampoline) tooManyArgs() bool {
	registers := len(t.Params)
	for _, v := range t.Params {
		if v.Aggregate() && v.Size > btfscan.PointerSize {
			registers += int(v.Size+btfscan.PointerSize-1)/btfscan.PointerSize - 1
		}
	}
	return len(t.Params) > maxTrampolineArgs || t.err == nil && registers > t.limits.registers
}

// denyLists are BTF ids of vmlinux on which the verifier refuses trampolines.
type denyLists struct {
	// Trampolines is btf_id_deny: no trampoline of any kind.
	Trampolines []uint32 `json:"trampolines,omitempty"`
	// Returns is noreturn_deny, since v6.15: none that runs on return.
	Returns []uint32 `json:"returns,omitempty"`
}

func denies(list []uint32, id BTFID) bool {
	return id.Object == Vmlinux && slices.Contains(list, id.ID)
}
