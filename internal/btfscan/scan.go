package btfscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// rawFunc is what the scan keeps of a function.
type rawFunc struct {
	id      uint32
	nameOff uint32
	// proto is the type id in the lower 28 bits, the linkage above. A type
	// takes 12 bytes at least and BTF 1 GiB at most, so ids fit.
	proto uint32
}

const (
	protoBits  = 28
	protoMask  = 1<<protoBits - 1
	linkageCap = 1<<(32-protoBits) - 1
)

// beyondError is about a string offset or type id that lies beyond all there
// is, which in split BTF means that the base is missing.
type beyondError struct {
	err   error
	short string
}

func (e *beyondError) Error() string { return e.err.Error() }

// scan walks the type section. It is bound by the chain of loads: where the
// next type is depends on the kind and vlen of this one.
func (b *BTF) scan() error {
	var (
		types    = b.types
		sizes    = b.sizes
		swap     = b.big
		strEnd   = b.strEnd()
		id       = b.first
		maxProto uint32
		off      int
		// Kernels have a function in 57 bytes of types.
		funcs = make([]rawFunc, 0, len(types)/52)
	)
	for off < len(types) {
		if len(types)-off < typeSize {
			return b.cutError(id, off, typeSize)
		}
		t := types[off : off+typeSize : off+typeSize]
		nameOff := binary.LittleEndian.Uint32(t)
		info := binary.LittleEndian.Uint32(t[4:])
		if swap {
			nameOff, info = bits.ReverseBytes32(nameOff), bits.ReverseBytes32(info)
		}
		size := sizes[infoKind(info)]
		if size == 0 {
			b.partial = &UnknownKindError{uint8(infoKind(info)), id, b.fileOffset(off)}
			break
		}
		n := size.bytes(infoVlen(info))
		if n > uint64(len(types)-off) {
			return b.cutError(id, off, n)
		}
		if nameOff >= strEnd && nameOff != 0 {
			return b.nameError(id, off, nameOff)
		}
		if infoKind(info) == kindFunc {
			proto := binary.LittleEndian.Uint32(t[8:])
			if swap {
				proto = bits.ReverseBytes32(proto)
			}
			maxProto = max(maxProto, proto)
			linkage := min(infoVlen(info), linkageCap)
			funcs = append(funcs, rawFunc{id, nameOff, linkage<<protoBits | proto&protoMask})
		}
		off += int(n)
		id++
	}
	b.n, b.funcs = id-b.first, funcs
	return b.checkScan(id, off, maxProto)
}

// checkScan looks at what only the end of the scan can tell. The end of a
// partial one is not the end of the types.
func (b *BTF) checkScan(end uint32, off int, maxProto uint32) error {
	b.types = b.types[:off:off]
	if end > protoMask {
		return &FormatError{Offset: b.fileOffset(0), Reason: fmt.Sprintf("%d types with those of the base, at most %d are read", end, protoMask)}
	}
	if maxProto > protoMask || maxProto >= end && b.partial == nil {
		return b.protoError(maxProto)
	}
	return nil
}

func (b *BTF) fileOffset(off int) int64 { return int64(b.typesOff + off) }

func (b *BTF) cutError(id uint32, off int, need uint64) error {
	return &FormatError{
		b.fileOffset(off), id,
		fmt.Sprintf("needs %d bytes, %d are left in the type section", need, len(b.types)-off),
	}
}

func (b *BTF) nameError(id uint32, off int, nameOff uint32) error {
	return &beyondError{
		&FormatError{b.fileOffset(off), id, fmt.Sprintf("name offset %d is outside the string section of %d bytes", nameOff, b.strEnd())},
		fmt.Sprintf("string offset %d beyond own strings of %d bytes", nameOff, len(b.str)),
	}
}

// protoError finds the function that refers to ref, the highest id seen.
func (b *BTF) protoError(ref uint32) error {
	for _, f := range b.funcs {
		if f.proto&protoMask != ref&protoMask {
			continue
		}
		return &beyondError{
			&RefError{f.id, ref, fmt.Sprintf("out of range, the last is %d", b.end()-1)},
			fmt.Sprintf("type id %d beyond own %d types", ref, b.n),
		}
	}
	return nil // not reached: ref was seen
}

// u32 reads a word of the type section.
func (b *BTF) u32(off int) uint32 {
	v := binary.LittleEndian.Uint32(b.types[off:])
	if b.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}
