package kallsyms

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"
)

// mustParse returns the table of lines in a short form: address, type, name,
// perhaps [module].
func mustParse(tb testing.TB, lines ...string) *Table {
	tb.Helper()
	t, err := Parse([]byte(strings.Join(lines, "\n")+"\n"), Options{Lenient: true})
	qt.Assert(tb, qt.IsNil(err))
	qt.Assert(tb, qt.Equals(t.Skipped(), 0))
	return t
}

func TestIsText(t *testing.T) {
	for c := range 256 {
		qt.Check(t, qt.Equals(IsText(byte(c)), strings.ContainsRune("tTwW", rune(c))))
	}
}

func TestIsPseudoModule(t *testing.T) {
	for name, want := range map[string]bool{
		"bpf": true, "__builtin__ftrace": true, "__builtin__kprobes": true,
		"": false, "bpfilter": false, "builtin": false,
	} {
		qt.Check(t, qt.Equals(IsPseudoModule(name), want), qt.Commentf("%s", name))
	}
}

func TestState(t *testing.T) {
	for _, c := range []struct {
		want  State
		lines []string
	}{
		{Visible, []string{"10 T a", "20 D b"}},
		{Visible, []string{"0 A percpu", "1f0 A percpu2", "ffffffff81000000 T a"}},
		{Visible, []string{"10 D a"}},
		{Hidden, []string{"0 T a", "0 D b"}},
		{Hidden, []string{"0 T a", "30 D b"}},
		{Hidden, []string{"0 D a"}},
		{Partial, []string{"0 T a", "10 t b"}},
	} {
		qt.Check(t, qt.Equals(mustParse(t, c.lines...).State(), c.want), qt.Commentf("%q", c.lines))
	}
	qt.Check(t, qt.Equals(new(Table).State(), Empty))
	qt.Check(t, qt.Equals(fmt.Sprint(Empty, Visible, Hidden, Partial, State(9)),
		"empty visible hidden partial State(9)"))
}

// The zero Table is empty and answers everything.
func TestZeroTable(t *testing.T) {
	var tab Table
	for range tab.All() {
		t.Error("symbol in an empty table")
	}
	for range tab.InModule("") {
		t.Error("symbol in an empty table")
	}
	qt.Check(t, qt.Equals(tab.Len(), 0))
	qt.Check(t, qt.IsNil(tab.ByName("a")))
	qt.Check(t, qt.IsNil(tab.Variants("a")))
	qt.Check(t, qt.IsNil(tab.At(0)))
	qt.Check(t, qt.Equals(len(tab.AddrOrder()), 0))
	qt.Check(t, qt.Equals(len(tab.Modules()), 0))
	_, err := tab.Resolve("a")
	qt.Check(t, qt.ErrorIs(err, ErrNotFound))
	_, err = tab.Locate(1)
	qt.Check(t, qt.ErrorIs(err, ErrNotFound))
}

func TestModules(t *testing.T) {
	tab := mustParse(t, "10 T a", "20 t b [m]", "30 t c [m]", "40 t d [n]", "50 t e [m]", "60 T f", "70 t g [bpf]")
	qt.Assert(t, qt.DeepEquals(tab.Modules(), []string{"m", "n", "bpf"}))
	var got []string
	for i, s := range tab.All() {
		qt.Check(t, qt.Equals(s, tab.Symbol(i)))
		got = append(got, s.Name+s.Module)
	}
	qt.Assert(t, qt.DeepEquals(got, []string{"a", "bm", "cm", "dn", "em", "f", "gbpf"}))
	for module, want := range map[string][]int{"": {0, 5}, "m": {1, 2, 4}, "n": {3}, "bpf": {6}, "none": nil} {
		qt.Check(t, qt.DeepEquals(slices.Collect(tab.InModule(module)), want), qt.Commentf("%s", module))
	}
}

// A list may hold modules only; then no run of vmlinux comes first.
func TestModulesOnly(t *testing.T) {
	tab := mustParse(t, "20 t b [m]", "30 t c [n]")
	qt.Check(t, qt.DeepEquals(tab.Modules(), []string{"m", "n"}))
	qt.Check(t, qt.Equals(tab.Module(0), "m"))
	qt.Check(t, qt.Equals(tab.Module(1), "n"))
	qt.Check(t, qt.IsNil(slices.Collect(tab.InModule(""))))
}

func TestIteratorsStop(t *testing.T) {
	tab := mustParse(t, "10 T a", "20 T b", "30 t c [m]")
	n := 0
	for range tab.All() {
		n++
		break
	}
	for range tab.InModule("") {
		n++
		break
	}
	qt.Assert(t, qt.Equals(n, 2))
}

func TestChunkBorders(t *testing.T) {
	for _, n := range []int{1, chunkLen - 1, chunkLen, chunkLen + 1, 3 * chunkLen} {
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("%x T f%d", 0x1000+i, i))
		}
		tab := mustParse(t, lines...)
		qt.Assert(t, qt.Equals(tab.Len(), n))
		for _, i := range []int{0, n / 2, n - 1} {
			name := fmt.Sprintf("f%d", i)
			qt.Check(t, qt.Equals(tab.Name(i), name))
			qt.Check(t, qt.Equals(tab.Addr(i), uint64(0x1000+i)))
			qt.Check(t, qt.DeepEquals(tab.ByName(name), []int{i}))
		}
	}
}

// Many goroutines may be the first to need an index.
func TestConcurrentUse(t *testing.T) {
	tab := mustParse(t, "10 T a", "20 T b.isra.0", "30 t c [m]")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			qt.Check(t, qt.DeepEquals(tab.ByName("c"), []int{2}))
			qt.Check(t, qt.DeepEquals(tab.Variants("b"), []int{1}))
			l, ok := tab.Find(0x11)
			qt.Check(t, qt.IsTrue(ok && l.Symbol.Name == "a"))
		})
	}
	wg.Wait()
}
