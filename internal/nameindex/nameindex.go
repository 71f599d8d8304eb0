// Package nameindex finds numbered things by name, for joins: a hundred
// thousand names are looked up among tens of thousands.
//
// Names are not copied. The index has about ten bytes a name and asks its owner
// for the name of a number once 16 bits of the hash agree.
package nameindex

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// Index is a table of buckets of four names each. What does not fit goes to the
// next bucket. Numbers of one name are a chain.
//
// The seed is random, so names chosen to collide do not. An index is immutable
// and safe for concurrent use.
type Index struct {
	name    func(i int) string
	seed    maphash.Seed
	buckets []bucket
	next    []uint32 // 1 + next number of the same name, of those up to the last that has one
}

// bucket has the tags of its names in one word, which one comparison searches.
type bucket struct {
	tags    uint64    // 16 bits each, filled from the lowest; zero for a free place
	numbers [4]uint32 // 1 + the lowest number of the name; the last may have passed
}

// passed marks a bucket that had no place for a name that belongs there.
const passed = 1 << 31

const (
	lanes    = 0x0001_0001_0001_0001
	laneTops = 0x8000_8000_8000_8000
)

// New returns the index of n names, of which name returns the i-th; it must go
// on returning the same. The cost is a hash and a cache miss for each.
func New(n int, name func(i int) string) *Index {
	x := &Index{
		name: name, seed: maphash.MakeSeed(),
		buckets: make([]bucket, n*2/5+1), // five names for eight places
	}
	var names [Batch]string
	var hashes [Batch]uint64
	for n := n; n > 0; { // backwards, so that each chain begins with the lowest
		size := min(n, Batch)
		n -= size
		for k := range size {
			names[k] = name(n + k)
			hashes[k] = maphash.String(x.seed, names[k])
		}
		for k := size - 1; k >= 0; k-- {
			x.insert(n+k, hashes[k], names[k])
		}
	}
	return x
}

func (x *Index) insert(i int, h uint64, name string) {
	number := x.place(h, name)
	if next := *number &^ passed; next != 0 {
		x.link(i, next)
	}
	*number = *number&passed | uint32(i) + 1
}

// link puts i before others of its name.
func (x *Index) link(i int, next uint32) {
	if x.next == nil { // nothing above i has a next one
		x.next = make([]uint32, i+1)
	}
	x.next[i] = next
}

// place returns where the number of a name stands or belongs: in a free place,
// whose tag it sets.
func (x *Index) place(h uint64, name string) *uint32 {
	for at := x.home(h); ; at = x.after(at) {
		b := &x.buckets[at]
		for m := matches(b.tags, h); m != 0; m &= m - 1 {
			if i := b.number(m); i >= 0 && x.name(i) == name {
				return &b.numbers[lane(m)]
			}
		}
		if free := (bits.Len64(b.tags) + 15) / 16; free < len(b.numbers) {
			b.tags |= tag(h) << (16 * free)
			return &b.numbers[free]
		}
		b.numbers[3] |= passed
	}
}

// number returns the one in the lowest lane of matches, -1 where none is.
func (b *bucket) number(matches uint64) int { return int(b.numbers[lane(matches)]&^passed) - 1 }

// home returns the bucket where the search for a hash begins.
func (x *Index) home(h uint64) uint64 {
	at, _ := bits.Mul64(h, uint64(len(x.buckets)))
	return at
}

func (x *Index) after(at uint64) uint64 {
	if at++; at == uint64(len(x.buckets)) {
		return 0
	}
	return at
}

// tag is never zero, and takes none of the bits that choose the bucket.
func tag(h uint64) uint64 { return h&0xffff | 1 }

// matches returns the top bit of each lane that has the tag of h. Lanes above
// the lowest may be there by mistake, which comparing names finds out.
func matches(tags, h uint64) uint64 {
	d := tags ^ tag(h)*lanes
	return (d - lanes) &^ d & laneTops
}

// lane returns the number of the lowest lane of m, 0 for none.
func lane(m uint64) int { return bits.TrailingZeros64(m) / 16 & 3 }

// First returns the lowest number of this name, or -1.
func (x *Index) First(name string) int { return x.first(maphash.String(x.seed, name), name) }

func (x *Index) first(h uint64, name string) int {
	for at := x.home(h); ; at = x.after(at) {
		b := &x.buckets[at]
		for m := matches(b.tags, h); m != 0; m &= m - 1 {
			if i := b.number(m); i >= 0 && x.name(i) == name {
				return i
			}
		}
		if b.numbers[3]&passed == 0 {
			return -1
		}
	}
}

// All yields the numbers of this name, rising.
func (x *Index) All(name string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := x.First(name); i >= 0 && yield(i) && i < len(x.next); {
			i = int(x.next[i]) - 1
		}
	}
}

// Batch is how many names [Index.FirstOf] takes at once.
const Batch = 64

// FirstOf sets found[k] to what First returns for names[k], for at most
// [Batch] names. It does so in steps that depend on nothing but the step
// before, without a branch that the processor would guess wrong: the cache
// misses of many names overlap.
func (x *Index) FirstOf(names []string, found *[Batch]int) {
	var hashes [Batch]uint64
	for k, name := range names {
		hashes[k] = maphash.String(x.seed, name)
	}
	type candidate struct{ k, i int }
	var candidates [Batch]candidate
	n := 0
	for k := range names {
		h := hashes[k&(Batch-1)]
		b := &x.buckets[x.home(h)]
		m := matches(b.tags, h)
		found[k] = -1
		candidates[n&(Batch-1)] = candidate{k, b.number(m)}
		if m|uint64(b.numbers[3]&passed) != 0 {
			n++
		}
	}
	for _, c := range candidates[:n] {
		if found[c.k] = c.i; x.name(c.i) != names[c.k] {
			found[c.k] = x.first(hashes[c.k&(Batch-1)], names[c.k])
		}
	}
}
