package kallsyms

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// State says whether the addresses of a table can be used.
type State int

const (
	// Empty tables have no symbols.
	Empty State = iota
	// Visible: every function has its address.
	Visible
	// Hidden: no function has an address. The kernel prints zeros unless
	// kallsyms_show_value() allows more; names are complete all the same.
	Hidden
	// Partial: some functions have an address and some have zero, which no
	// kernel prints: the file was put together or edited.
	Partial
)

// String returns the state as one lower-case word.
func (s State) String() string {
	switch s {
	case Empty:
		return "empty"
	case Visible:
		return "visible"
	case Hidden:
		return "hidden"
	case Partial:
		return "partial"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Table holds symbols in the order of their source, numbered from 0. It is
// immutable and safe for concurrent use. The strings it returns are parts of
// its own storage, not copies; each keeps about 100 KiB of names alive.
//
// Indexes by name and by address are built at their first use, once, in a few
// milliseconds for the symbols of a whole kernel.
type Table struct {
	n       int
	chunks  []chunk
	runs    []run
	modules []string

	zero, text, zeroText    int // symbols at zero, functions, functions at zero
	lines, mapping, skipped int
	warnings                []Warning
	stopped, truncated      bool

	names    lazy[*nameIndex] // by name
	variants lazy[*nameIndex] // made names, by the name they are made from
	addrs    lazy[*addrIndex] // by address
}

// lazy is a value that is made at its first use.
type lazy[T any] struct {
	once  sync.Once
	value T
}

func (l *lazy[T]) get(build func() T) T {
	l.once.Do(func() { l.value = build() })
	return l.value
}

// Len returns the number of symbols.
func (t *Table) Len() int { return t.n }

// Symbol returns symbol i. It panics if i is out of range.
func (t *Table) Symbol(i int) Symbol {
	return Symbol{Addr: t.Addr(i), Type: t.Type(i), Name: t.Name(i), Module: t.Module(i)}
}

// Addr returns the address of symbol i; zero if it is hidden.
func (t *Table) Addr(i int) uint64 { return t.chunks[i>>chunkBits].addr[i&chunkMask] }

// Type returns the type letter of symbol i.
func (t *Table) Type(i int) byte { return t.chunks[i>>chunkBits].typ[i&chunkMask] }

// Name returns the name of symbol i.
func (t *Table) Name(i int) string {
	return stringOf(t.chunks[i>>chunkBits].name(i & chunkMask))
}

// stringOf returns b as a string, not copied. b must never change.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Module returns the module of symbol i; empty for vmlinux. It searches the
// runs of modules, which costs a comparison for vmlinux and ten or so for the
// rest.
func (t *Table) Module(i int) string {
	k := 0
	if len(t.runs) > 1 && i >= int(t.runs[1].start) {
		k = sort.Search(len(t.runs), func(k int) bool { return int(t.runs[k].start) > i }) - 1
	}
	return t.modules[t.runs[k].module]
}

// All returns every symbol with its number, in the order of the source.
func (t *Table) All() iter.Seq2[int, Symbol] {
	return func(yield func(int, Symbol) bool) {
		for k := range t.runs {
			from, to := t.bounds(k)
			module := t.modules[t.runs[k].module]
			for i := from; i < to; i++ {
				if !yield(i, Symbol{Addr: t.Addr(i), Type: t.Type(i), Name: t.Name(i), Module: module}) {
					return
				}
			}
		}
	}
}

// InModule returns the numbers of the symbols of module, "" for vmlinux, in
// the order of the source. It costs no more than the runs of modules and what
// it returns.
func (t *Table) InModule(module string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k, r := range t.runs {
			if t.modules[r.module] != module {
				continue
			}
			from, to := t.bounds(k)
			for i := from; i < to; i++ {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// bounds returns the first symbol of run k and the one after its last.
func (t *Table) bounds(k int) (from, to int) {
	to = t.n
	if k+1 < len(t.runs) {
		to = int(t.runs[k+1].start)
	}
	return int(t.runs[k].start), to
}

// Modules returns the names of all modules in the order of their first
// symbol, pseudo-modules included and vmlinux left out.
func (t *Table) Modules() []string {
	return slices.DeleteFunc(slices.Clone(t.modules), func(m string) bool { return m == "" })
}

// State returns whether addresses can be used. Only functions decide: x86-64
// before 6.15 has real per-CPU symbols at zero and near it. A table without
// any function is hidden if all its symbols are at zero.
func (t *Table) State() State {
	switch {
	case t.n == 0:
		return Empty
	case t.text == 0 && t.zero == t.n, t.text > 0 && t.zeroText == t.text:
		return Hidden
	case t.zeroText > 0:
		return Partial
	}
	return Visible
}

// Lines returns how many lines were read.
func (t *Table) Lines() int { return t.lines }

// Mapping returns how many mapping symbols were dropped: see
// [Scanner.Mapping].
func (t *Table) Mapping() int { return t.mapping }

// Skipped returns how many lines a lenient read left out because they are no
// symbols.
func (t *Table) Skipped() int { return t.skipped }

// Warnings returns what was odd about the input, at most the first hundred
// oddities.
func (t *Table) Warnings() []Warning { return slices.Clone(t.warnings) }

// Stopped returns whether [Options.Visit] ended the read: the source may have
// more symbols.
func (t *Table) Stopped() bool { return t.stopped }

// Truncated returns whether the source was cut short. The read that made the
// table returned [ErrTruncated].
func (t *Table) Truncated() bool { return t.truncated }
