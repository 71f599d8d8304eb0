package slots

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

func targets(addrs ...uint64) []kallscope.Target {
	var ts []kallscope.Target
	for _, a := range addrs {
		ts = append(ts, kallscope.Target{Func: kallscope.Func{Addr: a, Module: kallscope.Vmlinux}, Mechanism: kallscope.KprobeMulti})
	}
	return ts
}

func spread(n int) []uint64 {
	var addrs []uint64
	for i := range n {
		addrs = append(addrs, 0xffffffff81000008+uint64(i)*48)
	}
	return addrs
}

func TestTable(t *testing.T) {
	addrs := spread(minTargets)
	addrs = append(addrs, addrs[3]+4, addrs[3]+7) // share the slot of a third
	ts := targets(addrs...)
	ts = append(ts, kallscope.Target{Func: kallscope.Func{Addr: 0xffffffffc0000000, Module: "fuse"}, Mechanism: kallscope.KprobeMulti})
	table := New(ts)
	qt.Assert(t, qt.Equals(table.Base, 0xffffffff81000000))
	slots := make([]uint32, table.Len())
	table.put(slots)
	used := 0
	for i, target := range ts[:minTargets] {
		want := uint32(i) + 1
		if i == 3 {
			want = 0 // left to the cookie
		}
		qt.Assert(t, qt.Equals(slots[(target.Addr-table.Base)>>Shift], want))
	}
	for _, v := range slots {
		if v != 0 {
			used++
		}
	}
	qt.Assert(t, qt.Equals(used, minTargets-1))
}

func TestTableDoesNotPay(t *testing.T) {
	hidden := make([]uint64, 2*minTargets)
	wide := append(spread(minTargets), 0xffffffff81000000+maxSlots<<Shift+64)
	for name, ts := range map[string][]kallscope.Target{
		"none": nil, "few": targets(spread(minTargets - 1)...), "hidden": targets(hidden...), "wide": targets(wide...),
	} {
		table := New(ts)
		qt.Assert(t, qt.Equals(table.Len(), 0), qt.Commentf("%s", name))
		table.put(nil)
	}
}
