package btfscan

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

const kernelPath = "/sys/kernel/btf/vmlinux"

// kernelBytes returns the BTF of the running kernel, or skips.
func kernelBytes(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile(kernelPath)
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("no kernel BTF here")
	}
	qt.Assert(tb, qt.IsNil(err))
	return data
}

// kernel returns the scan and its slow twin of the same bytes.
func kernel(tb testing.TB) (*BTF, *btf.Spec) {
	tb.Helper()
	if strconv.IntSize == 32 {
		tb.Skip("the twin refuses tags of a whole declaration where int has 32 bits")
	}
	data := kernelBytes(tb)
	b, err := Parse(data, nil)
	qt.Assert(tb, qt.IsNil(err))
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	qt.Assert(tb, qt.IsNil(err))
	return b, spec
}

// TestKernelEqualsBTF compares all functions of the running kernel with what
// cilium/ebpf makes of them: ids, names, prototypes as C, shapes.
func TestKernelEqualsBTF(t *testing.T) {
	b, spec := kernel(t)
	qt.Assert(t, qt.IsNil(b.Partial()))
	i, id := 0, btf.TypeID(1)
	for ; ; id++ {
		typ, err := spec.TypeByID(id)
		if errors.Is(err, btf.ErrNotFound) {
			break
		}
		qt.Assert(t, qt.IsNil(err))
		fn, ok := typ.(*btf.Func)
		if !ok {
			continue
		}
		if i >= b.FuncCount() {
			t.Fatalf("%s is not in the scan", fn.Name)
		}
		if err := compareFunc(b, spec, b.Func(i), fn); err != nil {
			t.Fatal(err) // one of 50,000 is enough
		}
		i++
	}
	qt.Check(t, qt.Equals(i, b.FuncCount()))
	qt.Check(t, qt.Equals(b.NumTypes(), int(id)-1))
	t.Logf("%d types, %d functions", b.NumTypes(), i)
}

func compareFunc(b *BTF, spec *btf.Spec, f Func, fn *btf.Func) error {
	id, err := spec.TypeID(fn)
	protoID, err2 := spec.TypeID(fn.Type)
	got, err3 := b.Prototype(f)
	shape, err4 := b.Shape(f.Proto)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return fmt.Errorf("%s: %w", fn.Name, err)
	}
	if want := (Func{uint32(id), fn.Name, Linkage(fn.Linkage), uint32(protoID)}); f != want {
		return fmt.Errorf("got %v, want %v", f, want)
	}
	if want := cDecl(fn.Type, fn.Name, true); got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	want := twinShape(fn.Type.(*btf.FuncProto))
	if shape.Ret != want.Ret || shape.Variadic != want.Variadic || !slices.Equal(shape.Params, want.Params) {
		return fmt.Errorf("%s: got %v, want %v", fn.Name, shape, want)
	}
	if !slices.Contains(b.ByName(fn.Name), f) {
		return fmt.Errorf("%s is not found by name", fn.Name)
	}
	if byID, ok := b.FuncByID(f.ID); !ok || byID != f {
		return fmt.Errorf("%s is not found by id", fn.Name)
	}
	return nil
}

// cDecl spells a type the recursive way: what is around the name grows from the
// inside out.
func cDecl(t btf.Type, inner string, named bool) string {
	switch t := t.(type) {
	case nil, *btf.Void:
		return join("void", inner)
	case *btf.Int:
		return join(t.Name, inner)
	case *btf.Float:
		return join(t.Name, inner)
	case *btf.Typedef:
		return join(t.Name, inner)
	case *btf.Struct:
		return join("struct "+orAnonymous(t.Name), inner)
	case *btf.Union:
		return join("union "+orAnonymous(t.Name), inner)
	case *btf.Enum:
		return join("enum "+orAnonymous(t.Name), inner)
	case *btf.Fwd:
		return join(t.Kind.String()+" "+t.Name, inner)
	case *btf.TypeTag:
		return cDecl(t.Type, inner, named)
	case *btf.Const:
		return cQualified("const", t.Type, inner)
	case *btf.Volatile:
		return cQualified("volatile", t.Type, inner)
	case *btf.Restrict:
		return cQualified("restrict", t.Type, inner)
	case *btf.Pointer:
		switch btf.QualifiedType(t.Target).(type) {
		case *btf.Array, *btf.FuncProto:
			return cDecl(t.Target, "(*"+inner+")", false)
		}
		return cDecl(t.Target, "*"+inner, false)
	case *btf.Array:
		return cDecl(t.Type, fmt.Sprintf("%s[%d]", inner, t.Nelems), false)
	case *btf.FuncProto:
		return cDecl(t.Return, inner+"("+cParams(t, named)+")", false)
	}
	return fmt.Sprintf("%T?", t)
}

