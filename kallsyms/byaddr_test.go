package kallsyms

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestFind(t *testing.T) {
	tab := mustParse(t,
		"0 A percpu", "2000 A percpu_end",
		"ffffffff81000000 T first", "ffffffff81000000 T alias", "ffffffff81000000 D data_there",
		"ffffffff81000040 t __pfx_second", "ffffffff81000050 t second",
		"ffffffff81000080 T last", "ffffffff810000a0 T _etext",
		"ffffffff82000000 R rodata",
		"ffffffff83000000 T _sinittext", "ffffffff83000010 t init_fn", "ffffffff83000020 T _einittext",
		"ffffffffc0002000 t m_b [m]", "ffffffffc0001000 t m_a [m]", "ffffffffc0003000 d m_data [m]",
		"ffffffffc0009ff0 t n_a [n]",
	)
	for _, c := range []struct {
		addr uint64
		want string
	}{
		{0, ""},
		{0x2000, ""},
		{0xffffffff80ffffff, ""},
		{0xffffffff81000000, "first+0x0/0x40"},
		{0xffffffff8100003f, "first+0x3f/0x40"},
		{0xffffffff81000044, "__pfx_second+0x4/0x10"},
		{0xffffffff81000054, "second+0x4/0x30"},
		{0xffffffff8100009f, "last+0x1f/0x20"},
		{0xffffffff810000a0, "_etext+0x0"},
		{0xffffffff810000a1, ""},
		{0xffffffff82000000, ""},
		{0xffffffff82000010, ""},
		{0xffffffff83000011, "init_fn+0x1/0x10"},
		{0xffffffff83000021, ""},
		{0xffffffffc0001fff, "m_a+0xfff/0x1000 [m]"},
		{0xffffffffc0002fff, "m_b+0xfff [m]"}, // data follows: the end is not known
		{0xffffffffc0003000, ""},
		{0xffffffffc0009ff4, "n_a+0x4 [n]"},
		{0xffffffffc000a000, ""}, // past the page of the last function
		{^uint64(0), ""},
	} {
		l, ok := tab.Find(c.addr)
		qt.Check(t, qt.Equals(ok, c.want != ""), qt.Commentf("%#x: %v", c.addr, l))
		if ok {
			qt.Check(t, qt.Equals(l.String(), c.want))
			qt.Check(t, qt.Equals(tab.Symbol(l.Index), l.Symbol))
		}
	}
	l, _ := tab.Find(0xffffffff81000001)
	qt.Check(t, qt.DeepEquals(l.Aliases, []Symbol{{Addr: 0xffffffff81000000, Type: 'T', Name: "alias"}}))
	qt.Check(t, qt.DeepEquals(tab.At(0xffffffff81000000), []int{2, 3, 4}))
	_, err := tab.Locate(0xffffffff82000010)
	qt.Check(t, qt.ErrorMatches(err, "address 0xffffffff82000010: no function covers it: not found"))
}

// What names a place is a function, not the padding that happens to share its
// address.
func TestFindPrefersFunctions(t *testing.T) {
	tab := mustParse(t, "10 t f.cold", "10 t g", "10 t h", "20 t a.cold", "20 t b.part.0", "30 T end")
	l, _ := tab.Find(0x11)
	qt.Check(t, qt.Equals(l.Symbol.Name, "g"))
	qt.Check(t, qt.Equals(len(l.Aliases), 2))
	l, _ = tab.Find(0x21)
	qt.Check(t, qt.Equals(l.Symbol.Name, "a.cold"))
}

// Probes report addresses behind the entry: after endbr64, after int3, after
// BTI. All belong to the function.
func TestFindReportedAddresses(t *testing.T) {
	const rows = `ffffffff8a0011b0,tcp_demo,ffffffff8a0011b4
ffffffff8a002c20,ip_demo,ffffffff8a002c21
ffffffff8a003d00,plain_demo,ffffffff8a003d00
ffffffff8a004e00,both_demo,ffffffff8a004e05
ffff800080010000,arm_demo,ffff800080010000
ffff800080010100,arm_bti,ffff800080010108
`
	list, err := csv.NewReader(strings.NewReader(rows)).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	var lines []string
	for _, r := range list {
		lines = append(lines, r[0]+" t "+r[1])
	}
	tab := mustParse(t, lines...)
	for _, r := range list {
		ip, err := strconv.ParseUint(r[2], 16, 64)
		qt.Assert(t, qt.IsNil(err))
		l, ok := tab.Find(ip)
		qt.Check(t, qt.IsTrue(ok))
		qt.Check(t, qt.Equals(l.Symbol.Name, r[1]))
	}
}

func TestAddrOrder(t *testing.T) {
	for name, lines := range map[string][]string{
		"sorted":        {"10 T a", "20 T b", "20 T c", "30 D d"},
		"modules above": {"10 T a", "20 T b", "50 t e [m]", "40 t d [m]", "40 t dd [m]"},
		"modules below": {"50 T a", "60 T b", "60 T c", "20 t e [m]", "10 t d [m]", "60 t x [m]", "55 t y [m]"},
		"falling":       {"50 T a", "40 T b", "30 T c", "30 T d"},
		"partly hidden": {"0 T a", "20 T b", "0 D c", "10 T d"},
		"text hidden":   {"0 T a", "30 D b", "20 D c"},
		"zero is real":  {"0 D a", "0 A b", "20 T c"},
	} {
		tab := mustParse(t, lines...)
		var want []uint32
		for i, s := range tab.All() {
			hidden := s.Addr == 0 && tab.State() != Visible
			if s.Type != 'A' && !hidden {
				want = append(want, uint32(i))
			}
		}
		slices.SortStableFunc(want, func(a, b uint32) int { return int(tab.Addr(int(a))) - int(tab.Addr(int(b))) })
		qt.Check(t, qt.DeepEquals(tab.AddrOrder(), want), qt.Commentf("%s", name))
	}
}
