package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/observe/count"
)

// TestFindDispatch finds the functions that the kernel calls on every hit of a
// kprobe.multi link: attached to, each makes every other probe dearer. It
// attaches an empty program to ever smaller groups of functions and compares
// what getppid costs with and without the counting program on getppid itself.
//
// Guest time must count instructions (vmrun -icount), or the noise hides them.
func TestFindDispatch(t *testing.T) {
	measurement(t)
	p := plan(t, kallscope.PlanOptions{Cautious: true}, "*")
	addrs, _ := addresses(p)
	names := make(map[uintptr]string)
	for _, target := range p.Targets {
		names[uintptr(target.Addr)] = target.String()
	}
	s := &dispatchSearch{tb: t, empty: floor(t, "empty")}
	s.counter, s.prog, s.getppid = counting(t)
	defer s.counter.Close()
	for _, addr := range s.find(addrs) {
		fmt.Printf("dispatch: %s costs %v a hit\n", names[addr], s.extra([]uintptr{addr}))
	}
}

// counting loads the product's program for getppid alone.
func counting(tb testing.TB) (*count.Counter, *ebpf.Program, uintptr) {
	tb.Helper()
	one := plan(tb, kallscope.PlanOptions{}, "syscall:getppid")
	counter, err := count.New(one, count.Options{})
	qt.Assert(tb, qt.IsNil(err))
	qt.Assert(tb, qt.IsNil(counter.Start()))
	return counter, loadCounting(tb, counter), uintptr(one.Targets[0].Addr)
}

// loadCounting loads the product's program by itself.
func loadCounting(tb testing.TB, counter *count.Counter) *ebpf.Program {
	tb.Helper()
	programs := counter.Programs()
	spec := programs.Entry.Copy()
	for i := range spec.Instructions {
		if ins := &spec.Instructions[i]; ins.IsLoadFromMap() {
			qt.Assert(tb, qt.IsNil(ins.AssociateMap(programs.Maps[ins.Reference()])))
		}
	}
	prog, err := ebpf.NewProgram(spec)
	qt.Assert(tb, qt.IsNil(err))
	tb.Cleanup(func() { prog.Close() })
	return prog
}

type dispatchSearch struct {
	tb      testing.TB
	empty   *ebpf.Program
	counter *count.Counter
	prog    *ebpf.Program
	getppid uintptr
	usual   time.Duration // what the probe costs with nothing else attached
}

// group is how many functions are tried at once at first.
const group = 400

func (s *dispatchSearch) find(addrs []uintptr) []uintptr {
	s.usual = s.extraOf(nil)
	fmt.Printf("the probe itself costs %v\n", s.usual)
	var found []uintptr
	for len(addrs) > 0 {
		n := min(group, len(addrs))
		found = append(found, s.halve(addrs[:n])...)
		addrs = addrs[n:]
	}
	return found
}

// suspicious is how much dearer, in instructions, a group must make a hit.
const suspicious = 40 * time.Nanosecond

func (s *dispatchSearch) halve(addrs []uintptr) []uintptr {
	if s.extra(addrs) < suspicious {
		return nil
	}
	if len(addrs) == 1 {
		return addrs
	}
	return append(s.halve(addrs[:len(addrs)/2]), s.halve(addrs[len(addrs)/2:])...)
}

// extra returns how much dearer the probe on getppid gets when the functions
// are attached to as well.
func (s *dispatchSearch) extra(addrs []uintptr) time.Duration { return s.extraOf(addrs) - s.usual }

func (s *dispatchSearch) extraOf(addrs []uintptr) time.Duration {
	var others link.Link
	if len(addrs) > 0 {
		others = s.attach(s.empty, addrs)
		defer others.Close()
	}
	without := quickest()
	probe := s.attach(s.prog, []uintptr{s.getppid})
	defer probe.Close()
	return quickest() - without
}

func (s *dispatchSearch) attach(prog *ebpf.Program, addrs []uintptr) link.Link {
	l, err := link.KprobeMulti(prog, link.KprobeMultiOptions{Addresses: addrs})
	qt.Assert(s.tb, qt.IsNil(err))
	return l
}

// quickest returns the cost of a getppid that no interrupt disturbed.
func quickest() time.Duration {
	best := time.Hour
	for range 20 {
		best = min(best, getppid(50))
	}
	return best
}
