package attach_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/bpf"
	"github.com/kallscope/kallscope/internal/testutil"
)

// The tests below compare verdicts with what the kernel does when it is asked.
// Without KALLSCOPE_LONG they ask about a part of the functions.

// stride returns every how many functions are asked about.
func stride(short int) int {
	if os.Getenv("KALLSCOPE_LONG") != "" {
		return 1
	}
	return short
}

// policy are reasons that are kallscope's own choice: the kernel could attach.
var policy = []kallscope.Reason{
	kallscope.ReasonDispatch, kallscope.ReasonHangs, kallscope.ReasonPadding, kallscope.ReasonCold, kallscope.ReasonFragment,
}

// tally counts where verdict and kernel agree and where not.
type tally struct {
	asked    int
	disagree map[string]int
}

func (c *tally) count(t *testing.T, f kallscope.Func, verdict string, err error) {
	c.asked++
	if (verdict == "none") == (err == nil) {
		return
	}
	if c.disagree == nil {
		c.disagree = make(map[string]int)
	}
	if c.disagree[verdict]++; c.disagree[verdict] <= 10 {
		t.Logf("%s at %#x: the verdict is %s, the kernel says %v", f, f.Addr, verdict, err)
	}
}

// report fails above one disagreement in a thousand.
func (c *tally) report(t *testing.T, what string) {
	wrong := 0
	for _, n := range c.disagree {
		wrong += n
	}
	fmt.Printf("%s %s: %d asked, %d disagree %v\n", testutil.Release(t), what, c.asked, wrong, c.disagree)
	if c.asked == 0 || wrong*1000 > c.asked {
		t.Errorf("%s: %d of %d verdicts are wrong", what, wrong, c.asked)
	}
}

// TestGuestTruthMulti attaches all targets of each mechanism that makes one link
// for many, and then, as if they were targets, a part of those that are skipped.
func TestGuestTruthMulti(t *testing.T) {
	pattern := "vmlinux:/^[s-t]/"
	if stride(2) == 1 {
		pattern = "*"
	}
	for _, m := range kallscope.Mechanisms() {
		if m.PerFunction() {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, pattern)
			k, err := kallscope.Live(kallscope.LiveOptions{})
			qt.Assert(t, qt.IsNil(err))
			var c tally
			for target, err := range try(t, k, p) {
				c.count(t, target.Func, "none", err)
			}
			skipped, reasons := skippedAsTargets(p, m)
			for target, err := range try(t, k, skipped) {
				c.count(t, target.Func, reasons[target.Addr].String(), err)
			}
			c.report(t, m.String())
		})
	}
}

// try attaches a plan and yields what became of each target.
func try(t *testing.T, k *kallscope.Kernel, p *kallscope.Plan) func(func(kallscope.Target, error) bool) {
	programs, _ := cookieProgram(t, len(p.Targets))
	att, err := attach.Attach(context.Background(), programs, p, attach.Options{Kernel: k, MaxCalls: 100_000})
	qt.Assert(t, qt.IsNil(err))
	refused := make(map[uint64]error)
	for _, r := range att.Refused() {
		refused[r.Target.Addr] = r.Err
	}
	qt.Assert(t, qt.IsNil(att.Close()))
	return func(yield func(kallscope.Target, error) bool) {
		for _, target := range p.Targets {
			if !yield(target, refused[target.Addr]) {
				return
			}
		}
	}
}

// skippedAsTargets makes targets of up to 100 skipped functions of each reason.
func skippedAsTargets(p *kallscope.Plan, m kallscope.Mechanism) (*kallscope.Plan, map[uint64]kallscope.Reason) {
	bad, reasons, taken := *p, make(map[uint64]kallscope.Reason), make(map[kallscope.Reason]int)
	bad.Targets = nil
	for s := range p.Skipped.All() {
		if s.Addr == 0 || slices.Contains(policy, s.Reason) || taken[s.Reason] >= 100 {
			continue
		}
		taken[s.Reason]++
		reasons[s.Addr] = s.Reason
		bad.Targets = append(bad.Targets, kallscope.Target{Func: s.Func, Mechanism: m})
	}
	return &bad, reasons
}

// findings explains everything in vmlinux.
func findings(t *testing.T) []kallscope.Finding {
	t.Helper()
	testutil.Guest(t)
	k, err := kallscope.Live(kallscope.LiveOptions{})
	qt.Assert(t, qt.IsNil(err))
	e, err := k.Explain(kallscope.Query{Patterns: []string{"vmlinux:*"}})
	qt.Assert(t, qt.IsNil(err))
	return e.Findings
}

