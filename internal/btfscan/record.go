package btfscan

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
)

// record is a type as it stands in the section of its owner.
type record struct {
	b       *BTF
	id      uint32
	off     int // of the type in b.types
	nameOff uint32
	info    uint32
	ref     uint32 // size or type id
}

func (r *record) kind() uint32 { return infoKind(r.info) }
func (r *record) vlen() int    { return int(infoVlen(r.info)) }
func (r *record) name() string { return r.b.name(r.nameOff) }
func (r *record) pos() int64   { return r.b.fileOffset(r.off) }

// word returns the i-th word behind the struct btf_type.
func (r *record) word(i int) uint32 { return r.b.u32(r.off + typeSize + 4*i) }

// record returns the type with this id, from the base for lower ids.
func (b *BTF) record(id uint32) (record, error) {
	owner := b
	for id < owner.first && owner.base != nil {
		owner = owner.base
	}
	index := owner.offsetIndex()
	i := id - owner.first // wraps around for void
	if uint64(i) >= uint64(len(index)) {
		return record{}, &RefError{Ref: id, Reason: fmt.Sprintf("no such type, ids go from 1 to %d", b.end()-1)}
	}
	return owner.recordAt(id, int(index[i])), nil
}

func (b *BTF) recordAt(id uint32, off int) record {
	t := b.types[off : off+typeSize : off+typeSize]
	r := record{b, id, off, binary.LittleEndian.Uint32(t), binary.LittleEndian.Uint32(t[4:]), binary.LittleEndian.Uint32(t[8:])}
	if b.big {
		r.nameOff, r.info, r.ref = bits.ReverseBytes32(r.nameOff), bits.ReverseBytes32(r.info), bits.ReverseBytes32(r.ref)
	}
	return r
}

// owner returns the BTF of the chain that has this id, or nil.
func (b *BTF) owner(id uint32) *BTF {
	if id >= b.end() {
		return nil
	}
	for b != nil && id < b.first {
		b = b.base
	}
	return b
}

// offsetIndex returns the offset of each own type: 4 bytes a type.
func (b *BTF) offsetIndex() []uint32 {
	return b.offsets.get(func() []uint32 {
		index := make([]uint32, 0, b.n)
		for off := 0; off < len(b.types); off += b.sizeAt(off) {
			index = append(index, uint32(off))
		}
		return index
	})
}

// sizeAt returns the size of the type at off. The scan has checked it.
func (b *BTF) sizeAt(off int) int {
	info := b.u32(off + 4)
	return int(b.sizes[infoKind(info)].bytes(infoVlen(info)))
}

// records yields the own types in order, without the index.
func (b *BTF) records() iter.Seq[record] {
	return func(yield func(record) bool) {
		id := b.first
		for off := 0; off < len(b.types); off += b.sizeAt(off) {
			if !yield(b.recordAt(id, off)) {
				return
			}
			id++
		}
	}
}

// maxDepth is how far types may be nested, as in the kernel (MAX_RESOLVE_DEPTH
// in kernel/bpf/btf.c).
const maxDepth = 32

// kindSet is a set of kinds, of which all that matter here are below 32.
type kindSet uint32

const (
	// qualifierKinds only decorate another type.
	qualifierKinds kindSet = 1<<kindVolatile | 1<<kindConst | 1<<kindRestrict | 1<<kindTypeTag
	// aliasKinds are another type by a different name or decorated.
	aliasKinds = qualifierKinds | 1<<kindTypedef
)

func (s kindSet) has(kind uint32) bool { return s>>kind&1 != 0 }

// isQualifier says whether a type of this kind only decorates another one.
func isQualifier(kind uint32) bool { return qualifierKinds.has(kind) }

// resolve follows typedefs and qualifiers. For void the record has kind 0.
func (b *BTF) resolve(id uint32) (record, error) { return b.follow(id, aliasKinds) }

// unqualified follows qualifiers only.
func (b *BTF) unqualified(id uint32) (record, error) { return b.follow(id, qualifierKinds) }

func (b *BTF) follow(id uint32, through kindSet) (record, error) {
	from := id
	for range maxDepth {
		if id == 0 {
			return record{}, nil
		}
		r, err := b.record(id)
		if err != nil || !through.has(r.kind()) {
			return r, err
		}
		id = r.ref
	}
	return record{}, cycleError(from)
}

func cycleError(id uint32) error {
	return fmt.Errorf("BTF type %d: %w, or more than %d levels", id, ErrCycle, maxDepth)
}
