package kallsyms

import (
	"cmp"
	"slices"

	"github.com/kallscope/kallscope/internal/nameindex"
)

// Join is what [Table.Join] found: the symbols of each wanted name.
type Join struct {
	wanted *nameindex.Index
	name   func(i int) string
	first  []uint32 // 1 + number of the first symbol; of wanted duplicates, only the lowest has it
	rest   []match  // all further symbols, sorted by wanted, then by symbol
}

type match struct{ wanted, symbol uint32 }

// Join finds the symbols of n wanted names at once, such as the functions of a
// BTF object. name returns the i-th, which may be there several times; it must
// go on returning the same as long as the Join is used.
//
// The cost is an index of the wanted names and one pass over the table: a few
// milliseconds for all functions of a kernel, and 14 bytes for each.
// [Table.ByName], an index of all symbols, suits single names.
func (t *Table) Join(n int, name func(i int) string) *Join {
	j := &Join{wanted: nameindex.New(n, name), name: name, first: make([]uint32, n)}
	for c := range t.chunks {
		j.addChunk(&t.chunks[c], c<<chunkBits)
	}
	slices.SortStableFunc(j.rest, func(a, b match) int { return cmp.Compare(a.wanted, b.wanted) })
	return j
}

// addChunk looks the names of a chunk up, whose first symbol is number base.
func (j *Join) addChunk(c *chunk, base int) {
	var names [nameindex.Batch]string
	var found [nameindex.Batch]int
	from := uint32(0)
	for start := 0; start < len(c.end); start += len(names) {
		ends := c.end[start:min(start+len(names), len(c.end))]
		for k, end := range ends {
			names[k] = stringOf(c.names[from:end])
			from = end
		}
		j.wanted.FirstOf(names[:len(ends)], &found)
		for k, w := range found[:len(ends)] {
			if w >= 0 {
				j.add(w, base+start+k)
			}
		}
	}
}

func (j *Join) add(wanted, symbol int) {
	if j.first[wanted] == 0 {
		j.first[wanted] = uint32(symbol) + 1
		return
	}
	j.rest = append(j.rest, match{uint32(wanted), uint32(symbol)})
}

// AppendSymbols appends to dst the numbers of all symbols, text and data, of
// the i-th wanted name, in the order of the source; nothing if there are none.
func (j *Join) AppendSymbols(dst []int, i int) []int {
	if j.first[i] == 0 {
		// Nothing has the name, or it is wanted twice and stands with the other.
		i = j.wanted.First(j.name(i))
	}
	if j.first[i] == 0 {
		return dst
	}
	dst = append(dst, int(j.first[i]-1))
	k, _ := slices.BinarySearchFunc(j.rest, uint32(i), func(m match, i uint32) int { return cmp.Compare(m.wanted, i) })
	for ; k < len(j.rest) && j.rest[k].wanted == uint32(i); k++ {
		dst = append(dst, int(j.rest[k].symbol))
	}
	return dst
}
