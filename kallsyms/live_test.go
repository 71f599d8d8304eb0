package kallsyms

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// readProc returns /proc/kallsyms, where there is one.
func readProc(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		tb.Skipf("no /proc/kallsyms on %s: %v", runtime.GOOS, err)
	}
	return b
}

// The kernel this runs on must be read without a single oddity, and as the
// naive reader reads it.
func TestLive(t *testing.T) {
	b := readProc(t)
	tab, err := Read(bytes.NewReader(b), Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Lines(), bytes.Count(b, []byte("\n"))))
	want, err := naive(bytes.NewReader(b))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Len()+tab.Mapping(), len(want)))
	i := 0
	for _, s := range want {
		if !isMapping(s.Name) {
			qt.Assert(t, qt.Equals(tab.Symbol(i), s))
			i++
		}
	}
}

// Every function must be found at its address, by its name, and in the middle.
func TestLiveLookups(t *testing.T) {
	tab, err := Parse(readProc(t), Options{})
	qt.Assert(t, qt.IsNil(err))
	for i, s := range tab.All() {
		if list := tab.ByName(s.Name); !slices.Contains(list, i) {
			t.Fatalf("%s: %v has no %d", s.Name, list, i)
		}
		if tab.State() != Visible || !s.IsText() {
			continue
		}
		l, ok := tab.Find(s.Addr)
		if !ok || l.Symbol.Addr != s.Addr || l.Offset != 0 {
			t.Fatalf("%v: found %v", s, l)
		}
		if l.Size == 0 {
			continue
		}
		mid, ok := tab.Find(s.Addr + l.Size - 1)
		if !ok || mid.Index != l.Index {
			t.Fatalf("%v: its last byte belongs to %v", s, mid)
		}
	}
}

// A suffix without a rule is reported, and this is the report.
func TestLiveSuffixes(t *testing.T) {
	tab, err := Parse(readProc(t), Options{})
	qt.Assert(t, qt.IsNil(err))
	unknown := make(map[string]int)
	for _, s := range tab.All() {
		if s.IsText() && !IsPseudoModule(s.Module) && Classify(s.Name) == ClassUnknown {
			unknown[Suffix(s.Name)]++
		}
	}
	for suffix, n := range unknown {
		t.Logf("no rule for %q: %d symbols", suffix, n)
	}
	qt.Assert(t, qt.IsTrue(len(unknown) < 20))
}

// All that is allocated bounds the growth of memory, garbage or not. The
// number of symbols is that of a distribution's kernel.
func TestMemory(t *testing.T) {
	text := generate(bigList{symbols: 155_000, vmlinuxOnly: true})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tab, err := Read(bytes.NewReader(text), Options{})
	runtime.ReadMemStats(&after)
	qt.Assert(t, qt.IsNil(err))
	read := after.TotalAlloc - before.TotalAlloc
	tab.ByName("x")
	runtime.ReadMemStats(&before)
	index := before.TotalAlloc - after.TotalAlloc
	t.Logf("%d symbols, %d bytes of text: table %d bytes, index by name %d bytes", tab.Len(), len(text), read, index)
	qt.Check(t, qt.IsTrue(read < 8<<20))
	qt.Check(t, qt.IsTrue(read+index < 10<<20))
	qt.Check(t, qt.IsTrue(read < uint64(len(text))))
	runtime.KeepAlive(tab)
}

// Many symbols of one name must cost no more than as many names.
func TestManyDuplicates(t *testing.T) {
	const n = 200_000
	line := "ffffffff81000000 t same\n"
	tab, err := Parse([]byte(strings.Repeat(line, n)), Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(len(tab.ByName("same")), n))
	qt.Assert(t, qt.Equals(len(tab.At(0xffffffff81000000)), n))
	l, ok := tab.Find(0xffffffff81000001)
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.Equals(len(l.Aliases), n-1))
}
