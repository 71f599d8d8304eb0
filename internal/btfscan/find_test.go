package btfscan

import (
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestHasEnumerator(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		w.add(kindEnum, 2, "e", 4, w.str("ONE"), 1, w.str("MULTI_ONE"), 2)
		w.int("NOT_ENUM", 4)
		w.str("UNUSED")
		base := w.parse(t, nil)
		w = over(base, order)
		w.add(kindEnum64, 2, "e64", 8, w.str("BIG"), 0, 1, w.str("BIGGER"), 1, 1)
		b := w.parse(t, base)
		for name, want := range map[string]bool{
			"ONE": true, "MULTI_ONE": true, "BIG": true, "BIGGER": true,
			"NE": false, "": false, "NOT_ENUM": false, "UNUSED": false, "e": false, "MULTI": false, "ONE\x00": false,
		} {
			qt.Check(t, qt.Equals(b.HasEnumerator(name), want), qt.Commentf("%q", name))
		}
		qt.Check(t, qt.IsFalse(base.HasEnumerator("BIG")))
	})
}

func TestStructMember(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		i := w.int("int", 4)
		inner := w.add(kindUnion, 2, "", 8, w.str("low"), i, 0, w.str("high"), i, 32)
		w.add(kindStruct, 3, "s", 16,
			w.str("first"), i, 0,
			0, w.add(kindConst, 0, "", inner), 64,
			w.str("named"), inner, 96)
		// With the kind flag a bitfield of 3 bits at bit 5.
		w.add(kindStruct|1<<7, 1, "bits", 4, w.str("flag"), i, 3<<24|5)
		base := w.parse(t, nil)
		w = over(base, order)
		w.add(kindStruct, 1, "s", 4, w.str("own"), i, 8)
		b := w.parse(t, base)

		for _, test := range []struct {
			structName, member string
			off                uint32
			ok                 bool
		}{
			{"s", "first", 0, true},
			{"s", "low", 64, true},
			{"s", "high", 96, true},
			{"s", "named", 96, true},
			{"s", "own", 8, true},
			{"bits", "flag", 5, true},
			{"s", "flag", 0, false},
			{"s", "", 0, false},
			{"", "first", 0, false},
			{"nope", "first", 0, false},
		} {
			off, _, ok := b.StructMember(test.structName, test.member)
			qt.Check(t, qt.Equals(ok, test.ok), qt.Commentf("%+v", test))
			qt.Check(t, qt.Equals(off, test.off), qt.Commentf("%+v", test))
		}
		_, typ, _ := b.StructMember("s", "first")
		qt.Check(t, qt.Equals(typ, i))
	})
}

// TestStructMemberCycle has anonymous members that contain each other, twice.
func TestStructMemberCycle(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	w.add(kindStruct, 2, "s", 8, 0, 1, 0, 0, 1, 0)
	_, _, ok := w.parse(t, nil).StructMember("s", "s")
	qt.Check(t, qt.IsFalse(ok))
}

func TestShape(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		b := newZoo(t, order)
		s, err := b.Shape(b.ByName("callbacks")[0].Proto)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(s, Shape{
			Ret:    Value{ClassPointer, 8},
			Params: []Value{{ClassPointer, 8}, {ClassPointer, 8}, {ClassOther, 0}, {ClassPointer, 8}},
		}))
		for name, want := range map[string]Value{
			"int": {ClassScalar, 4}, "u32": {ClassScalar, 4}, "enum64": {ClassScalar, 8}, "struct": {ClassStruct, 24},
			"union": {ClassUnion, 8}, "float": {ClassFloat, 8}, "const char *const": {ClassPointer, 8},
			"fwd struct": {ClassOther, 0}, "proto": {ClassOther, 0},
		} {
			got, err := b.value(b.ids[name])
			qt.Check(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(got, want), qt.Commentf(name))
			qt.Check(t, qt.Equals(got.Aggregate(), got.Class == ClassStruct || got.Class == ClassUnion))
		}
		qt.Check(t, qt.Equals(ClassStruct.String(), "struct"))
		qt.Check(t, qt.Equals(Class(99).String(), "unknown"))

		_, err = b.Shape(b.ids["int"])
		qt.Check(t, qt.IsNotNil(err))
	})
}

func TestSizeof(t *testing.T) {
	b := newZoo(t, binary.LittleEndian)
	for name, want := range map[string]uint64{"array": 16, "2d": 32, "ptr array": 32, "struct": 24, "cb_t": 8} {
		got, err := b.Sizeof(b.ids[name])
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, want), qt.Commentf(name))
	}
	for _, id := range []uint32{0, b.ids["proto"], b.ids["fwd struct"], 1 << 30} {
		_, err := b.Sizeof(id)
		qt.Check(t, qt.IsNotNil(err))
	}

	w := newBuilder(binary.LittleEndian)
	id := w.int("int", 4)
	for range 3 {
		id = w.add(kindArray, 0, "", 0, id, id, 1<<31)
	}
	_, err := w.parse(t, nil).Sizeof(id)
	qt.Check(t, qt.ErrorMatches(err, ".*overflows"))
}
