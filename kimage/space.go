package kimage

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// space is an image by the addresses it is linked for. Bytes come from the file
// when they are asked for.
type space struct {
	blob  blob
	order binary.ByteOrder
	parts []part // by address
	// relocs are what the kernel writes into itself when it starts, by place.
	relocs []reloc
	// bare says that the file has no headers that tell addresses and sections:
	// it is all one part.
	bare bool
}

// part is what lies in one piece at [addr, addr+size) and in the file.
type part struct {
	name            string
	addr, off, size uint64
}

func (p part) holds(addr uint64) bool { return addr-p.addr < p.size }

// reloc says that value stands at place once the kernel runs.
type reloc struct{ place, value uint64 }

// newSpace sorts parts and drops those that overlap another, which no linker
// makes.
func newSpace(b blob, order binary.ByteOrder, parts []part) *space {
	slices.SortStableFunc(parts, func(a, b part) int { return compare(a.addr, b.addr) })
	kept := parts[:0]
	for _, p := range parts {
		if n := len(kept); p.size == 0 || n > 0 && kept[n-1].holds(p.addr) || p.addr+p.size < p.addr {
			continue
		}
		kept = append(kept, p)
	}
	return &space{blob: b, order: order, parts: kept}
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// find returns the part that holds addr.
func (s *space) find(addr uint64) (part, bool) {
	i := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].addr > addr }) - 1
	if i < 0 || !s.parts[i].holds(addr) {
		return part{}, false
	}
	return s.parts[i], true
}

// section returns the first part with a name.
func (s *space) section(name string) (part, bool) {
	for _, p := range s.parts {
		if p.name == name {
			return p, true
		}
	}
	return part{}, false
}

// content returns the bytes of a part.
func (s *space) content(p part) ([]byte, error) {
	b, err := s.blob.bytes(p.off, p.size)
	if err != nil && p.name != "" {
		return nil, fmt.Errorf("section %s: %w", p.name, err)
	}
	return b, err
}

// bytes returns what the file has for [start, end), which must lie in one part.
func (s *space) bytes(start, end uint64) ([]byte, error) {
	p, ok := s.find(start)
	if !ok || end < start || end-p.addr > p.size {
		return nil, fmt.Errorf("addresses %#x to %#x: not in one piece in the file", start, end)
	}
	return s.blob.bytes(p.off+start-p.addr, end-start)
}

// words returns the 64-bit words at [start, end) as the kernel will find them
// once it has relocated itself, without the shift of KASLR.
func (s *space) words(start, end uint64) ([]uint64, error) {
	b, err := s.bytes(start, end)
	if err != nil {
		return nil, err
	}
	words := make([]uint64, len(b)/8)
	for i := range words {
		words[i] = s.order.Uint64(b[8*i:])
	}
	from := sort.Search(len(s.relocs), func(i int) bool { return s.relocs[i].place >= start })
	for _, r := range s.relocs[from:] {
		if r.place >= end {
			break
		}
		if at := r.place - start; at%8 == 0 && at/8 < uint64(len(words)) {
			words[at/8] = r.value
		}
	}
	return words, nil
}

// within says whether addr lies in the image or in what follows it and is not
// in the file: .bss and .brk, some MiB. Per-CPU variables, which are linked for
// addresses near zero on x86-64 before v6.15, do not count.
func (s *space) within(addr uint64) bool {
	const perCPU, beyond = 1 << 20, 256 << 20
	for _, p := range s.parts {
		if p.addr+p.size > perCPU || s.bare {
			last := s.parts[len(s.parts)-1]
			return addr-p.addr < last.addr+last.size-p.addr+beyond
		}
	}
	return false
}