// notAtLoad are the reasons that the kernel looks at when it attaches, not when
// it loads the program of a function.
var notAtLoad = []kallscope.Reason{
	kallscope.ReasonNoSite, kallscope.ReasonNoinstr, kallscope.ReasonInit, kallscope.ReasonFragment, kallscope.ReasonCold,
	kallscope.ReasonAmbiguousName, kallscope.ReasonHangs, kallscope.ReasonExcludedAlias,
}

// TestGuestTruthLoad loads a program for every BTF function.
func TestGuestTruthLoad(t *testing.T) {
	all := findings(t)
	for m, typ := range map[kallscope.Mechanism]ebpf.AttachType{
		kallscope.Fentry: ebpf.AttachTraceFEntry, kallscope.Fexit: ebpf.AttachTraceFExit,
	} {
		t.Run(m.String(), func(t *testing.T) {
			if err := attach.Supported(m); err != nil {
				t.Fatal(err)
			}
			template, err := bpf.NewTemplate(&ebpf.ProgramSpec{
				Name: "truth", Type: ebpf.Tracing, AttachType: typ, License: "GPL",
				Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
			}, nil)
			qt.Assert(t, qt.IsNil(err))
			defer template.Close()
			var c tally
			seen := make(map[kallscope.BTFID]bool)
			for i := 0; i < len(all); i += stride(7) {
				f := &all[i]
				v := f.Verdict(m)
				if len(f.IDs) == 0 || seen[f.IDs[0]] || has(v, kallscope.ReasonAmbiguousName) || has(v, kallscope.ReasonTooManyArgs) {
					continue // the id is of another function; x86 counts arguments when it attaches
				}
				seen[f.IDs[0]] = true
				prog, err := template.Load(bpf.Instance{BTFID: f.IDs[0].ID})
				if err == nil {
					prog.Close()
				}
				c.count(t, f.Func, firstReason(v, notAtLoad), err)
			}
			c.report(t, m.String()+" at load")
		})
	}
}

func has(v kallscope.Verdict, r kallscope.Reason) bool {
	return slices.ContainsFunc(v.Obstacles, func(o kallscope.Obstacle) bool { return o.Reason == r })
}

// firstReason returns the first obstacle that is not among those to ignore.
func firstReason(v kallscope.Verdict, ignore []kallscope.Reason) string {
	for _, o := range v.Obstacles {
		if !slices.Contains(ignore, o.Reason) {
			return o.Reason.String()
		}
	}
	return kallscope.ReasonNone.String()
}

// TestGuestTruthFentry attaches fentry and fexit programs to some functions of
// each verdict: each takes a grace period to detach.
func TestGuestTruthFentry(t *testing.T) {
	for _, m := range []kallscope.Mechanism{kallscope.Fentry, kallscope.Fexit} {
		t.Run(m.String(), func(t *testing.T) {
			p := plan(t, m, "vmlinux:*")
			k, err := kallscope.Live(kallscope.LiveOptions{})
			qt.Assert(t, qt.IsNil(err))
			spread := *p
			spread.Targets = nil
			for i := 0; i < len(p.Targets); i += 1 + len(p.Targets)*stride(5)/500 {
				spread.Targets = append(spread.Targets, p.Targets[i])
			}
			var c tally
			for target, err := range try(t, k, &spread) {
				c.count(t, target.Func, "none", err)
			}
			skipped, reasons := skippedAsTargets(p, m)
			for target, err := range try(t, k, skipped) {
				c.count(t, target.Func, reasons[target.Addr].String(), err)
			}
			c.report(t, m.String())
		})
	}
}

// TestGuestTruthKprobe opens single kprobes on some functions of each verdict.
func TestGuestTruthKprobe(t *testing.T) {
	all := findings(t)
	pmu, err := bpf.NewKprobePMU()
	qt.Assert(t, qt.IsNil(err))
	var c tally
	asked := make(map[string]int)
	for i := range all {
		f := &all[i]
		verdict := firstReason(f.Verdict(kallscope.Kprobe), nil)
		if n := asked[verdict]; f.Addr == 0 || slices.ContainsFunc(policy, func(r kallscope.Reason) bool { return r.String() == verdict }) ||
			verdict == "none" && i%(40*stride(5)) != 0 || verdict != "none" && n >= 300/stride(2) {
			continue
		}
		asked[verdict]++
		fd, err := pmu.Open(bpf.ProbePoint{Addr: f.Addr})
		if err == nil {
			unix.Close(fd)
		}
		c.count(t, f.Func, verdict, err)
	}
	fmt.Printf("%s kprobe: %v\n", testutil.Release(t), asked)
	c.report(t, "kprobe")
}
