package lookup

import (
	"cmp"
	"slices"
)

// sorted sorts the wanted names, goes through the symbols once and looks each up
// by binary search: what the thread proposed, and what the kernel does since
// v5.19 for kprobe.multi (ftrace_lookup_symbols(), bed0d9a50dac).
var sorted = Method{
	Name:    "sorted",
	About:   "sorted functions, one pass over the symbols with binary search",
	Prepare: direct(resolveSorted),
}

func resolveSorted(in *Input) (*Answer, error) {
	names := in.Wanted.Names
	order := byName(in.Wanted)
	a := newAnswer(len(names))
	err := eachSymbol(in.Text, func(name []byte, addr uint64) {
		k, _ := slices.BinarySearchFunc(order, view(name), func(i int32, name string) int {
			return cmp.Compare(names[i], name)
		})
		for ; k < len(order) && names[order[k]] == view(name); k++ {
			a.add(int(order[k]), addr)
		}
	})
	return a.finish(), err
}

// byName returns the functions in the order of their names. Newer BTF has them
// in this order.
func byName(w *Wanted) []int32 {
	order := make([]int32, w.Len())
	for i := range order {
		order[i] = int32(i)
	}
	compare := func(i, k int32) int { return cmp.Compare(w.Names[i], w.Names[k]) }
	if !slices.IsSortedFunc(order, compare) {
		slices.SortStableFunc(order, compare)
	}
	return order
}
