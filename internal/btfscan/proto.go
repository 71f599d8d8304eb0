package btfscan

import "fmt"

// Proto is a function prototype.
type Proto struct {
	// Ret is the type id of the result, 0 for void.
	Ret uint32
	// Params are the parameters, without the mark of a variadic function.
	Params []Param
	// Variadic functions take more than Params.
	Variadic bool
}

// Param is one parameter. Name is "" where BTF has none, and shares memory with
// the BTF.
type Param struct {
	Name string
	Type uint32
}

// Proto returns the prototype with this id, such as [Func.Proto]. It fails for
// ids that are out of range or of another kind.
func (b *BTF) Proto(id uint32) (Proto, error) {
	r, err := b.protoRecord(id)
	if err != nil {
		return Proto{}, err
	}
	n, variadic := r.params()
	p := Proto{Ret: r.ref, Variadic: variadic}
	if n > 0 {
		p.Params = make([]Param, n)
	}
	for i := range p.Params {
		name, err := r.paramName(i)
		if err != nil {
			return Proto{}, err
		}
		p.Params[i] = Param{name, r.paramType(i)}
	}
	return p, nil
}

// ParamCount returns the number of parameters of the prototype with this id,
// without the mark of a variadic function.
func (b *BTF) ParamCount(id uint32) (int, error) {
	r, err := b.protoRecord(id)
	if err != nil {
		return 0, err
	}
	n, _ := r.params()
	return n, nil
}

func (b *BTF) protoRecord(id uint32) (record, error) {
	r, err := b.record(id)
	if err != nil {
		return r, err
	}
	if k := r.kind(); k != kindFuncProto {
		return r, &RefError{Ref: id, Reason: "kind " + kindName(k) + ", not FUNC_PROTO"}
	}
	return r, nil
}

// params returns the number of parameters. A last one of type void and without
// name is the mark of a variadic function.
func (r *record) params() (n int, variadic bool) {
	n = r.vlen()
	if n > 0 && r.paramType(n-1) == 0 && r.word(2*(n-1)) == 0 {
		return n - 1, true
	}
	return n, false
}

func (r *record) paramType(i int) uint32 { return r.word(2*i + 1) }

func (r *record) paramName(i int) (string, error) {
	return r.stringAt(typeSize + paramSize*i)
}

// stringAt returns the string whose offset stands at byte at of the type.
func (r *record) stringAt(at int) (string, error) {
	nameOff := r.b.u32(r.off + at)
	s, ok := r.b.lookup(nameOff)
	if !ok {
		return "", &FormatError{
			r.pos() + int64(at), r.id,
			fmt.Sprintf("name offset %d is outside the string section of %d bytes", nameOff, r.b.strEnd()),
		}
	}
	return s, nil
}
