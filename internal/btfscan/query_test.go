package btfscan

import (
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestMatchType(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		b := newZoo(t, order)
		for _, test := range []struct {
			typ, want string
			matches   bool
		}{
			{"struct *", "struct foo *", true},
			{"struct *", "struct   foo*", true},
			{"struct *", "const struct foo * const", true},
			{"struct *", "struct foo", false},
			{"struct *", "struct foo **", false},
			{"struct *", "struct bar *", false},
			{"struct *", "union foo *", false},
			{"struct *", "foo *", false},
			{"const tagged ptr", "struct foo __rcu *", true},
			{"tagged", "char __user *", true},
			{"const char *", "const char *", true},
			{"const char *", "char *", true},
			{"const char *const", "char*", true},
			{"const ptr ptr", "char **", true},
			{"restrict", "char *", true},
			{"void *", "void *", true},
			{"void *", "void", false},
			{"u32", "u32", true},
			{"u32", "__u32", true},
			{"u32", "unsigned int", true},
			{"u32", "unsigned", true},
			{"u32", "int", false},
			{"ulong", "unsigned long", true},
			{"ulong", "long unsigned int", true},
			{"ulong", "unsigned long int", true},
			{"ulong", "long", false},
			{"int", "int", true},
			{"int", "signed", true},
			{"int", "signed int", true},
			{"enum", "enum e", true},
			{"enum64", "enum e64", true},
			{"fwd union", "union fu", true},
			{"anon", "struct {...}", true},
			{"float", "double", true},
			{"array", "char[16]", true},
			{"array", "char [ 16 ]", true},
			{"array", "char[17]", false},
			{"fn ptr", "int(*)(struct foo*,int)", true},
			{"fn ptr", "int (*)(struct foo *, long)", false},
			{"fn ptr const", "int (*)(struct foo *, int)", true},
			{"cb_t", "cb_t", true},
			{"cb_t", "int (*)(struct foo *, int)", true},
			{"fn ret fn", "int (*(*)(u32))(struct foo *, int)", true},
			{"fn ret fn", "int (*(*)(unsigned int))(struct foo *, int)", true},
		} {
			got, err := b.MatchType(b.ids[test.typ], test.want)
			qt.Check(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(got, test.matches), qt.Commentf("%s like %q", test.typ, test.want))
		}
	})
}

func TestTypeQuery(t *testing.T) {
	b := newZoo(t, binary.LittleEndian)
	q, err := NewTypeQuery("struct foo *")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(q.String(), "struct foo *"))

	for range 2 { // the second time from memory
		i, err := q.FindParam(b.BTF, b.ByName("callbacks")[0].Proto)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(i, 3))
		i, err = q.FindParam(b.BTF, b.ByName("plain")[0].Proto)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(i, -1))
	}
	q, err = NewTypeQuery("void")
	qt.Assert(t, qt.IsNil(err))
	ok, err := q.MatchReturn(b.BTF, b.ByName("plain")[0].Proto)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(ok))
	ok, err = q.MatchReturn(b.BTF, b.ByName("variadic")[0].Proto)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(ok))

	_, err = q.Match(b.BTF, 1<<20)
	qt.Check(t, qt.ErrorMatches(err, "BTF type 1048576: no such type.*"))
	_, err = q.FindParam(b.BTF, b.ids["int"])
	qt.Check(t, qt.ErrorMatches(err, ".*kind INT, not FUNC_PROTO"))
	_, err = q.MatchReturn(b.BTF, b.ids["int"])
	qt.Check(t, qt.IsNotNil(err))
}

// TestTypeQuerySplit asks through a module about types of its base.
func TestTypeQuerySplit(t *testing.T) {
	base := newZoo(t, binary.LittleEndian)
	w := over(base.BTF, binary.LittleEndian)
	own := w.ptr(base.ids["struct *"])
	b := w.parse(t, base.BTF)
	q, err := NewTypeQuery("struct foo **")
	qt.Assert(t, qt.IsNil(err))
	ok, err := q.Match(b, own)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(ok))
	ok, err = q.Match(b, base.ids["struct *"])
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(ok))
}

func TestTypeQueryErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":         `type "": no type name, write it as in C.*`,
		"const":    `.*no type name.*`,
		"**":       `.*no type name.*`,
		"struct":   `type "struct": struct of what name\?`,
		"struct *": `.*struct of what name\?`,
		"int & x":  `.*unexpected "&".*`,
	} {
		_, err := NewTypeQuery(text)
		qt.Check(t, qt.ErrorMatches(err, want))
	}
}

func TestIntegerName(t *testing.T) {
	for in, want := range map[string]string{
		"char": "char", "signed char": "signed char", "unsigned char": "unsigned char",
		"short int": "short", "short unsigned int": "unsigned short",
		"long int": "long", "long long int": "long long", "long long unsigned int": "unsigned long long",
		"signed": "int", "unsigned": "unsigned int", "_Bool": "_Bool", "__int128 unsigned": "__int128 unsigned",
		"long double": "long double",
	} {
		qt.Check(t, qt.Equals(integerName(in), want))
	}
}
