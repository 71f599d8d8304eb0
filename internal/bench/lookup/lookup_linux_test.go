package lookup

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
				if broken, ok := errors.AsType[*ebpf.VerifierError](err); ok {
					t.Logf("%+v", broken)
				}
				testutil.NotOn(t, err, "6.1", "6.12", "7.3")
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

// TestJoinBound holds the product's join to four passes that only take lines
// apart. What else the machine does can only make it worse: the best of five
// counts.
func TestJoinBound(t *testing.T) {
	testutil.Guest(t)
	in := realSource(t).Input(60_000, 160_000)
	best := math.Inf(1)
	for range 5 {
		cell, err := Measure(in, []Method{product}, 1)
		qt.Assert(t, qt.IsNil(err))
		best = min(best, cell.Results[0].Time.Seconds()/cell.Parse.Seconds())
	}
	fmt.Printf("60,000 wanted among 160,000 symbols: %.2f of a parse-only pass\n", best)
	qt.Assert(t, qt.IsTrue(best <= 4), qt.Commentf("%.2f", best))
}

// TestFigures prints what all methods take, those in the kernel too. Under vmrun
// -icount 1 ns is one instruction.
func TestFigures(t *testing.T) {
	testutil.Guest(t)
	if testing.Short() {
		t.Skip("a measurement; run it by name, without -short")
	}
	s := realSource(t)
	cell, err := Measure(s.Input(s.Functions(), s.Symbols()), slices.Concat(Methods(), KernelMethods()), 1)
	qt.Assert(t, qt.IsNil(err))
	fmt.Printf("%d functions, %d symbols: read %v, parse %v\n", cell.Wanted, cell.Symbols, cell.Read, cell.Parse)
	for _, r := range cell.Results {
		fmt.Printf("%-13s %12v  %.2f of parse, %d bytes\n", r.Method.Name, r.Time, r.Time.Seconds()/cell.Parse.Seconds(), r.Bytes)
	}
}
