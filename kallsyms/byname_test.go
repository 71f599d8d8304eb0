package kallsyms

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestByNameKeepsOrder(t *testing.T) {
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("%x t same [m%d]", 0x9000000-i, i%7), fmt.Sprintf("%x t other%d", i+1, i))
	}
	tab := mustParse(t, lines...)
	list := tab.ByName("same")
	qt.Assert(t, qt.Equals(len(list), 5000))
	for k, i := range list {
		qt.Assert(t, qt.Equals(i, 2*k))
	}
	qt.Assert(t, qt.DeepEquals(tab.ByName("other4999"), []int{9999}))
}

func TestAppendByName(t *testing.T) {
	tab := mustParse(t, "10 t a", "20 t b", "30 t a")
	dst := make([]int, 0, 8)
	dst = tab.AppendByName(dst, []byte("a"))
	dst = tab.AppendByName(dst, []byte("none"))
	dst = tab.AppendByName(dst, []byte("b"))
	qt.Assert(t, qt.DeepEquals(dst, []int{0, 2, 1}))
	name := []byte("a")
	allocs := testing.AllocsPerRun(100, func() { dst = tab.AppendByName(dst[:0], name) })
	qt.Assert(t, qt.Equals(allocs, 0))
}

func TestVariants(t *testing.T) {
	tab := mustParse(t,
		"10 t __pfx_f", "20 t f", "30 t f.isra.0", "40 t f.isra.0.cold", "50 t f.cold",
		"60 t ff.isra.0", "70 t __cfi_f", "80 t f$00112233445566778899aabbccddeeff",
		"90 t __pfx_f.constprop.1", "a0 d f.7", "b0 t f$short", "c0 t .f", "d0 t .f.cold", "e0 t __pfx_",
	)
	for name, want := range map[string][]string{
		"f": {
			"__pfx_f", "f.isra.0", "f.isra.0.cold", "f.cold", "__cfi_f",
			"f$00112233445566778899aabbccddeeff", "__pfx_f.constprop.1", "f.7",
		},
		"f.isra.0":      {"f.isra.0.cold"},
		"f.constprop.1": {"__pfx_f.constprop.1"},
		".f":            {".f.cold"},
		"ff":            {"ff.isra.0"},
		"g":             nil,
		"":              nil,
		".":             nil,
		"f.":            nil,
		"f.isra":        {"f.isra.0", "f.isra.0.cold"},
	} {
		qt.Check(t, qt.DeepEquals(namesOf(tab, tab.Variants(name)), want), qt.Commentf("%q", name))
	}
}

func TestResolve(t *testing.T) {
	tab := mustParse(t,
		"10 t alias", "10 t alias [m]", // one address twice
		"20 d mixed", "30 t mixed", // data and a function
		"40 d twice", "50 d twice",
		"60 t lto.llvm.1", "70 t lto.llvm.2",
		"80 d var.llvm.5",
		"90 t gone.part.0", "a0 t gone.constprop.0", "b0 t gone.constprop.0.cold",
	)
	for name, want := range map[string]uint64{"alias": 0x10, "mixed": 0x30, "var": 0x80, "lto.llvm.2": 0x70} {
		s, err := tab.Resolve(name)
		qt.Check(t, qt.IsNil(err), qt.Commentf("%s", name))
		qt.Check(t, qt.Equals(s.Addr, want), qt.Commentf("%s", name))
	}
	for _, name := range []string{"twice", "lto"} {
		_, err := tab.Resolve(name)
		qt.Check(t, qt.ErrorIs(err, ErrAmbiguous))
	}
	_, err := tab.Resolve("gone")
	qt.Check(t, qt.ErrorMatches(err, "symbol gone: not found; the compiler made gone.constprop.0 of it.*"))
	_, err = tab.Resolve("never")
	qt.Check(t, qt.ErrorMatches(err, "symbol never: not found"))
	_, err = tab.ResolveIn("m", "mixed")
	qt.Check(t, qt.ErrorIs(err, ErrNotFound))
}

// Hidden duplicates cannot be told apart, and are not one and the same.
func TestResolveHidden(t *testing.T) {
	tab := mustParse(t, "0 t a", "0 t a", "0 t b", "0 D c")
	_, err := tab.Resolve("a")
	qt.Check(t, qt.ErrorIs(err, ErrAmbiguous))
	for _, name := range []string{"b", "c"} {
		s, err := tab.Resolve(name)
		qt.Check(t, qt.ErrorIs(err, ErrHidden))
		qt.Check(t, qt.Equals(s.Name, name))
	}
}

func TestAmbiguousErrorIsShort(t *testing.T) {
	var lines []string
	for i := range 17 {
		lines = append(lines, fmt.Sprintf("%x t many", 16+i))
	}
	_, err := mustParse(t, lines...).Resolve("many")
	qt.Assert(t, qt.ErrorMatches(err, `symbol many: 17 addresses \(0x10 many, 0x11 many, 0x12 many, `+
		`0x13 many, 0x14 many and 12 more\); choose by module or address`))
}
