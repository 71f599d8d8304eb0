package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The kinds of include/uapi/linux/btf.h that are more than the rest.
const (
	kindInt       = 1
	kindPtr       = 2
	kindArray     = 3
	kindStruct    = 4
	kindUnion     = 5
	kindEnum      = 6
	kindTypedef   = 8
	kindVolatile  = 9
	kindConst     = 10
	kindRestrict  = 11
	kindFunc      = 12
	kindFuncProto = 13
	kindVar       = 14
	kindDatasec   = 15
	kindDeclTag   = 17
	kindTypeTag   = 18
	kindEnum64    = 19
)

// A btfType is one type as it lies in the file: three words and what its kind
// adds.
type btfType struct {
	words []uint32
	used  bool
}

func (t *btfType) kind() uint32 { return t.words[1] >> 24 & 0x1f }
func (t *btfType) vlen() uint32 { return t.words[1] & 0xffff }

// size returns the number of words.
func (t *btfType) size() int {
	switch n := int(t.vlen()); t.kind() {
	case kindInt, kindVar, kindDeclTag:
		return 4
	case kindArray:
		return 6
	case kindStruct, kindUnion, kindDatasec, kindEnum64:
		return 3 + 3*n
	case kindEnum, kindFuncProto:
		return 3 + 2*n
	}
	return 3
}

// btfObject is the types of one object, and the strings that are left of it.
type btfObject struct {
	base    *btfObject
	types   []*btfType // by id; of the base, too
	strings []byte
	start   uint32            // of strings, in the count that continues the base
	out     map[string]uint32 // new offsets
	text    []byte            // new strings
}

// cutBTF returns the BTF of all objects, by section.
func (c *cutter) cutBTF() (map[string][]byte, error) {
	const vmlinux = "btf:vmlinux"
	objects := make(map[string]*btfObject)
	for _, s := range c.in.Sections() {
		if !strings.HasPrefix(s.Name(), "btf:") {
			continue
		}
		data, err := s.Bytes(maxSection)
		if err != nil {
			return nil, err
		}
		// vmlinux is the first.
		o, err := parseBTF(data, objects[vmlinux])
		if err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Name(), err)
		}
		objects[s.Name()] = o
		c.mark(strings.TrimPrefix(s.Name(), "btf:"), o)
	}
	out := make(map[string][]byte)
	if base := objects[vmlinux]; base != nil {
		out[vmlinux] = base.encode()
	}
	for name, o := range objects {
		if o.base != nil {
			out[name] = o.encode() // its strings are behind those of the base
		}
	}
	return out, nil
}

func parseBTF(data []byte, base *btfObject) (*btfObject, error) {
	le := binary.LittleEndian
	if len(data) < 24 || le.Uint16(data) != 0xeb9f {
		return nil, errors.New("not BTF in little-endian")
	}
	head := le.Uint32(data[4:])
	types := data[head+le.Uint32(data[8:]):][:le.Uint32(data[12:])]
	o := &btfObject{base: base, strings: data[head+le.Uint32(data[16:]):][:le.Uint32(data[20:])], out: make(map[string]uint32)}
	if base != nil {
		o.types = append(o.types, base.types...)
		o.start = base.start + uint32(len(base.strings))
	} else {
		o.types = append(o.types, &btfType{words: make([]uint32, 3)})
		o.text = []byte{0}
	}
	words := make([]uint32, len(types)/4)
	if err := binary.Read(bytes.NewReader(types), le, words); err != nil {
		return nil, err
	}
	for len(words) >= 3 {
		t := &btfType{words: words}
		if t.size() > len(words) {
			return nil, fmt.Errorf("type %d does not end", len(o.types))
		}
		t.words, words = words[:t.size():t.size()], words[t.size():]
		o.types = append(o.types, t)
	}
	return o, nil
}

// name returns the string at an offset.
func (o *btfObject) name(off uint32) string {
	if off < o.start {
		return o.base.name(off)
	}
	s, _, _ := bytes.Cut(o.strings[off-o.start:], []byte{0})
	return string(s)
}

// mark marks the functions that are kept and all types that they need.
func (c *cutter) mark(module string, o *btfObject) {
	if module == "vmlinux" {
		module = ""
	}
	for _, t := range o.own() {
		if t.kind() != kindFunc {
			continue
		}
		if _, ok := c.keep.Match(module, o.name(t.words[0])); ok {
			o.use(t)
		}
	}
}

func (o *btfObject) own() []*btfType {
	if o.base != nil {
		return o.types[len(o.base.types):]
	}
	return o.types[1:]
}

// use marks a type and those it refers to. Structs are cut to their size.
func (o *btfObject) use(t *btfType) {
	if t.used {
		return
	}
	t.used = true
	switch t.kind() {
	case kindPtr, kindTypedef, kindVolatile, kindConst, kindRestrict, kindFunc, kindTypeTag:
		o.use(o.types[t.words[2]])
	case kindArray:
		o.use(o.types[t.words[3]])
		o.use(o.types[t.words[4]])
	case kindFuncProto:
		o.use(o.types[t.words[2]])
		for i := 4; i < len(t.words); i += 2 {
			o.use(o.types[t.words[i]])
		}
	case kindStruct, kindUnion, kindEnum, kindEnum64:
		t.words = t.words[:3]
		t.words[1] &^= 0xffff
	}
}

// encode returns the object with the types that are used. The others become
// pointers to void: ids stay, and they pack to nothing. The base comes first.
func (o *btfObject) encode() []byte {
	var types []uint32
	for _, t := range o.own() {
		if !t.used {
			types = append(types, 0, kindPtr<<24, 0)
			continue
		}
		words := slices.Clone(t.words)
		words[0] = o.rename(words[0])
		if t.kind() == kindFuncProto {
			for i := 3; i < len(words); i += 2 {
				words[i] = o.rename(words[i])
			}
		}
		types = append(types, words...)
	}
	le := binary.LittleEndian
	out := le.AppendUint16(nil, 0xeb9f)
	out = append(out, 1, 0)
	for _, n := range []int{24, 0, 4 * len(types), 4 * len(types), len(o.text)} {
		out = le.AppendUint32(out, uint32(n))
	}
	for _, w := range types {
		out = le.AppendUint32(out, w)
	}
	return append(out, o.text...)
}

// rename returns the new offset of a string.
func (o *btfObject) rename(off uint32) uint32 {
	name := o.name(off)
	if name == "" {
		return 0
	}
	start := uint32(0)
	if o.base != nil {
		start = uint32(len(o.base.text))
	}
	if _, ok := o.out[name]; !ok {
		o.out[name] = start + uint32(len(o.text))
		o.text = append(append(o.text, name...), 0)
	}
	return o.out[name]
}
