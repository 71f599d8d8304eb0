package btfscan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/kallscope/kallscope/internal/nameindex"
)

// Func is a BTF_KIND_FUNC.
type Func struct {
	// ID is the type id within its BTF object.
	ID uint32
	// Name shares memory with the BTF.
	Name    string
	Linkage Linkage
	// Proto is the type id of the prototype.
	Proto uint32
}

// Linkage is how a function is linked. The functions of vmlinux are all said
// to be static, so it selects nothing there.
type Linkage uint8

// The values of enum btf_func_linkage. Others are malformed.
const (
	Static Linkage = iota
	Global
	Extern
)

// String returns the name of l.
func (l Linkage) String() string {
	switch l {
	case Static:
		return "static"
	case Global:
		return "global"
	case Extern:
		return "extern"
	}
	return fmt.Sprintf("malformed (%d)", uint8(l))
}

// Valid says whether l is a linkage that exists.
func (l Linkage) Valid() bool { return l <= Extern }

// FuncCount returns the number of own functions.
func (b *BTF) FuncCount() int { return len(b.funcs) }

// Func returns the i-th own function, in the order of ids. Like an index into a
// slice, i must be below [BTF.FuncCount].
func (b *BTF) Func(i int) Func { return b.fn(&b.funcs[i]) }

func (b *BTF) fn(f *rawFunc) Func {
	return Func{f.id, b.name(f.nameOff), Linkage(f.proto >> protoBits), f.proto & protoMask}
}

// Funcs yields the own functions in the order of ids.
func (b *BTF) Funcs() iter.Seq[Func] {
	return func(yield func(Func) bool) {
		for i := range b.funcs {
			if !yield(b.fn(&b.funcs[i])) {
				return
			}
		}
	}
}

// FuncByID returns the function with this type id, looking in the base for ids
// below the own ones. It is false for ids of other kinds.
func (b *BTF) FuncByID(id uint32) (Func, bool) {
	for b != nil && id < b.first {
		b = b.base
	}
	if b == nil {
		return Func{}, false
	}
	i, ok := slices.BinarySearchFunc(b.funcs, id, func(f rawFunc, id uint32) int { return cmp.Compare(f.id, id) })
	if !ok {
		return Func{}, false
	}
	return b.fn(&b.funcs[i]), true
}

// Sorted says whether the own function names rise with the ids and are unique,
// as newer pahole writes them.
func (b *BTF) Sorted() bool {
	return b.sorted.get(func() bool {
		last := ""
		for i := range b.funcs {
			name := b.name(b.funcs[i].nameOff)
			if name <= last && i > 0 {
				return false
			}
			last = name
		}
		return true
	})
}

// ByName returns the own functions of this name in the order of ids. There may
// be several: 458 names of Debian's 6.1 kernel are there more than once.
//
// The first call looks whether names are sorted and else builds a hash index,
// about 10 bytes a function; see [BTF.IndexNames].
func (b *BTF) ByName(name string) []Func {
	var found []Func
	for i := range b.Indexes(name) {
		found = append(found, b.Func(i))
	}
	return found
}

// Indexes yields i of every [BTF.Func] of this name, rising. It is
// [BTF.ByName] without allocation.
func (b *BTF) Indexes(name string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !b.hashed.Load() && b.Sorted() {
			if i := b.searchSorted(name); i >= 0 {
				yield(i)
			}
			return
		}
		b.byName.get(b.indexNames).All(name)(yield)
	}
}

// IndexNames builds the hash index even where names are sorted and a binary
// search would do. It pays off from some thousand look-ups on.
func (b *BTF) IndexNames() {
	b.byName.get(b.indexNames)
	b.hashed.Store(true)
}

func (b *BTF) indexNames() *nameindex.Index {
	return nameindex.New(len(b.funcs), func(i int) string { return b.name(b.funcs[i].nameOff) })
}

// searchSorted returns the index of name, or -1.
func (b *BTF) searchSorted(name string) int {
	i, ok := slices.BinarySearchFunc(b.funcs, name, func(f rawFunc, name string) int {
		return cmp.Compare(b.name(f.nameOff), name)
	})
	if !ok {
		return -1
	}
	return i
}
