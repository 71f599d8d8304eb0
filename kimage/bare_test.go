package kimage

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

const armBase = 0xffff800080000000

// TestBare: an image without headers is placed by its relocations, whether the
// linker left zeros or values.
func TestBare(t *testing.T) {
	for _, l := range []layout{modern, {form: placeRelative, align: 4, order: binary.LittleEndian}} {
		for _, applied := range []bool{false, true} {
			k := makeKernel(l, armBase)
			im := open(t, k.bare(applied))
			checkSymbols(t, im, k.symbols)
			qt.Check(t, qt.Equals(im.Arch(), "arm64"))
			text, err := im.Text()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(text, uint64(armBase)))
			sites, err := im.Sites()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(sites.Addrs, len(k.sites)))
			qt.Check(t, qt.Equals(sites.Dropped, 1))
			qt.Check(t, qt.Equals(sites.Addrs[0], k.sites[0]+4))
		}
	}
}

// TestBareUnrelocated: without relocations the base in the table says where the
// image is, and where there is none, addresses count from its beginning.
func TestBareUnrelocated(t *testing.T) {
	k := makeKernel(modern, armBase)
	checkSymbols(t, open(t, k.bare(true)[:endAt]), k.symbols)

	k = makeKernel(layout{form: placeRelative, align: 4, order: binary.LittleEndian}, armBase)
	im := open(t, k.bare(true)[:endAt])
	text, err := im.Text()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(text, 0))
	for i := range k.symbols {
		k.symbols[i].Addr -= armBase
	}
	checkSymbols(t, im, k.symbols)
}

// TestLinkBase: relocations that fit nowhere, or in several places, say nothing.
func TestLinkBase(t *testing.T) {
	b := make([]byte, 8*minKernelAlign)
	relocs := []reloc{{place: armBase + 8, value: 1}, {place: armBase + minKernelAlign, value: 2}}
	_, ok := linkBase(b, relocs)
	qt.Check(t, qt.IsFalse(ok))

	for i := range b {
		b[i] = 0xff
	}
	_, ok = linkBase(b, relocs)
	qt.Check(t, qt.IsFalse(ok))

	clear(b[8:16])
	clear(b[minKernelAlign : minKernelAlign+8])
	base, ok := linkBase(b, relocs)
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(base, uint64(armBase)))
}

// TestAdjustARM64: sites are the second NOP behind the entry and its bti,
// wherever the compiler noted them.
func TestAdjustARM64(t *testing.T) {
	code := func(ops ...uint32) (b []byte) {
		for _, op := range ops {
			b = binary.LittleEndian.AppendUint32(b, op)
		}
		return b
	}
	const other, bti, nop = 0xa9bf7bfd, arm64BTI, arm64NOP
	for _, c := range []struct {
		name        string
		text        []byte
		noted, want []uint64
	}{
		{"behind the entry", code(nop, nop, other, other, bti, nop, nop, other), []uint64{0, 20}, []uint64{4, 24}},
		{"in front of it", code(nop, nop, nop, nop, other, other, nop, nop, bti, nop, nop, other), []uint64{0, 24}, []uint64{12, 40}},
	} {
		s := newSpace(memBlob(c.text), binary.LittleEndian, []part{{size: uint64(len(c.text))}})
		addrs := slices.Clone(c.noted)
		s.adjustARM64(addrs)
		qt.Check(t, qt.DeepEquals(addrs, c.want), qt.Commentf(c.name))
	}
}
