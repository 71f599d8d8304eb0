package kallscope

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// A CodeRange is a named part of the kernel's code, [Start, End). Both are zero
// where addresses are hidden.
type CodeRange struct {
	Start, End uint64
	Name       string
}

// String returns the name, and the addresses where they are known.
func (r CodeRange) String() string {
	if r.End == 0 {
		return r.Name
	}
	return fmt.Sprintf("%s, %#x to %#x", r.Name, r.Start, r.End)
}

// A blacklist is the code that kprobes must stay out of. The zero value has
// none.
type blacklist struct {
	ranges []CodeRange // starts and ends rise
	hidden []CodeRange // by name
}

func newBlacklist(list []CodeRange) blacklist {
	var b blacklist
	for _, r := range list {
		if r.End == 0 {
			b.hidden = append(b.hidden, r)
		} else {
			b.ranges = append(b.ranges, r)
		}
	}
	slices.SortFunc(b.hidden, func(x, y CodeRange) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(b.ranges, func(x, y CodeRange) int { return cmp.Compare(x.Start, y.Start) })
	end := uint64(0)
	b.ranges = slices.DeleteFunc(b.ranges, func(r CodeRange) bool {
		inside := r.End <= end
		end = max(end, r.End)
		return inside
	})
	return b
}

// find returns the range that an entry lies in. A range without addresses is
// found by its name, which is that of the function it begins at.
func (b *blacklist) find(addr uint64, name string) (CodeRange, bool) {
	i := sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i].End > addr })
	if i < len(b.ranges) && b.ranges[i].Start <= addr {
		return b.ranges[i], true
	}
	i, ok := slices.BinarySearchFunc(b.hidden, name, func(r CodeRange, name string) int { return cmp.Compare(r.Name, name) })
	if !ok {
		return CodeRange{}, false
	}
	return b.hidden[i], true
}
