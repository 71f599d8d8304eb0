// Package slots makes the table from which a BPF program reads the index of
// its target by address, in one load.
//
// Function entries are 16-byte aligned on x86-64 as Debian builds it, so
// (entry - base) >> 4 is a slot of its own for each: 6.12 has 3.3 MB of them.
// Where two targets fall into one slot it stays empty, and the program takes
// the cookie. Modules lie up to a gigabyte away and always use the cookie.
package slots

import "github.com/kallscope/kallscope"

// Shift is how many bits of an address one slot covers.
const Shift = 4

// Sizes between which the table pays off: fewer targets are found as fast by
// their cookie (a search of 16 steps for 40,000, some 25 instructions each), and
// a wider text would need too much memory.
const (
	minTargets = 16
	maxSlots   = 1 << 22
)

// A Table maps slots to targets.
type Table struct {
	// Base is the address of slot 0.
	Base uint64
	// slots hold index+1; 0 means that the cookie must say.
	targets []kallscope.Target
	n       int
}

// New returns the table for targets; an empty one when it would not pay.
func New(targets []kallscope.Target) *Table {
	t := &Table{targets: targets}
	low, high, n := ^uint64(0), uint64(0), 0
	for i := range targets {
		if !covered(&targets[i]) {
			continue
		}
		low, high, n = min(low, targets[i].Addr), max(high, targets[i].Addr), n+1
	}
	if n < minTargets || (high-low)>>Shift >= maxSlots {
		return t
	}
	t.Base = low &^ (1<<Shift - 1)
	t.n = int((high-t.Base)>>Shift) + 1
	return t
}

// covered targets are those whose cookie the kernel has to search for; by the
// other mechanisms it is at hand.
func covered(t *kallscope.Target) bool {
	switch t.Mechanism {
	case kallscope.KprobeMulti, kallscope.KretprobeMulti, kallscope.KprobeSession:
		return t.Module == kallscope.Vmlinux && t.Addr != 0
	}
	return false
}

// Len returns the number of slots.
func (t *Table) Len() int { return t.n }

// put writes the table into slots, which are zero.
func (t *Table) put(slots []uint32) {
	if t.n == 0 {
		return
	}
	shared := make(map[uint64]bool)
	for i := range t.targets {
		if !covered(&t.targets[i]) {
			continue
		}
		slot := (t.targets[i].Addr - t.Base) >> Shift
		switch {
		case shared[slot]:
		case slots[slot] != 0:
			slots[slot], shared[slot] = 0, true
		default:
			slots[slot] = uint32(i) + 1
		}
	}
}
