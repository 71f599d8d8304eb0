package lookup

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/testutil"
)

// TestKernelMethodsAgree: what the kernel answers is what its list of symbols
// says.
func TestKernelMethodsAgree(t *testing.T) {
	testutil.Guest(t)
	s := realSource(t)
	in := s.Input(s.Functions(), s.Symbols())
	in.Wanted.Names = append(in.Wanted.Names, "no_such_function", "", in.Wanted.Names[0])
	in.Wanted.IDs = append(in.Wanted.IDs, 0, 0, in.Wanted.IDs[0])
	want := resolve(t, hashed, in)
	for _, m := range KernelMethods() {
		t.Run(m.Name, func(t *testing.T) {
			run, err := m.Prepare(in)
			if err != nil {
				var broken *ebpf.VerifierError
				if errors.As(err, &broken) {
					t.Logf("%+v", broken)
				}
				testutil.NotOn(t, err, missingNowhere(m)...)
				t.Skip(err)
			}
			answer, err := run.Resolve()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsNil(run.close()))
			qt.Assert(t, qt.Equals(answer.Found(), want.Found()))
			if !m.FirstOnly {
				qt.Assert(t, qt.IsTrue(answer.Equal(want, false)))
			}
			for i := range want.Len() {
				if want.found[i] && answer.first[i] != want.first[i] {
					t.Errorf("%s: %#x, the first of %#x wanted", in.Wanted.Names[i], answer.first[i], want.Addrs(i))
				}
			}
		})
	}
}

// missingNowhere returns the kernels of the guests that have what m needs.
func missingNowhere(m Method) []string {
	switch m.Name {
	case "bpf-lookup", "iter-ksym":
		return []string{"6.1", "6.12", "7.3"}
	}
	return nil
}

// TestJoinBound holds the product's join to four passes that only take the lines
// apart, and prints all methods. Under vmrun -icount time counts instructions.
func TestJoinBound(t *testing.T) {
	testutil.Guest(t)
	s := realSource(t)
	for _, symbols := range []int{160_000, 2_000_000} {
		if testing.Short() && symbols > 160_000 {
			continue
		}
		cell, err := Measure(s.Input(60_000, symbols), []Method{product}, 3)
		qt.Assert(t, qt.IsNil(err))
		join := cell.Results[0].Time
		ratio := float64(join) / float64(cell.Parse)
		fmt.Printf("%d symbols: join %v, %.2f of a parse-only pass (%v), %.1f ns a name\n",
			symbols, join, ratio, cell.Parse, float64(join.Nanoseconds())/float64(symbols+60_000))
		qt.Check(t, qt.IsTrue(ratio <= 4), qt.Commentf("%.2f", ratio))
	}
}
