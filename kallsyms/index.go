package kallsyms

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sort"
)

// nameIndex maps keys to symbols: open addressing over 32-bit slots. A slot
// holds, from the lowest bit: the number of a symbol plus one; as many bits of
// the key's hash as there is room for, so that other keys are seldom compared;
// and one bit that says whether the key has further symbols.
//
// These, the duplicates, are few. They stand apart as links from one symbol to
// the next with the same key, sorted by from.
type nameIndex struct {
	key    func(i int) string
	seed   maphash.Seed
	idBits int
	slots  []uint32
	links  []link
}

type link struct{ from, to uint32 }

const more = 1 << 31

// newNameIndex returns the index of n symbols, the k-th of which is id(k), in
// rising order and all below limit. The cost is one hash and about one cache
// miss for each.
func newNameIndex(n, limit int, id func(k int) int, key func(i int) string) *nameIndex {
	x := &nameIndex{
		key:    key,
		seed:   maphash.MakeSeed(),
		idBits: bits.Len(uint(limit)),
		slots:  make([]uint32, 1<<bits.Len(uint(n+n/2))),
	}
	for k := n - 1; k >= 0; k-- { // backwards: each new symbol goes before the others of its key
		i := id(k)
		x.insert(i, key(i))
	}
	slices.Reverse(x.links)
	return x
}

func (x *nameIndex) insert(i int, name string) {
	at, slot, entry := x.probe(name)
	if slot != 0 {
		x.links = append(x.links, link{uint32(i), x.symbol(slot)})
		entry |= more
	}
	x.slots[at] = entry | uint32(i+1)
}

// probe returns the slot for name, its content, which is zero if the name is
// not there, and what an entry for name has beside the symbol.
func (x *nameIndex) probe(name string) (at int, slot, entry uint32) {
	h := maphash.String(x.seed, name)
	entry = uint32(h>>32) << x.idBits &^ more
	mask := len(x.slots) - 1
	tag := ^uint32(1<<x.idBits-1) &^ more
	for at = int(h) & mask; ; at = (at + 1) & mask {
		slot = x.slots[at]
		if slot == 0 || slot&tag == entry && x.key(int(x.symbol(slot))) == name {
			return at, slot, entry
		}
	}
}

func (x *nameIndex) symbol(slot uint32) uint32 { return slot&(1<<x.idBits-1) - 1 }

// appendTo appends the symbols whose key is name, in rising order.
func (x *nameIndex) appendTo(dst []int, name string) []int {
	_, slot, _ := x.probe(name)
	if slot == 0 {
		return dst
	}
	i := x.symbol(slot)
	dst = append(dst, int(i))
	if slot&more == 0 {
		return dst
	}
	for {
		k := sort.Search(len(x.links), func(k int) bool { return x.links[k].from >= i })
		if k == len(x.links) || x.links[k].from != i {
			return dst
		}
		i = x.links[k].to
		dst = append(dst, int(i))
	}
}