func cQualified(word string, t btf.Type, inner string) string {
	if _, ok := btf.QualifiedType(t).(*btf.Pointer); ok {
		return cDecl(t, join(word, inner), false)
	}
	return word + " " + cDecl(t, inner, false)
}

func cParams(p *btf.FuncProto, named bool) string {
	var params []string
	for i, param := range p.Params {
		name := ""
		if named {
			name = param.Name
		}
		if _, void := param.Type.(*btf.Void); void && i == len(p.Params)-1 {
			params = append(params, "...")
			continue
		}
		params = append(params, cDecl(param.Type, name, false))
	}
	if len(params) == 0 {
		return "void"
	}
	return strings.Join(params, ", ")
}

func join(a, b string) string {
	if b == "" || strings.HasPrefix(b, "[") {
		return a + b
	}
	return a + " " + b
}

func orAnonymous(name string) string {
	if name == "" {
		return "{...}"
	}
	return name
}

func twinShape(p *btf.FuncProto) Shape {
	s := Shape{Ret: twinValue(p.Return)}
	for i, param := range p.Params {
		if _, void := param.Type.(*btf.Void); void && i == len(p.Params)-1 {
			s.Variadic = true
			break
		}
		s.Params = append(s.Params, twinValue(param.Type))
	}
	return s
}

func twinValue(t btf.Type) Value {
	t = btf.UnderlyingType(t)
	var class Class
	switch t.(type) {
	case *btf.Void:
		return Value{}
	case *btf.Int, *btf.Enum:
		class = ClassScalar
	case *btf.Pointer:
		class = ClassPointer
	case *btf.Struct:
		class = ClassStruct
	case *btf.Union:
		class = ClassUnion
	case *btf.Float:
		class = ClassFloat
	default:
		return Value{Class: ClassOther}
	}
	size, err := btf.Sizeof(t)
	if err != nil {
		panic(err)
	}
	return Value{class, uint32(size)}
}

// TestKernelSizes compares every type's size with the twin's.
func TestKernelSizes(t *testing.T) {
	b, spec := kernel(t)
	for id := uint32(1); id < b.end(); id++ {
		typ, err := spec.TypeByID(btf.TypeID(id))
		qt.Assert(t, qt.IsNil(err))
		want, wantErr := btf.Sizeof(typ)
		got, err := b.Sizeof(id)
		if !sized(typ) {
			continue
		}
		if (err == nil) != (wantErr == nil) || err == nil && got != uint64(want) {
			t.Fatalf("type %d %s: %d %v, want %d %v", id, typ, got, err, want, wantErr)
		}
	}
}

// sized leaves out what the twin gives a size although C has none.
func sized(typ btf.Type) bool {
	switch btf.UnderlyingType(typ).(type) {
	case *btf.Void, *btf.Datasec, *btf.Var, *btf.Func, *btf.FuncProto, *btf.Fwd:
		return false
	}
	return !isDeclTag(typ)
}

// isDeclTag looks for the type that the twin does not export.
func isDeclTag(typ btf.Type) bool { return fmt.Sprintf("%T", typ) == "*btf.declTag" }

