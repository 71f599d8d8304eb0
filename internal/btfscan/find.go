package btfscan

import (
	"slices"
	"strings"
)

// HasEnumerator says whether an enum here or in the base has a value of this
// name, such as "BPF_TRACE_KPROBE_MULTI". Where the string is missing the
// answer costs one search of the string section, else a walk over the types.
func (b *BTF) HasEnumerator(name string) bool {
	offs := b.stringOffsets(name)
	if len(offs) == 0 {
		return false
	}
	for owner := b; owner != nil; owner = owner.base {
		for r := range owner.records() {
			if r.hasEnumerator(offs) {
				return true
			}
		}
	}
	return false
}

func (r *record) hasEnumerator(nameOffs []uint32) bool {
	words := 0
	switch r.kind() {
	case kindEnum:
		words = enumSize / 4
	case kindEnum64:
		words = enum64Size / 4
	default:
		return false
	}
	for i := range r.vlen() {
		if _, ok := slices.BinarySearch(nameOffs, r.word(i*words)); ok {
			return true
		}
	}
	return false
}

// stringOffsets returns, rising, every offset in the string sections where name
// stands. There is rarely more than one, or more than one to be the tail of a
// longer string.
func (b *BTF) stringOffsets(name string) []uint32 {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return nil
	}
	var offs []uint32
	if b.base != nil {
		offs = b.base.stringOffsets(name)
	}
	want := name + "\x00"
	for at := 0; ; {
		i := strings.Index(b.str[at:], want)
		if i < 0 {
			return offs
		}
		offs = append(offs, b.strOff+uint32(at+i))
		// Names have no NUL inside, so hits do not overlap.
		at += i + len(want)
	}
}

// StructMember returns the offset in bits and the type id of a member of a
// struct or union, such as "module" and "list". Members of anonymous structs
// and unions inside count as those of the outer one. It is false if there is
// no such struct, here or in the base, or none of that name with this member.
func (b *BTF) StructMember(structName, member string) (bitOffset, typeID uint32, ok bool) {
	offs := b.stringOffsets(structName)
	if len(offs) == 0 || member == "" {
		return 0, 0, false
	}
	for owner := b; owner != nil; owner = owner.base {
		for r := range owner.records() {
			if !r.isAggregate() {
				continue
			}
			if _, named := slices.BinarySearch(offs, r.nameOff); !named {
				continue
			}
			s := memberSearch{name: member}
			if s.in(&r, 0, 0) {
				return s.bitOffset, s.typeID, true
			}
		}
	}
	return 0, 0, false
}

func (r *record) isAggregate() bool { return r.kind() == kindStruct || r.kind() == kindUnion }

// memberOffset returns the offset of the i-th member in bits. With the kind flag
// the upper eight bits are the size of a bitfield.
func (r *record) memberOffset(i int) uint32 {
	off := r.word(3*i + 2)
	if infoFlag(r.info) {
		off &= 0xffffff
	}
	return off
}

type memberSearch struct {
	name      string
	steps     int
	bitOffset uint32
	typeID    uint32
}

// in looks in an aggregate that begins at bit base. Steps bound what anonymous
// members that contain each other could cost.
func (s *memberSearch) in(r *record, base uint32, depth int) bool {
	for i := range r.vlen() {
		if s.steps++; s.steps > maxMemberSteps {
			return false
		}
		off, typ := base+r.memberOffset(i), r.word(3*i+1)
		switch nameOff := r.word(3 * i); {
		case nameOff != 0:
			if r.b.hasName(nameOff, s.name) {
				s.bitOffset, s.typeID = off, typ
				return true
			}
		case depth < maxDepth:
			inner, err := r.b.unqualified(typ)
			if err == nil && inner.isAggregate() && s.in(&inner, off, depth+1) {
				return true
			}
		}
	}
	return false
}

// maxMemberSteps is far above the members of any one struct of a kernel.
const maxMemberSteps = 1 << 20
