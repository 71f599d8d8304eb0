package kimage

import (
	"encoding/binary"
	"sort"
)

// A bare image, arm64's Image, is what lies in memory from _text on. Where it
// is linked for is not in its header, but follows from its relocations.

// minKernelAlign is what a bare image is aligned to at least: SEGMENT_ALIGN,
// 64 KiB, in arch/arm64/kernel/vmlinux.lds.S.
const minKernelAlign = 64 << 10

// isBase says whether a kernel can be linked for an address.
func isBase(addr uint64) bool { return addr%minKernelAlign == 0 && int64(addr) < 0 }

// newBareSpace makes the space of an image in memory. Its only part begins at
// zero if the address is not known.
func newBareSpace(b []byte) *space {
	s := newSpace(memBlob(b), binary.LittleEndian, []part{{size: uint64(len(b))}})
	s.bare = true
	s.relocs = findRelocs(b)
	if base, ok := linkBase(b, s.relocs); ok {
		s.parts[0].addr = base
	} else {
		s.relocs = nil
	}
	return s
}

// relativeARM64 is R_AARCH64_RELATIVE, which is all that .rela.dyn has.
const relativeARM64 = 0x403

// minRelocs is how many entries in a row make a table. Kernels have 100,000.
const minRelocs = 64

// findRelocs returns the first table of relocations by place, as .rela.dyn
// would have it. Nothing in the image says where it is, but nothing else looks
// like it.
func findRelocs(b []byte) []reloc {
	const info = 8 // of an entry
	for at := 0; at+relaSize*minRelocs <= len(b); at += 8 {
		if binary.LittleEndian.Uint64(b[at+info:]) != relativeARM64 {
			continue
		}
		n := 1
		for at+(n+1)*relaSize <= len(b) && binary.LittleEndian.Uint64(b[at+n*relaSize+info:]) == relativeARM64 {
			n++
		}
		if n < minRelocs {
			at += (n - 1) * relaSize
			continue
		}
		list := make([]reloc, n)
		for i := range list {
			entry := b[at+i*relaSize:]
			list[i] = reloc{binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint64(entry[16:])}
		}
		sort.Slice(list, func(i, j int) bool { return list[i].place < list[j].place })
		return list
	}
	return nil
}

// linkBase returns the address that the image is linked for: the only one where
// the places of all relocations hold zero, as the linker leaves them, or the
// value already.
func linkBase(b []byte, relocs []reloc) (uint64, bool) {
	if len(relocs) == 0 {
		return 0, false
	}
	size, first, last := uint64(len(b)), relocs[0].place, relocs[len(relocs)-1].place
	if last-first > size-8 {
		return 0, false
	}
	sample := make([]reloc, 0, maxSample)
	for i := range maxSample {
		sample = append(sample, relocs[i*len(relocs)/maxSample])
	}
	found, count := uint64(0), 0
	for base := first &^ (minKernelAlign - 1); base+size >= last+8; base -= minKernelAlign {
		if isBase(base) && fits(b, sample, base) {
			found, count = base, count+1
		}
		if base < minKernelAlign {
			break
		}
	}
	return found, count == 1 && fits(b, relocs, found)
}

// maxSample is how many relocations are tried for each address.
const maxSample = 512

func fits(b []byte, relocs []reloc, base uint64) bool {
	for _, r := range relocs {
		at := r.place - base
		if at > uint64(len(b)-8) {
			return false
		}
		if v := binary.LittleEndian.Uint64(b[at:]); v != 0 && v != r.value {
			return false
		}
	}
	return true
}
