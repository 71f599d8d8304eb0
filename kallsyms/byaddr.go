package kallsyms

import (
	"cmp"
	"fmt"
	"slices"
)

// Location is where an address lies.
type Location struct {
	// Symbol is the function, and Index its number. Of several functions at
	// one address it is the first one that is no padding or fragment.
	Symbol Symbol
	Index  int
	// Aliases are the other functions at the same address.
	Aliases []Symbol
	// Offset is the distance from the start of the function.
	Offset uint64
	// Size is the distance to the next symbol, alignment included, because
	// kallsyms has no sizes. Zero if the function is the last one of its
	// section or module.
	Size uint64
}

// String returns the location as the kernel prints it: name+0x10/0x40 [mod].
// An unknown size is left out.
func (l Location) String() string {
	s := fmt.Sprintf("%s+%#x", l.Symbol.Name, l.Offset)
	if l.Size != 0 {
		s += fmt.Sprintf("/%#x", l.Size)
	}
	if l.Symbol.Module != "" {
		s += " [" + l.Symbol.Module + "]"
	}
	return s
}

// AddrOrder returns the numbers of all symbols that have an address, text and
// data, sorted by it; symbols at one address keep the order of the source. The
// slice belongs to the table and must not be changed. The first call sorts
// what is not sorted, which is nothing of vmlinux.
//
// Absolute symbols (A and a) are left out: x86-64 before 6.15 has per-CPU
// offsets there.
func (t *Table) AddrOrder() []uint32 { return t.byAddr().order }

// addrIndex is the order by address. The address of every sampleEvery-th
// symbol stands in sample once more: a search goes through these few
// kilobytes first, and only then to symbols, two cache misses a step.
type addrIndex struct {
	order  []uint32
	sample []uint64
}

const sampleEvery = 64

func (t *Table) byAddr() *addrIndex {
	return t.addrs.get(func() *addrIndex {
		x := &addrIndex{order: t.buildOrder()}
		for k := 0; k < len(x.order); k += sampleEvery {
			x.sample = append(x.sample, t.Addr(int(x.order[k])))
		}
		return x
	})
}

func (t *Table) buildOrder() []uint32 {
	order := make([]uint32, 0, t.n-t.zeroText)
	for i := range t.n {
		if t.Type(i)|0x20 != 'a' && !t.hides(i) {
			order = append(order, uint32(i))
		}
	}
	head := t.sortedPrefix(order)
	tail := order[head:]
	slices.SortFunc(tail, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.Addr(int(a)), t.Addr(int(b))), cmp.Compare(a, b))
	})
	if len(tail) == 0 || head == 0 || t.Addr(int(tail[0])) >= t.Addr(int(order[head-1])) {
		return order
	}
	return t.merge(order[:head], tail) // modules below vmlinux: arm64
}

func (t *Table) sortedPrefix(order []uint32) int {
	for k := 1; k < len(order); k++ {
		if t.Addr(int(order[k])) < t.Addr(int(order[k-1])) {
			return k
		}
	}
	return len(order)
}

// merge returns two sorted lists as one. Symbols of a go first.
func (t *Table) merge(a, b []uint32) []uint32 {
	all := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if t.Addr(int(b[0])) < t.Addr(int(a[0])) {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}

// At returns the numbers of all symbols exactly at addr, text and data, in the
// order of the source. Hidden and absolute symbols are at no address.
func (t *Table) At(addr uint64) []int { return t.AppendAt(nil, addr) }

// AppendAt appends to dst what [Table.At] returns.
func (t *Table) AppendAt(dst []int, addr uint64) []int {
	order := t.AddrOrder()
	for _, i := range order[t.search(addr):] {
		if t.Addr(int(i)) != addr {
			break
		}
		dst = append(dst, int(i))
	}
	return dst
}

// search returns the place in AddrOrder of the first symbol at or above addr.
func (t *Table) search(addr uint64) int {
	x := t.byAddr()
	k, _ := slices.BinarySearch(x.sample, addr)
	if k == 0 {
		return 0
	}
	low, high := (k-1)*sampleEvery+1, min(k*sampleEvery, len(x.order))
	for low < high {
		mid := (low + high) / 2
		if t.Addr(int(x.order[mid])) < addr {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Find returns the function that covers addr, and whether there is one. It is
// [Table.Locate] without the reason.
func (t *Table) Find(addr uint64) (Location, bool) {
	l, err := t.Locate(addr)
	return l, err == nil
}

// Locate returns the function that covers addr: the last one at or below it.
// A function ends where the next symbol begins. Where the next symbol is data
// or belongs to another module, the end is not known: at the latest, the
// function is taken to end with the page it begins in.
//
// Errors are [ErrNotFound], for data and for gaps too, and [ErrHidden]. The
// cost is a binary search.
func (t *Table) Locate(addr uint64) (Location, error) {
	if t.State() == Hidden {
		return Location{}, &hiddenError{name: fmt.Sprintf("%#x", addr)}
	}
	order := t.AddrOrder()
	next := len(order)
	if addr != ^uint64(0) {
		next = t.search(addr + 1)
	}
	if next == 0 {
		return Location{}, notCovered(addr)
	}
	start := t.Addr(int(order[next-1]))
	first := next - 1
	for first > 0 && t.Addr(int(order[first-1])) == start {
		first--
	}
	group := order[first:next]
	main, ok := t.main(group)
	if !ok {
		return Location{}, notCovered(addr)
	}
	l := Location{Symbol: t.Symbol(main), Index: main, Offset: addr - start, Size: t.size(main, order[next:])}
	if l.Size == 0 && !t.inTail(l, group) {
		return Location{}, notCovered(addr)
	}
	l.Aliases = t.aliases(group, main)
	return l, nil
}

func notCovered(addr uint64) error {
	return fmt.Errorf("address %#x: no function covers it: %w", addr, ErrNotFound)
}

// main returns the symbol of group that names the place.
func (t *Table) main(group []uint32) (int, bool) {
	if len(group) == 1 { // the usual case needs no name
		return int(group[0]), IsText(t.Type(int(group[0])))
	}
	first := -1
	for _, k := range group {
		i := int(k)
		switch {
		case !IsText(t.Type(i)):
		case Classify(t.Name(i)).IsFunction():
			return i, true
		case first < 0:
			first = i
		}
	}
	return first, first >= 0
}

func (t *Table) aliases(group []uint32, main int) []Symbol {
	var list []Symbol
	for _, k := range group {
		if i := int(k); i != main && IsText(t.Type(i)) {
			list = append(list, t.Symbol(i))
		}
	}
	return list
}

// size returns the distance from symbol i to the first symbol of above, if
// code of the same module begins there; else zero.
func (t *Table) size(i int, above []uint32) uint64 {
	if len(above) == 0 || isTextEnd(t.Name(i)) {
		return 0
	}
	next := t.Addr(int(above[0]))
	for _, k := range above {
		j := int(k)
		if t.Addr(j) != next {
			break
		}
		if IsText(t.Type(j)) && t.Module(j) == t.Module(i) {
			return next - t.Addr(i)
		}
	}
	return 0
}

// inTail returns whether a location of unknown size is still believable.
func (t *Table) inTail(l Location, group []uint32) bool {
	ended := slices.ContainsFunc(group, func(k uint32) bool { return isTextEnd(t.Name(int(k))) })
	return l.Offset == 0 || !ended && l.Symbol.Addr>>12 == (l.Symbol.Addr+l.Offset)>>12
}

// isTextEnd returns whether name marks the end of code, where nothing begins
// (include/asm-generic/sections.h).
func isTextEnd(name string) bool { return name == "_etext" || name == "_einittext" }
