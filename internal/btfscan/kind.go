package btfscan

import "fmt"

// The kinds of include/uapi/linux/btf.h.
const (
	kindUnknown = iota
	kindInt
	kindPtr
	kindArray
	kindStruct
	kindUnion
	kindEnum
	kindFwd
	kindTypedef
	kindVolatile
	kindConst
	kindRestrict
	kindFunc
	kindFuncProto
	kindVar
	kindDatasec
	kindFloat
	kindDeclTag
	kindTypeTag
	kindEnum64
	kindLocParam
	kindLocProto
	kindLocsec

	maxKind = kindLocsec
)

var kindNames = [...]string{
	"UNKN", "INT", "PTR", "ARRAY", "STRUCT", "UNION", "ENUM", "FWD", "TYPEDEF",
	"VOLATILE", "CONST", "RESTRICT", "FUNC", "FUNC_PROTO", "VAR", "DATASEC",
	"FLOAT", "DECL_TAG", "TYPE_TAG", "ENUM64", "LOC_PARAM", "LOC_PROTO", "LOCSEC",
}

func kindName(kind uint32) string {
	if int(kind) < len(kindNames) {
		return kindNames[kind]
	}
	return fmt.Sprint(kind)
}

// Every type is a struct btf_type (name offset, info, size or type id) and
// what its kind adds.
const typeSize = 12

// Info has the vlen in bits 0-23, the kind in bits 24-30 and the kind flag in
// bit 31. Older kernels know 16 bits of vlen and 5 of kind and demand zeros in
// the rest, so the wide reading is right for both.
func infoVlen(info uint32) uint32 { return info & 0xffffff }
func infoKind(info uint32) uint32 { return info >> 24 & 0x7f }
func infoFlag(info uint32) bool   { return info>>31 != 0 }

// kindSize is the size of a type: fixed bytes, struct btf_type included, in
// the upper bits, bytes for each of vlen in the lower eight. Zero is unknown.
type kindSize uint32

func sizeOf(fixed, each uint32) kindSize { return kindSize((typeSize+fixed)<<8 | each) }

func (s kindSize) fixed() uint64 { return uint64(s >> 8) }
func (s kindSize) each() uint64  { return uint64(s & 0xff) }

func (s kindSize) bytes(vlen uint32) uint64 { return s.fixed() + s.each()*uint64(vlen) }

// kindSizes is indexed by kind; 128 entries so that seven bits need no check.
type kindSizes [128]kindSize

var knownSizes = kindSizes{
	kindInt:       sizeOf(4, 0),
	kindPtr:       sizeOf(0, 0),
	kindArray:     sizeOf(12, 0),
	kindStruct:    sizeOf(0, memberSize),
	kindUnion:     sizeOf(0, memberSize),
	kindEnum:      sizeOf(0, enumSize),
	kindFwd:       sizeOf(0, 0),
	kindTypedef:   sizeOf(0, 0),
	kindVolatile:  sizeOf(0, 0),
	kindConst:     sizeOf(0, 0),
	kindRestrict:  sizeOf(0, 0),
	kindFunc:      sizeOf(0, 0),
	kindFuncProto: sizeOf(0, paramSize),
	kindVar:       sizeOf(4, 0),
	kindDatasec:   sizeOf(0, 12),
	kindFloat:     sizeOf(0, 0),
	kindDeclTag:   sizeOf(4, 0),
	kindTypeTag:   sizeOf(0, 0),
	kindEnum64:    sizeOf(0, enum64Size),
	// struct btf_loc_param has a flags word before its vlen values.
	kindLocParam: sizeOf(4, 4),
	kindLocProto: sizeOf(0, 4),
	kindLocsec:   sizeOf(0, 12),
}

const (
	memberSize = 12
	enumSize   = 8
	enum64Size = 12
	paramSize  = 8
)

// withLayout returns the sizes with kinds added that only the layout section
// knows: one struct btf_layout { u8 info_sz; u8 elem_sz; u16 flags } a kind.
func (k *kindSizes) withLayout(layout []byte) *kindSizes {
	if len(layout) <= 4*(maxKind+1) {
		return k
	}
	all := *k
	for kind := maxKind + 1; kind < len(all) && 4*kind+4 <= len(layout); kind++ {
		all[kind] = sizeOf(uint32(layout[4*kind]), uint32(layout[4*kind+1]))
	}
	return &all
}
