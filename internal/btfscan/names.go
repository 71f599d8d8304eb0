package btfscan

import (
	"hash/maphash"
	"math/bits"
	"strings"
)

// name returns the string at off, which continues the base's. It is "" for
// offsets outside, which [Parse] has refused for names of types.
func (b *BTF) name(off uint32) string {
	s, _ := b.lookup(off)
	return s
}

// lookup returns the string at off, without copying.
func (b *BTF) lookup(off uint32) (string, bool) {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	off -= b.strOff
	if uint64(off) >= uint64(len(b.str)) {
		return "", off == 0
	}
	s := b.str[off:]
	// Parse has seen the NUL at the end of the section.
	return s[:strings.IndexByte(s, 0)], true
}

// hasName says whether the string at off is name, without looking for its end.
func (b *BTF) hasName(off uint32, name string) bool {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	off -= b.strOff
	if uint64(off)+uint64(len(name)) >= uint64(len(b.str)) {
		return false
	}
	s := b.str[off:]
	return s[:len(name)] == name && s[len(name)] == 0
}

// nameIndex finds functions by name: open addressing over the distinct names,
// equal ones chained. The seed is random, so names chosen to collide do not.
type nameIndex struct {
	seed  maphash.Seed
	slots []uint32 // 1 + index of the first function of the name
	next  []uint32 // 1 + index of the next one; nil while names are unique
}

func (b *BTF) indexNames() nameIndex {
	x := nameIndex{seed: maphash.MakeSeed()}
	x.slots = make([]uint32, 1<<bits.Len(uint(len(b.funcs)*3/2)))
	// From the last to the first, so that each chain begins with the lowest.
	for i := len(b.funcs) - 1; i >= 0; i-- {
		slot := x.slot(b, b.name(b.funcs[i].nameOff))
		if head := *slot; head != 0 {
			if x.next == nil {
				x.next = make([]uint32, len(b.funcs))
			}
			x.next[i] = head
		}
		*slot = uint32(i) + 1
	}
	return x
}

// slot returns the slot of name, or the free one where it belongs. A third of
// them at least is free.
func (x *nameIndex) slot(b *BTF, name string) *uint32 {
	mask := uint64(len(x.slots) - 1)
	for h := maphash.String(x.seed, name) & mask; ; h = (h + 1) & mask {
		s := &x.slots[h]
		if *s == 0 || b.hasName(b.funcs[*s-1].nameOff, name) {
			return s
		}
	}
}

// find returns the index of the first function of this name, or -1.
func (x *nameIndex) find(b *BTF, name string) int { return int(*x.slot(b, name)) - 1 }

// after returns the index of the next function of the same name, or -1.
func (x *nameIndex) after(i int) int {
	if x.next == nil {
		return -1
	}
	return int(x.next[i]) - 1
}
