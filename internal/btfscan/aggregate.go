package btfscan

import "slices"

// Aggregate is a struct or union of the BTF. The zero Aggregate has no members.
type Aggregate struct{ r record }

// Aggregates returns the structs or unions of these names, in their order; what is
// missing is the zero Aggregate. One walk over the types finds them all.
func (b *BTF) Aggregates(names ...string) []Aggregate {
	found := make([]Aggregate, len(names))
	offs := make([][]uint32, len(names))
	missing := len(names)
	for i, name := range names {
		offs[i] = b.stringOffsets(name)
	}
	for owner := b; owner != nil; owner = owner.base {
		for r := range owner.records() {
			if !r.isAggregate() || r.nameOff == 0 {
				continue
			}
			for i := range names {
				if _, named := slices.BinarySearch(offs[i], r.nameOff); named && found[i].r.b == nil {
					found[i].r = r
					missing--
				}
			}
			if missing == 0 {
				return found
			}
		}
	}
	return found
}

// Size returns the size in bytes; zero for the zero Aggregate.
func (s Aggregate) Size() uint32 { return s.r.ref }

// Member returns the offset in bits and the type id of a member, those of
// anonymous structs and unions inside included.
func (s Aggregate) Member(name string) (bitOffset, typeID uint32, ok bool) {
	if s.r.b == nil {
		return 0, 0, false
	}
	m := memberSearch{name: name}
	ok = m.in(&s.r, 0, 0)
	return m.bitOffset, m.typeID, ok
}

// Offset returns the offset of a member in bytes. It is false when there is no
// such member, or when size bytes of it would not lie inside the struct.
func (s Aggregate) Offset(name string, size uint32) (offset uint32, ok bool) {
	bits, _, ok := s.Member(name)
	return bits / 8, ok && bits%8 == 0 && bits/8+size <= s.Size()
}
