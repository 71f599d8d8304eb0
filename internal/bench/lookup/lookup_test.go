package lookup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/testutil"
)

// twin answers in the way that is easiest to check.
func twin(in *Input) [][]uint64 {
	answer := make([][]uint64, in.Wanted.Len())
	for line := range strings.Lines(string(in.Text)) {
		var addr uint64
		var typ, name string
		fmt.Sscanf(line, "%x %s %s", &addr, &typ, &name)
		for i, wanted := range in.Wanted.Names {
			if wanted == name {
				answer[i] = append(answer[i], addr)
			}
		}
	}
	return answer
}

func resolve(t *testing.T, m Method, in *Input) *Answer {
	t.Helper()
	run, err := m.Prepare(in)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", m.Name))
	answer, err := run.Resolve()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", m.Name))
	qt.Assert(t, qt.IsNil(run.close()))
	return answer
}

// checkAll compares every method with the twin.
func checkAll(t *testing.T, in *Input) {
	t.Helper()
	want := twin(in)
	found := 0
	for _, addrs := range want {
		found += min(1, len(addrs))
	}
	for _, m := range Methods() {
		answer := resolve(t, m, in)
		qt.Assert(t, qt.Equals(answer.Len(), len(want)))
		qt.Assert(t, qt.Equals(answer.Found(), found), qt.Commentf("%s", m.Name))
		for i := range want {
			qt.Assert(t, qt.DeepEquals(answer.Addrs(i), want[i]), qt.Commentf("%s: %q", m.Name, in.Wanted.Names[i]))
		}
	}
}

func wantedNames(names ...string) *Wanted {
	w := &Wanted{Names: names}
	for i := range names {
		w.IDs = append(w.IDs, uint32(10+i))
	}
	return w
}

const smallText = `ffffffff81000000 T b
ffffffff81000010 t a
ffffffff81000020 t dup
ffffffff81000030 D data
ffffffff81000040 t dup
ffffffffc0000000 t a	[mod]
ffffffffc0000010 t dup	[mod]
`

func TestMethodsAgree(t *testing.T) {
	for name, in := range map[string]*Input{
		"usual":      {Wanted: wantedNames("a", "b", "none", "dup", "data"), Text: []byte(smallText)},
		"duplicates": {Wanted: wantedNames("dup", "none", "dup", "a", "none", "dup"), Text: []byte(smallText)},
		"no wanted":  {Wanted: wantedNames(), Text: []byte(smallText)},
		"no symbols": {Wanted: wantedNames("a", "a"), Text: nil},
		"hidden":     {Wanted: wantedNames("a", "none", "dup"), Text: []byte("0000000000000000 t a\n0000000000000000 t dup\n0000000000000000 t dup\n")},
		"empty name": {Wanted: wantedNames("", "a"), Text: []byte(smallText)},
	} {
		t.Run(name, func(t *testing.T) { checkAll(t, in) })
	}
}

// TestMethodsAgreeGenerated has names that are there several times, on both
// sides and on one, and names that are not there.
func TestMethodsAgreeGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%016x t fn_%d\n", 0xffffffff81000000+uint64(i)*16, r.IntN(2000))
	}
	var wanted []string
	for range 500 {
		wanted = append(wanted, fmt.Sprintf("fn_%d", r.IntN(2500)))
	}
	checkAll(t, &Input{Wanted: wantedNames(wanted...), Text: []byte(text.String())})
}

// realSource is what this machine has.
func realSource(tb testing.TB) *Source {
	tb.Helper()
	s, err := Open("")
	if errors.Is(err, os.ErrNotExist) {
		tb.Skip(err)
	}
	qt.Assert(tb, qt.IsNil(err))
	return s
}

// TestMethodsAgreeReal compares all fast methods on all functions of the kernel
// this runs on, and on more symbols than it has; the linear one on a sample.
func TestMethodsAgreeReal(t *testing.T) {
	s := realSource(t)
	for _, size := range [][2]int{
		{s.Functions(), s.Symbols()},
		{s.Functions() / 3, s.Symbols() / 4},
		{s.Functions() * 5 / 4, s.Symbols() * 3 / 2},
	} {
		in := s.Input(size[0], size[1])
		want := resolve(t, hashed, in)
		qt.Assert(t, qt.Equals(want.Len(), size[0]))
		for _, m := range Methods() {
			in, want := in, want
			if m.Sample > 0 {
				in = &Input{Wanted: in.Wanted.spread(m.Sample), Text: in.Text}
				want = resolve(t, hashed, in)
			}
			answer := resolve(t, m, in)
			qt.Check(t, qt.IsTrue(answer.Equal(want, false)), qt.Commentf("%s, %v", m.Name, size))
		}
		if size[1] >= s.Symbols() {
			qt.Check(t, qt.IsTrue(want.Found() > size[0]/2), qt.Commentf("%d of %d", want.Found(), size[0]))
		}
	}
}

// FuzzMethodsAgree takes symbols and wanted names as lines.
func FuzzMethodsAgree(f *testing.F) {
	f.Add("a\nb\na\nc", "a\nnone\nc\na")
	f.Add("", "a")
	f.Add("a", "")
	f.Fuzz(func(t *testing.T, symbols, wanted string) {
		if len(symbols) > 1<<10 || len(wanted) > 1<<9 {
			return // the twin is quadratic
		}
		var text strings.Builder
		for i, name := range strings.Split(symbols, "\n") {
			if name != "" && isName(name) {
				fmt.Fprintf(&text, "%016x t %s\n", 0xffffffff81000000+uint64(i)*16, name)
			}
		}
		checkAll(t, &Input{Wanted: wantedNames(strings.Split(wanted, "\n")...), Text: []byte(text.String())})
	})
}

