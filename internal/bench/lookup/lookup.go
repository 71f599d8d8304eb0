// Package lookup finds the addresses of many functions of BTF by name, in every
// way that was proposed when attaching to thousands of functions turned out to
// take minutes: each BTF id cost the kernel one linear search of its symbols.
//
// All methods answer the same question, with the same answer, so that they can
// be compared: [Methods] has them, [Measure] their cost beside the floor, which
// is to read the symbols and do nothing with them.
package lookup

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Wanted are functions of BTF: function i is called Names[i] and has the type
// id IDs[i]. Names may repeat.
type Wanted struct {
	Names []string
	IDs   []uint32
}

// Len returns the number of functions.
func (w *Wanted) Len() int { return len(w.Names) }

// spread returns n functions, evenly spaced.
func (w *Wanted) spread(n int) *Wanted {
	if n >= w.Len() {
		return w
	}
	s := new(Wanted)
	for k := range n {
		i := k * w.Len() / n
		s.Names, s.IDs = append(s.Names, w.Names[i]), append(s.IDs, w.IDs[i])
	}
	return s
}

// Input is the question: the functions, and the symbols as /proc/kallsyms prints
// them.
type Input struct {
	Wanted *Wanted
	Text   []byte
	// Live says that Text is what the running kernel has, no more and no less,
	// which methods need that ask the kernel.
	Live bool
	// read takes the time to read the same from the kernel and throw it away.
	read func() (time.Duration, error)
}

// Method is one way to answer.
type Method struct {
	Name string
	// About says how, in a few words.
	About string
	// Sample is how many functions are looked up for a measurement, where all
	// would take minutes, because each costs the same. Zero means all.
	Sample int
	// FirstOnly methods find one address of a name only, the first.
	FirstOnly bool
	// Prepare does what is not part of the work: compile a program, or read
	// the symbols into what the product has them in anyway.
	Prepare func(in *Input) (*Run, error)
}

// Run is a method ready to answer.
type Run struct {
	// Resolve does the work. It may be called again.
	Resolve func() (*Answer, error)
	// Close releases what Prepare made; nil for nothing.
	Close func() error
}

// close releases, where there is something to release.
func (r *Run) close() error {
	if r.Close == nil {
		return nil
	}
	return r.Close()
}

// ErrNotLive is returned by Prepare of methods that can only answer for the
// symbols of the running kernel.
var ErrNotLive = errors.New("asks the kernel, which has other symbols than these")

// Methods are all that need no program in the kernel.
func Methods() []Method {
	return []Method{linear, rbtree, sorted, hashed, merge, product, productText}
}

// Find returns the method of this name.
func Find(name string) (Method, bool) {
	all := append(Methods(), KernelMethods()...)
	i := slices.IndexFunc(all, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return all[i], true
}

// direct makes a Prepare of what works on the text and needs no preparation.
func direct(resolve func(in *Input) (*Answer, error)) func(in *Input) (*Run, error) {
	return func(in *Input) (*Run, error) {
		return &Run{Resolve: func() (*Answer, error) { return resolve(in) }}, nil
	}
}

// Answer has all addresses of each wanted function, in the order of the symbols.
// An address is zero where the kernel hides it.
type Answer struct {
	first []uint64
	found []bool
	rest  []further // sorted by wanted by finish
}

type further struct {
	wanted int32
	addr   uint64
}

func newAnswer(n int) *Answer { return &Answer{first: make([]uint64, n), found: make([]bool, n)} }

func (a *Answer) add(wanted int, addr uint64) {
	if !a.found[wanted] {
		a.first[wanted], a.found[wanted] = addr, true
		return
	}
	a.rest = append(a.rest, further{int32(wanted), addr})
}

// finish is called once all is added.
func (a *Answer) finish() *Answer {
	slices.SortStableFunc(a.rest, func(a, b further) int { return cmp.Compare(a.wanted, b.wanted) })
	return a
}

// Len returns the number of functions that were asked for.
func (a *Answer) Len() int { return len(a.found) }

// Found returns how many functions have an address.
func (a *Answer) Found() int {
	n := 0
	for _, found := range a.found {
		if found {
			n++
		}
	}
	return n
}

// Addrs returns the addresses of function i; nil if it has none.
func (a *Answer) Addrs(i int) []uint64 {
	if !a.found[i] {
		return nil
	}
	addrs := []uint64{a.first[i]}
	k, _ := slices.BinarySearchFunc(a.rest, int32(i), func(f further, i int32) int { return cmp.Compare(f.wanted, i) })
	for ; k < len(a.rest) && a.rest[k].wanted == int32(i); k++ {
		addrs = append(addrs, a.rest[k].addr)
	}
	return addrs
}

// Equal says whether two methods agree; firstOnly, whether they do on the first
// address of each function.
func (a *Answer) Equal(b *Answer, firstOnly bool) bool {
	return slices.Equal(a.first, b.first) && slices.Equal(a.found, b.found) && (firstOnly || slices.Equal(a.rest, b.rest))
}
