package btfscan

import "math/bits"

// PointerSize is the size of a pointer. BTF does not say it; all kernels that
// kallscope attaches to have 64 bits.
const PointerSize = 8

// Class sorts types by how they are passed, below typedefs and qualifiers.
type Class uint8

// The classes that the kernel's rules for trampolines tell apart.
const (
	// Void is no value. As a parameter it is malformed.
	Void Class = iota
	// Scalar is an integer, a bool or an enum.
	Scalar
	// Pointer is any pointer.
	Pointer
	// Struct is a struct by value.
	Struct
	// Union is a union by value.
	Union
	// Float is a floating point number.
	Float
	// Other is what C cannot pass: arrays, functions, incomplete types.
	Other
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
	// Size in bytes. Zero for void, an empty struct, and Other without a size.
	Size uint32
}

// Aggregate says whether v is a struct or union by value.
func (v Value) Aggregate() bool { return v.Class == Struct || v.Class == Union }

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

func (b *BTF) value(id uint32) (Value, error) {
	r, err := b.resolve(id)
	if err != nil {
		return Value{}, err
	}
	switch r.kind() {
	case kindUnknown:
		return Value{}, nil
	case kindInt, kindEnum, kindEnum64:
		return Value{Scalar, r.ref}, nil
	case kindPtr:
		return Value{Pointer, PointerSize}, nil
	case kindStruct:
		return Value{Struct, r.ref}, nil
	case kindUnion:
		return Value{Union, r.ref}, nil
	case kindFloat:
		return Value{Float, r.ref}, nil
	}
	return Value{Class: Other}, nil
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
