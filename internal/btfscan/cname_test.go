package btfscan

import (
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"
)

// zoo has one of everything that C can spell.
type zoo struct {
	*BTF
	ids map[string]uint32
}

func newZoo(t testing.TB, order byteOrder) zoo {
	w := newBuilder(order)
	ids := map[string]uint32{}
	is := func(name string, id uint32) uint32 { ids[name] = id; return id }

	integer := is("int", w.int("int", 4))
	char := is("char", w.int("char", 1))
	ulong := is("ulong", w.int("long unsigned int", 8))
	foo := is("struct", w.add(kindStruct, 0, "foo", 24))
	is("anon", w.add(kindStruct, 0, "", 4))
	is("union", w.add(kindUnion, 0, "u", 8))
	is("anon union", w.add(kindUnion, 0, "", 8))
	is("enum", w.add(kindEnum, 0, "e", 4))
	is("enum64", w.add(kindEnum64, 0, "e64", 8))
	is("anon enum", w.add(kindEnum, 0, "", 4))
	is("fwd struct", w.add(kindFwd, 0, "fs", 0))
	is("fwd union", w.add(kindFwd|1<<7, 0, "fu", 0))
	is("float", w.add(kindFloat, 0, "double", 8))
	u32 := is("u32", w.add(kindTypedef, 0, "u32", w.add(kindTypedef, 0, "__u32", w.int("unsigned int", 4))))

	is("void *", w.ptr(0))
	cchar := is("const char", w.add(kindConst, 0, "", char))
	pcchar := is("const char *", w.ptr(cchar))
	is("const char *const", w.add(kindConst, 0, "", pcchar))
	is("const volatile", w.add(kindConst, 0, "", w.add(kindVolatile, 0, "", integer)))
	is("restrict", w.add(kindRestrict, 0, "", w.ptr(char)))
	is("const volatile *", w.add(kindConst, 0, "", w.add(kindVolatile, 0, "", w.ptr(char))))
	is("const ptr ptr", w.ptr(w.add(kindConst, 0, "", w.ptr(char))))
	tagged := w.add(kindTypeTag, 0, "user", char)
	is("tagged", w.ptr(tagged))
	is("const tagged ptr", w.add(kindConst, 0, "", w.add(kindTypeTag, 0, "rcu", w.ptr(foo))))

	pfoo := is("struct *", w.ptr(foo))
	array := is("array", w.add(kindArray, 0, "", 0, char, ulong, 16))
	is("array ptr", w.ptr(array))
	is("ptr array", w.add(kindArray, 0, "", 0, w.ptr(char), ulong, 4))
	is("2d", w.add(kindArray, 0, "", 0, array, ulong, 2))
	is("const array ptr", w.ptr(w.add(kindConst, 0, "", array)))

	proto := is("proto", w.proto(integer, "f", pfoo, "n", integer))
	pproto := is("fn ptr", w.ptr(proto))
	is("fn ptr const", w.add(kindConst, 0, "", pproto))
	is("fn ptr ptr", w.ptr(pproto))
	is("fn ptr array", w.add(kindArray, 0, "", 0, pproto, ulong, 3))
	is("fn ret ptr", w.ptr(w.proto(w.ptr(0))))
	is("fn ret fn", w.ptr(w.proto(pproto, "", u32)))
	is("fn takes fn", w.ptr(w.proto(0, "cb", pproto)))
	cb := is("cb_t", w.add(kindTypedef, 0, "cb_t", pproto))

	w.fn("plain", w.proto(0))
	w.fn("variadic", w.proto(integer, "fmt", pcchar, "", uint32(0)))
	w.fn("only_variadic", w.proto(integer, "", uint32(0)))
	w.fn("callbacks", w.proto(w.ptr(0), "cb", pproto, "t", cb, "buf", array, "", pfoo))
	w.fn("returns_fn", w.proto(pproto, "x", u32))
	return zoo{w.parse(t, nil), ids}
}

func TestTypeName(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		b := newZoo(t, order)
		for name, want := range map[string]string{
			"int": "int", "ulong": "long unsigned int", "float": "double",
			"struct": "struct foo", "anon": "struct {...}", "union": "union u", "anon union": "union {...}",
			"enum": "enum e", "enum64": "enum e64", "anon enum": "enum {...}",
			"fwd struct": "struct fs", "fwd union": "union fu", "u32": "u32",
			"void *": "void *", "const char": "const char", "const char *": "const char *",
			"const char *const": "const char *const", "const volatile": "const volatile int",
			"restrict": "char *restrict", "const volatile *": "char *volatile const", "const ptr ptr": "char *const *",
			"tagged": "char *", "const tagged ptr": "struct foo *const", "struct *": "struct foo *",
			"array": "char[16]", "array ptr": "char (*)[16]", "ptr array": "char *[4]", "2d": "char[2][16]",
			"const array ptr": "const char (*)[16]",
			"proto":           "int (struct foo *, int)", "fn ptr": "int (*)(struct foo *, int)",
			"fn ptr const": "int (*const)(struct foo *, int)", "fn ptr ptr": "int (**)(struct foo *, int)",
			"fn ptr array": "int (*[3])(struct foo *, int)", "fn ret ptr": "void *(*)(void)",
			"fn ret fn":   "int (*(*)(u32))(struct foo *, int)",
			"fn takes fn": "void (*)(int (*)(struct foo *, int))", "cb_t": "cb_t",
		} {
			got, err := b.TypeName(b.ids[name])
			qt.Check(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(got, want), qt.Commentf(name))
		}
		got, err := b.TypeName(0)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, "void"))
	})
}

func TestPrototype(t *testing.T) {
	b := newZoo(t, binary.LittleEndian)
	for name, want := range map[string]string{
		"plain":         "void plain(void)",
		"variadic":      "int variadic(const char *fmt, ...)",
		"only_variadic": "int only_variadic(...)",
		"callbacks":     "void *callbacks(int (*cb)(struct foo *, int), cb_t t, char buf[16], struct foo *)",
		"returns_fn":    "int (*returns_fn(u32 x))(struct foo *, int)",
	} {
		qt.Check(t, qt.Equals(mustPrototype(t, b.BTF, name), want))
	}
}

func TestParamCount(t *testing.T) {
	b := newZoo(t, binary.LittleEndian)
	for name, want := range map[string]int{"plain": 0, "variadic": 1, "only_variadic": 0, "callbacks": 4} {
		n, err := b.ParamCount(b.ByName(name)[0].Proto)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(n, want), qt.Commentf(name))
	}
	_, err := b.ParamCount(b.ByName("plain")[0].ID)
	qt.Assert(t, qt.ErrorMatches(err, ".*not FUNC_PROTO.*"))
}

// TestTypeNameGrows has prototypes that take each other twice, 30 levels deep: a
// spelling of a billion words.
func TestTypeNameGrows(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	id := w.int("int", 4)
	for range 30 {
		id = w.proto(id, "", id, "", id)
	}
	b := w.parse(t, nil)
	_, err := b.TypeName(id)
	qt.Check(t, qt.ErrorMatches(err, ".*too long to spell"))
}

func TestTypeNameDeep(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	id := w.int("int", 4)
	for range maxDepth {
		id = w.ptr(id)
	}
	b := w.parse(t, nil)
	_, err := b.TypeName(id)
	qt.Check(t, qt.IsNil(err))
	w.ptr(id)
	_, err = w.parse(t, nil).TypeName(id + 1)
	qt.Check(t, qt.ErrorIs(err, ErrCycle))
}