// TestKernelTypeNames compares the spelling of every data type.
func TestKernelTypeNames(t *testing.T) {
	b, spec := kernel(t)
	for id := uint32(1); id < b.end(); id++ {
		typ, err := spec.TypeByID(btf.TypeID(id))
		qt.Assert(t, qt.IsNil(err))
		switch typ.(type) {
		case *btf.Func, *btf.Var, *btf.Datasec:
			continue
		}
		if isDeclTag(typ) {
			continue
		}
		got, err := b.TypeName(id)
		qt.Assert(t, qt.IsNil(err))
		if want := cDecl(typ, "", false); got != want {
			t.Fatalf("type %d: got %s, want %s", id, got, want)
		}
	}
}

// TestKernelQueries checks the quick comparison against the spelling.
func TestKernelQueries(t *testing.T) {
	b, _ := kernel(t)
	for _, want := range []string{"struct sk_buff *", "struct file *", "void *", "unsigned int", "char *"} {
		q, err := NewTypeQuery(want)
		qt.Assert(t, qt.IsNil(err))
		slow := &TypeQuery{text: want, stars: -1, whole: q.whole, memo: map[*BTF][]verdict{}}
		found := 0
		for f := range b.Funcs() {
			i, err := q.FindParam(b, f.Proto)
			qt.Assert(t, qt.IsNil(err))
			j, err := slow.FindParam(b, f.Proto)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(i, j), qt.Commentf("%s in %s", want, f.Name))
			if i >= 0 {
				found++
			}
		}
		t.Logf("%d functions take %s", found, want)
		qt.Check(t, qt.IsTrue(found > 100))
	}
}

func TestKernelFinds(t *testing.T) {
	b, spec := kernel(t)
	qt.Check(t, qt.IsTrue(b.HasEnumerator("BPF_PROG_TYPE_KPROBE")))
	qt.Check(t, qt.IsFalse(b.HasEnumerator("KALLSCOPE_NO_SUCH_VALUE")))

	for _, test := range [][2]string{{"module", "list"}, {"sk_buff", "len"}, {"sk_buff", "sk"}, {"task_struct", "pid"}} {
		var s *btf.Struct
		qt.Assert(t, qt.IsNil(spec.TypeByName(test[0], &s)))
		off, id, ok := b.StructMember(test[0], test[1])
		qt.Assert(t, qt.IsTrue(ok))
		want, typ := twinMember(s.Members, test[1])
		qt.Check(t, qt.Equals(off, uint32(want)))
		wantID, err := spec.TypeID(typ)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(id, uint32(wantID)))
	}
}

func twinMember(members []btf.Member, name string) (btf.Bits, btf.Type) {
	for _, m := range members {
		if m.Name == name {
			return m.Offset, m.Type
		}
		if m.Name != "" {
			continue
		}
		var inner []btf.Member
		switch t := m.Type.(type) {
		case *btf.Struct:
			inner = t.Members
		case *btf.Union:
			inner = t.Members
		}
		if off, t := twinMember(inner, name); t != nil {
			return m.Offset + off, t
		}
	}
	return 0, nil
}

// TestKernelBigEndian swaps all words of the kernel's BTF: nothing else may
// change.
func TestKernelBigEndian(t *testing.T) {
	data := kernelBytes(t)
	if data[0] != 0x9f {
		t.Skip("not little-endian here")
	}
	b := mustParse(t, data, nil)
	swapped := slices.Clone(data)
	slices.Reverse(swapped[:2])
	for at := 4; at < b.typesOff+len(b.types); at += 4 {
		slices.Reverse(swapped[at : at+4])
	}
	big := mustParse(t, swapped, nil)
	qt.Assert(t, qt.Equals(big.NumTypes(), b.NumTypes()))
	qt.Assert(t, qt.Equals(big.FuncCount(), b.FuncCount()))
	for i := range b.FuncCount() {
		f, g := b.Func(i), big.Func(i)
		p, err := b.Prototype(f)
		q, err2 := big.Prototype(g)
		if f != g || p != q || err != nil || err2 != nil {
			t.Fatalf("%v is %v in big-endian: %s, %s, %v, %v", f, g, p, q, err, err2)
		}
	}
}
