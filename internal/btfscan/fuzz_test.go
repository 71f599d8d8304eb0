package btfscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

// fuzzLimit keeps the twin, which recurses, from needing much stack.
const fuzzLimit = 1 << 16

func addCases(f *testing.F, add func(data []byte)) {
	names, err := filepath.Glob("testdata/cases/*btf*")
	qt.Assert(f, qt.IsNil(err))
	for _, name := range names {
		if ext := filepath.Ext(name); ext != ".btf" && ext != ".elf" {
			continue
		}
		data, err := os.ReadFile(name)
		qt.Assert(f, qt.IsNil(err))
		add(data)
	}
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		w := newBuilder(order)
		p := w.proto(w.int("int", 4), "p", w.ptr(0), "", uint32(0))
		w.fn("variadic", p)
		w.add(kindEnum64, 1, "e", 8, w.str("ONE"), 1, 0)
		w.add(kindStruct|1<<7, 1, "s", 4, w.str("m"), 1, 3<<24|5)
		w.fn("after", p)
		add(w.bytes())
	}
}

// FuzzScanEqualsBTF compares the functions of any bytes that cilium/ebpf takes
// for BTF.
func FuzzScanEqualsBTF(f *testing.F) {
	addCases(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzLimit || bytes.HasPrefix(data, []byte("\x7fELF")) {
			return
		}
		spec, err := btf.LoadSpecFromReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		b, err := Parse(data, nil)
		if err != nil {
			if !stricter(err) && !wideInfo(data) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if wideInfo(data) {
			return
		}
		if b.Partial() != nil {
			t.Fatal(b.Partial())
		}
		compareAll(t, b, spec)
	})
}

func compareAll(t *testing.T, b *BTF, spec *btf.Spec) {
	for id := uint32(1); id < b.end(); id++ {
		typ, err := spec.TypeByID(btf.TypeID(id))
		if err != nil {
			continue // refers to something odd
		}
		fn, isFunc := typ.(*btf.Func)
		f, ok := b.FuncByID(id)
		if ok != isFunc {
			t.Fatalf("type %d: function %v, want %v", id, ok, isFunc)
		}
		if !ok {
			continue
		}
		proto, err := spec.TypeID(fn.Type)
		if err != nil {
			t.Fatal(err)
		}
		want := Func{id, fn.Name, Linkage(min(fn.Linkage, linkageCap)), uint32(proto)}
		if f != want {
			t.Fatalf("got %+v, want %+v", f, want)
		}
	}
}

// stricter knows what Parse refuses at once and the twin late or never.
func stricter(err error) bool {
	var ref *RefError
	var format *FormatError
	return errors.As(err, &ref) ||
		errors.As(err, &format) && (format.Reason == "no string section" || format.Offset == headerSize)
}

// wideInfo says whether a type uses bits of info that the twin ignores. It walks
// as the twin does.
func wideInfo(data []byte) bool {
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint16(data) != magic {
		order = binary.BigEndian
	}
	start := order.Uint32(data[4:]) + order.Uint32(data[8:])
	for types := data[start:][:order.Uint32(data[12:])]; len(types) >= typeSize; {
		info := order.Uint32(types[4:])
		if info&^0x9f00ffff != 0 {
			return true
		}
		types = types[knownSizes[infoKind(info)].bytes(infoVlen(info)):]
	}
	return false
}

// FuzzParse calls everything on any bytes, with any base.
func FuzzParse(f *testing.F) {
	addCases(f, func(data []byte) { f.Add(data, []byte{}, "int") })
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", "cases", name))
		qt.Assert(f, qt.IsNil(err))
		return data
	}
	f.Add(read("btf_split_mod.btf"), read("btf_split_base.btf"), "int *")
	f.Add(read("btf_distilled_mod.btf"), read("btf_distilled_base.btf"), "struct task_demo *")
	f.Fuzz(func(t *testing.T, data, baseData []byte, word string) {
		if len(data) > fuzzLimit || len(baseData) > fuzzLimit {
			return
		}
		var base *BTF
		if len(baseData) > 0 {
			var err error
			if base, err = Parse(baseData, nil); err != nil {
				return
			}
		}
		b, err := Parse(data, base)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("error without text")
			}
			return
		}
		useAll(t, b, word)
	})
}

func useAll(t *testing.T, b *BTF, word string) {
	if b.NumTypes()*typeSize > len(b.data) || b.FuncCount() > b.NumTypes() {
		t.Fatalf("%d types, %d functions in %d bytes", b.NumTypes(), b.FuncCount(), len(b.data))
	}
	for i := range min(b.FuncCount(), 100) {
		f := b.Func(i)
		if got, ok := b.FuncByID(f.ID); !ok || got != f {
			t.Fatalf("%v by id: %v", f, got)
		}
		found := false
		for j := range b.Indexes(f.Name) {
			if b.Func(j).Name != f.Name {
				t.Fatalf("%s found for %s", b.Func(j).Name, f.Name)
			}
			found = found || i == j
		}
		if !found {
			t.Fatalf("%v not by name", f)
		}
		_, _ = b.Prototype(f)
		_, _ = b.Shape(f.Proto)
		_, _ = b.Proto(f.Proto)
	}
	q, err := NewTypeQuery(word)
	for id := range min(b.end()+1, 300) {
		name, nameErr := b.TypeName(id)
		_, _ = b.Sizeof(id)
		if err == nil {
			_, _ = q.Match(b, id)
		}
		if nameErr == nil && id >= b.end() {
			t.Fatalf("type %d of %d is %q", id, b.end()-1, name)
		}
	}
	_ = b.HasEnumerator(word)
	_, _, _ = b.StructMember(word, word)
	_ = b.Warning()
}

func FuzzFromELF(f *testing.F) {
	addCases(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzLimit {
			return
		}
		b, err := FromELF(bytes.NewReader(data), nil)
		if err == nil {
			useAll(t, b, "int")
		}
	})
}

// FuzzTypeQuery asks one of everything for any text. What is spelled the same
// must be found by the quick comparison too.
func FuzzTypeQuery(f *testing.F) {
	for _, text := range []string{"struct foo *", "unsigned long", "int (*)(void *)", "char[16]", "struct {...} *", "const"} {
		f.Add(text)
	}
	zoo := newZoo(f, binary.LittleEndian)
	for _, id := range zoo.ids {
		name, err := zoo.TypeName(id)
		qt.Assert(f, qt.IsNil(err))
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := NewTypeQuery(text)
		if err != nil {
			return
		}
		slow := &TypeQuery{stars: -1, whole: q.whole, memo: map[*BTF][]verdict{}}
		for _, id := range zoo.ids {
			quick, err := q.Match(zoo.BTF, id)
			if err != nil {
				t.Fatal(err)
			}
			spelled, err := slow.Match(zoo.BTF, id)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := zoo.TypeName(id)
			if spelled && !quick {
				t.Fatalf("%q is spelled like %s, but the walk says no", text, name)
			}
			if text == name && !quick {
				t.Fatalf("%s does not match itself", name)
			}
		}
	})
}