// isName leaves out what would not be one word of a line, or no symbol.
func isName(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 && !strings.ContainsAny(s[:1], "$.L")
}

func TestAnswerDiffers(t *testing.T) {
	a, b := newAnswer(2), newAnswer(2)
	a.add(1, 5)
	b.add(1, 5)
	qt.Check(t, qt.IsTrue(a.finish().Equal(b.finish(), false)))
	b.add(1, 6)
	qt.Check(t, qt.IsFalse(a.Equal(b.finish(), false)))
	qt.Check(t, qt.IsTrue(a.Equal(b, true)))
	a.add(0, 0) // a hidden address is not the same as none
	qt.Check(t, qt.IsFalse(a.Equal(b, true)))
}

// small is a kernel without BTF.
func small(t *testing.T) *Source {
	t.Helper()
	s, err := Open(testutil.Kernel{Kallsyms: smallText}.Root(t))
	qt.Assert(t, qt.IsNil(err))
	return s
}

func TestInputGrows(t *testing.T) {
	s := small(t)
	qt.Assert(t, qt.ErrorIs(s.NoBTF, os.ErrNotExist))
	qt.Assert(t, qt.DeepEquals([]int{s.Functions(), s.Symbols(), s.Bytes()}, []int{6, 7, len(smallText)}))

	in := s.Input(6, 7)
	qt.Check(t, qt.IsTrue(in.Live))
	qt.Check(t, qt.Equals(string(in.Text), smallText))
	qt.Check(t, qt.DeepEquals(in.Wanted.Names, []string{"b", "a", "dup", "dup", "a", "dup"}))

	in = s.Input(2, 3)
	qt.Check(t, qt.IsFalse(in.Live))
	qt.Check(t, qt.DeepEquals(in.Wanted, &Wanted{[]string{"b", "dup"}, []uint32{1, 4}}))
	qt.Check(t, qt.Equals(string(in.Text), "ffffffff81000000 T b\nffffffff81000020 t dup\nffffffff81000040 t dup\n"))

	in = s.Input(8, 13)
	qt.Check(t, qt.DeepEquals(in.Wanted.Names[6:], []string{"b_1", "a_1"}))
	tail := strings.TrimPrefix(string(in.Text), smallText)
	qt.Check(t, qt.Equals(tail, "ffffc90000000070 T b_1\nffffc90000000080 t a_1\nffffc90000000090 t dup_1\n"+
		"ffffc900000000a0 D data_1\nffffc900000000b0 t dup_1\nffffc900000000c0 t a_1\t[mod]\n"))
	checkAll(t, in)
}

func TestMeasure(t *testing.T) {
	s := small(t)
	lie := Method{Name: "lie", Prepare: direct(func(in *Input) (*Answer, error) { return newAnswer(in.Wanted.Len()), nil })}
	_, err := Measure(s.Input(6, 7), []Method{lie}, 1)
	qt.Assert(t, qt.ErrorMatches(err, `lie: 0 of 6 found, which differs from what hash finds, 6`))

	few := linear
	few.Sample = 2
	cell, err := Measure(s.Input(6, 7), []Method{few, hashed, product}, 3)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]int{cell.Wanted, cell.Symbols, len(cell.Results)}, []int{6, 7, 3}))
	qt.Check(t, qt.DeepEquals([]int{cell.Results[0].Sampled, cell.Results[0].Found}, []int{2, 2}))
	qt.Check(t, qt.DeepEquals([]int{cell.Results[1].Sampled, cell.Results[1].Found}, []int{0, 6}))
	for _, r := range cell.Results {
		qt.Check(t, qt.IsTrue(r.Time > 0 && r.Bytes > 0 && r.Allocs > 0), qt.Commentf("%+v", r))
	}
	qt.Check(t, qt.IsTrue(cell.Read > 0 && cell.Parse > 0))
}

func TestFind(t *testing.T) {
	for _, m := range slices.Concat(Methods(), KernelMethods()) {
		found, ok := Find(m.Name)
		qt.Check(t, qt.IsTrue(ok && found.Name == m.Name && found.About != ""))
	}
	_, ok := Find("none")
	qt.Check(t, qt.IsFalse(ok))
}

// BenchmarkResolve is kallscope bench resolve in the form of go test: all methods
// on all functions of this kernel.
func BenchmarkResolve(b *testing.B) {
	s := realSource(b)
	in := s.Input(60_000, 160_000)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, err := parseOnly(in.Text)
			qt.Assert(b, qt.IsNil(err))
		}
	})
	for _, m := range Methods() {
		b.Run(m.Name, func(b *testing.B) {
			c, err := prepare(in, m)
			qt.Assert(b, qt.IsNil(err))
			b.ReportAllocs()
			for b.Loop() {
				_, err := c.run.Resolve()
				qt.Assert(b, qt.IsNil(err))
			}
			per := in.Wanted.Len()
			if c.result.Sampled > 0 {
				per = c.result.Sampled
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(per), "ns/function")
		})
	}
}
