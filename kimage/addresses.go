package kimage

import (
	"errors"
	"fmt"

	"github.com/kallscope/kallscope/kallsyms"
)

// Addresses of symbols are kept in one of these forms. Which one it is shows in
// the numbers: symbols are sorted by address, so the right form makes all of
// them rise, and lie in the image.
//
//	relative to a base   u32: base + v; since v6.15 on x86-64, always on arm64
//	with per-CPU         s32: v, or base - 1 - v where v < 0
//	                     (CONFIG_KALLSYMS_ABSOLUTE_PERCPU, x86-64 until v6.14)
//	relative to place    s32: where it stands + v, since v7.0
//	absolute             u64 (CONFIG_KALLSYMS_BASE_RELATIVE=n, until v6.14)

// addressing finds out how the addresses of tables are kept.
type addressing struct {
	s    *space
	part part
	b    []byte // content of part
	t    tables
}

var errNoAddresses = errors.New("the addresses of the symbols are kept in no form that is known")

// find returns the address of symbol i.
func (a *addressing) find() (func(i int) uint64, error) {
	n := 4 * a.t.count
	behind := a.t.index + indexSize
	base := a.t.numSyms - 8 // until v6.3
	for _, form := range []func() func(int) uint64{
		func() func(int) uint64 { return a.relative(roundUp(behind, 8), roundUp(roundUp(behind, 8)+n, 8)) },
		func() func(int) uint64 { return a.relative(base-roundUp(n, 8), base) },
		func() func(int) uint64 { return a.relative(behind, behind+n) },
		func() func(int) uint64 { return a.toPlace(behind) },
		func() func(int) uint64 { return a.absolute(roundUp(behind, 8)) },
		func() func(int) uint64 { return a.absolute(a.t.numSyms - 2*n) },
	} {
		if f := form(); f != nil {
			return f, nil
		}
	}
	return nil, errNoAddresses
}

func roundUp(n, align int) int { return (n + align - 1) &^ (align - 1) }

func (a *addressing) has(at, size int) bool { return at >= 0 && at <= len(a.b)-size }

// relative is for offsets at a place and their base at another.
func (a *addressing) relative(at, baseAt int) func(int) uint64 {
	if !a.has(at, 4*a.t.count) || !a.has(baseAt, 8) {
		return nil
	}
	base, ok := a.base(baseAt)
	if !ok {
		return nil
	}
	offsets, order := a.b[at:], a.s.order
	plain := func(i int) uint64 { return base + uint64(order.Uint32(offsets[4*i:])) }
	if a.rises(plain) {
		return plain
	}
	perCPU := func(i int) uint64 {
		if v := int32(order.Uint32(offsets[4*i:])); v < 0 {
			return base - 1 - uint64(int64(v))
		}
		return uint64(order.Uint32(offsets[4*i:]))
	}
	if a.rises(perCPU) {
		return perCPU
	}
	return nil
}

// base returns relative_base, which is the address of _text.
func (a *addressing) base(at int) (uint64, bool) {
	start := a.part.addr + uint64(at)
	words, err := a.s.words(start, start+8)
	if err != nil || len(words) != 1 {
		return 0, false
	}
	if a.s.bare && a.part.addr == 0 {
		return words[0], isBase(words[0])
	}
	return words[0], a.s.within(words[0])
}

func (a *addressing) toPlace(at int) func(int) uint64 {
	if !a.has(at, 4*a.t.count) {
		return nil
	}
	addr := a.part.addr + uint64(at)
	offsets, order := a.b[at:], a.s.order
	f := func(i int) uint64 { return addr + uint64(4*i) + uint64(int64(int32(order.Uint32(offsets[4*i:])))) }
	if !a.rises(f) || !a.s.within(f(0)) || !a.s.within(f(a.t.count-1)) {
		return nil
	}
	return f
}

func (a *addressing) absolute(at int) func(int) uint64 {
	if !a.has(at, 8*a.t.count) {
		return nil
	}
	start := a.part.addr + uint64(at)
	words, err := a.s.words(start, start+uint64(8*a.t.count))
	if err != nil {
		return nil
	}
	f := func(i int) uint64 { return words[i] }
	if !a.rises(f) || !a.s.within(f(a.t.count-1)) {
		return nil
	}
	return f
}

// rises says whether addresses rise from symbol to symbol, and not all are
// the same.
func (a *addressing) rises(f func(int) uint64) bool {
	last := f(0)
	for i := range a.t.count {
		addr := f(i)
		if addr < last {
			return false
		}
		last = addr
	}
	return last > f(0)
}

// readSymbols finds and decodes the symbol table.
func (s *space) readSymbols() (*kallsyms.Table, error) {
	err := errNoTables
	for _, p := range s.searchOrder() {
		b, e := s.content(p)
		if e != nil {
			return nil, e
		}
		t, e := findTables(b, s.order)
		if e != nil {
			continue
		}
		table, e := s.decode(p, b, t)
		if e == nil {
			return table, nil
		}
		err = fmt.Errorf("symbol table at byte %#x: %w", p.off+uint64(t.names), e)
	}
	return nil, err
}

// searchOrder has .rodata first, where the tables have always been.
func (s *space) searchOrder() []part {
	parts := make([]part, 0, len(s.parts))
	if p, ok := s.section(".rodata"); ok {
		parts = append(parts, p)
	}
	for _, p := range s.parts {
		if p.name != ".rodata" {
			parts = append(parts, p)
		}
	}
	return parts
}

func (s *space) decode(p part, b []byte, t tables) (*kallsyms.Table, error) {
	a := &addressing{s: s, part: p, b: b, t: t}
	addr, err := a.find()
	if err != nil {
		return nil, err
	}
	e := kallsyms.Encoded{
		Count: t.count, Order: s.order, Addr: addr,
		Names: b[t.names:t.markers], TokenTable: b[t.tokens:t.index], TokenIndex: b[t.index : t.index+indexSize],
	}
	table, err := e.Table()
	if err != nil {
		return nil, err
	}
	return table, s.settle(p, t, table)
}

// settle checks the addresses against what they must be. A bare image is moved
// to where they say it is, unless that is known already.
func (s *space) settle(p part, t tables, table *kallsyms.Table) error {
	marks := landmarksOf(table)
	if s.bare && p.addr == 0 {
		s.parts[0].addr, p.addr = marks["_text"], marks["_text"]
	}
	want := p.addr + uint64(t.index)
	if got, ok := marks["kallsyms_token_index"]; ok && got != want {
		return fmt.Errorf("kallsyms_token_index would be at %#x, but is at %#x", got, want)
	}
	return nil
}
