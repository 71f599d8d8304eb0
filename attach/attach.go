// Package attach runs BPF programs on the targets of a plan.
//
//	plan, err := kernel.Plan(query, kallscope.PlanOptions{})
//	att, err := attach.Attach(ctx, attach.Programs{Entry: spec, Maps: maps}, plan, attach.Options{
//		Start: func() error { return ready.Set(true) },
//	})
//	defer att.Close()
//	for _, r := range att.Refused() {
//		fmt.Println(r.Target, r.Reason, r.Err)
//	}
//
// Every target is attached or refused, none is dropped. A program learns which
// target it runs for from bpf_get_attach_cookie(): the index in plan.Targets
// plus one.
//
// Only Linux has it; elsewhere the package builds, and Attach fails.
package attach

import (
	"context"
	"errors"

	"github.com/cilium/ebpf"

	"github.com/kallscope/kallscope"
)

// Programs are the programs of the caller, by role, not yet loaded: the attach
// type, and for some mechanisms the function, are fixed when a program loads,
// so that happens once the mechanism is known.
//
// One that reads arguments must fit the mechanism: they are in struct pt_regs
// with kprobes of all kinds, in the context with fentry, and come from
// bpf_get_func_arg() with fentry.multi.
type Programs struct {
	// Entry runs when a target is entered: kprobe.multi, fentry, fentry.multi,
	// kprobe.
	Entry *ebpf.ProgramSpec
	// Return runs when a target returns: kretprobe.multi, fexit, fexit.multi,
	// kretprobe.
	Return *ebpf.ProgramSpec
	// Session runs at both: kprobe.session, fsession, fsession.multi. It asks
	// bpf_session_is_return(ctx) which one it is, with the context on kernels
	// before v7.0 too.
	Session *ebpf.ProgramSpec
	// Maps are the loaded maps that the programs refer to, by the name in the
	// program, .rodata and .data included.
	Maps map[string]*ebpf.Map
}

// Options change how a plan is attached. The zero value attaches what the
// kernel takes.
type Options struct {
	// Start is called once everything is attached. It is the place to set the
	// flag that the programs test first: until then they already run for what
	// is attached, the attaching itself included.
	//
	// Missed counts from this moment.
	Start func() error
	// Kernel is that which made the plan, so that facts need not be read again:
	// attaching by BTF id needs the symbol table and the BTF.
	Kernel *kallscope.Kernel
	// Strict fails with the first refused target, and attaches nothing.
	Strict bool
	// Progress is called around system calls of Attach and Close, one call at
	// a time but not always from their goroutine.
	Progress func(Progress)
	// Unsafe attaches also to functions of which it is known that this stops
	// the machine, see [kallscope.Hangs]; without it they are refused.
	Unsafe bool
	// MaxCalls limits the system calls that look for refused targets, 2000
	// when zero. Targets that are then left are refused as
	// [kallscope.ReasonNotTried].
	MaxCalls int
}

// Progress is how far an attachment is.
type Progress struct {
	Phase       Phase
	Done, Total int // targets
}

// Phase is a part of the life of an attachment.
type Phase string

// The phases.
const (
	PhaseLoad   Phase = "load"
	PhaseAttach Phase = "attach"
	PhaseDetach Phase = "detach"
)

// A Refused is a target that the kernel did not take.
type Refused struct {
	// Index is that in plan.Targets.
	Index  int
	Target kallscope.Target
	Reason kallscope.Reason
	// Err is what the kernel answered; errors.Is finds the errno.
	Err error
}

// Error makes a Refused an error, for [Options.Strict].
func (r *Refused) Error() string {
	return r.Target.Func.String() + ": " + r.Target.Mechanism.String() + ": " + r.Err.Error()
}

// Unwrap returns Err.
func (r *Refused) Unwrap() error { return r.Err }

// Missed counts calls that programs did not see. The kernel counts them per
// program or link, never per function.
type Missed struct {
	// Recursion counts hits that were dropped because the program, or with
	// kprobe.multi any program, was running on that CPU (recursion_misses of
	// the program, since v5.12).
	Recursion uint64 `json:"recursion"`
	// Link counts hits that did not reach the program at all (missed of the
	// link, since v6.7). It is not part of Recursion.
	Link uint64 `json:"link"`
}

// ErrNoTargets is returned for a plan without targets.
var ErrNoTargets = errors.New("the plan has no targets")

// Attach attaches the programs to all targets of a plan, by the mechanism of
// each. It first checks that the plan was made for the running kernel, then
// makes one link per mechanism; when the kernel refuses that, the targets to
// blame are found by halving, which takes about log2(targets) system calls for
// each.
//
// It fails with [kallscope.ErrOtherKernel], with [kallscope.ErrNotSupported]
// when the kernel lacks a mechanism, [kallscope.ErrRestricted] without
// permission, when a program does not load (with an [ebpf.VerifierError], which
// has the log) and when ctx ends; then nothing stays attached.
func Attach(ctx context.Context, programs Programs, plan *kallscope.Plan, o Options) (*Attachment, error) {
	if len(plan.Targets) == 0 {
		return nil, ErrNoTargets
	}
	return attachPlan(ctx, programs, plan, o)
}
