package btfscan

import "math/bits"

// PointerSize is the size of a pointer. BTF does not say it; all kernels that
// kallscope attaches to have 64 bits.
const PointerSize = 8

// Class sorts types by how they are passed, below typedefs and qualifiers.
type Class uint8

// The classes that the kernel's rules for trampolines tell apart.
const (
	// ClassVoid is no value. As a parameter it is malformed.
	ClassVoid Class = iota
	// ClassScalar is an integer, a bool or an enum.
	ClassScalar
	// ClassPointer is any pointer.
	ClassPointer
	// ClassStruct is a struct by value.
	ClassStruct
	// ClassUnion is a union by value.
	ClassUnion
	// ClassFloat is a floating point number.
	ClassFloat
	// ClassOther is what C cannot pass: arrays, functions, incomplete types.
	ClassOther
)

// String returns the name of c.
func (c Class) String() string {
	names := [...]string{"void", "scalar", "pointer", "struct", "union", "float", "other"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// Value is how one parameter or result is passed.
type Value struct {
	Class Class
	// Size in bytes. Zero for void, an empty struct, and ClassOther.
	Size uint32
}

// Aggregate says whether v is a struct or union by value.
func (v Value) Aggregate() bool { return v.Class == ClassStruct || v.Class == ClassUnion }

// Shape is what decides whether a trampoline (fentry, fexit) fits a function.
// The rules themselves are not here.
type Shape struct {
	Ret      Value
	Params   []Value // without the mark of a variadic function
	Variadic bool
}

// Shape returns the shape of the prototype with this id.
func (b *BTF) Shape(proto uint32) (Shape, error) {
	var s Shape
	err := b.ShapeInto(proto, &s)
	return s, err
}

// ShapeInto is [BTF.Shape] into s, whose Params it reuses. After an error s is
// undefined.
func (b *BTF) ShapeInto(proto uint32, s *Shape) error {
	r, err := b.protoRecord(proto)
	if err != nil {
		return err
	}
	n, variadic := r.params()
	s.Params, s.Variadic = s.Params[:0], variadic
	if s.Ret, err = b.value(r.ref); err != nil {
		return err
	}
	for i := range n {
		v, err := b.value(r.paramType(i))
		if err != nil {
			return err
		}
		s.Params = append(s.Params, v)
	}
	return nil
}

// value returns how a type is passed, from a table of the BTF that has it.
func (b *BTF) value(id uint32) (Value, error) {
	if id == 0 {
		return Value{}, nil
	}
	if owner := b.owner(id); owner != nil {
		if v := owner.valueTable()[id-owner.first]; v != 0 {
			return v.value(), nil
		}
	}
	r, err := b.resolve(id)
	return valueOf(&r), err
}

// valueOf is for what resolve returns.
func valueOf(r *record) Value {
	switch r.kind() {
	case kindUnknown:
		return Value{}
	case kindInt, kindEnum, kindEnum64:
		return Value{ClassScalar, r.ref}
	case kindPtr:
		return Value{ClassPointer, PointerSize}
	case kindStruct:
		return Value{ClassStruct, r.ref}
	case kindUnion:
		return Value{ClassUnion, r.ref}
	case kindFloat:
		return Value{ClassFloat, r.ref}
	}
	return Value{Class: ClassOther}
}

// packedValue is a Value in four bytes: the class above 29 bits of size. Zero is
// for those that must be looked up: void, errors, giants.
type packedValue uint32

const packedSizeBits = 29

func pack(v Value) packedValue {
	if v.Size >= 1<<packedSizeBits {
		return 0
	}
	return packedValue(v.Class)<<packedSizeBits | packedValue(v.Size)
}

func (p packedValue) value() Value {
	return Value{Class(p >> packedSizeBits), uint32(p) & (1<<packedSizeBits - 1)}
}

// valueTable has the value of each own type. Following every parameter of every
// function through its typedefs takes about three times as long.
func (b *BTF) valueTable() []packedValue {
	return b.values.get(func() []packedValue {
		table := make([]packedValue, b.n)
		for i, off := range b.offsetIndex() {
			r := b.recordAt(b.first+uint32(i), int(off))
			if aliasKinds.has(r.kind()) {
				to, err := b.resolve(r.ref)
				if err != nil {
					continue
				}
				r = to
			}
			table[i] = pack(valueOf(&r))
		}
		return table
	})
}

// Sizeof returns the size of a type in bytes. It fails for types that have
// none: void, functions, incomplete structs.
func (b *BTF) Sizeof(id uint32) (uint64, error) {
	count := uint64(1)
	for range maxDepth {
		r, err := b.resolve(id)
		if err != nil {
			return 0, err
		}
		size := uint64(r.ref)
		switch kind := r.kind(); kind {
		case kindArray:
			id = r.word(0)
			hi, lo := bits.Mul64(count, uint64(r.word(2)))
			if hi != 0 {
				return 0, &RefError{Ref: r.id, Reason: "array size overflows"}
			}
			count = lo
			continue
		case kindPtr:
			size = PointerSize
		case kindInt, kindEnum, kindEnum64, kindStruct, kindUnion, kindFloat, kindDatasec:
		default:
			return 0, &RefError{Ref: id, Reason: "has no size"}
		}
		hi, lo := bits.Mul64(count, size)
		if hi != 0 {
			return 0, &RefError{Ref: id, Reason: "array size overflows"}
		}
		return lo, nil
	}
	return 0, cycleError(id)
}
