package btfscan

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestDuplicateNames(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		void := w.proto(0)
		var dup []uint32
		for i := range 200 {
			w.fn(fmt.Sprintf("fn_%03d", 199-i), void)
			if i%50 == 0 {
				dup = append(dup, w.fn("again", void))
			}
		}
		b := w.parse(t, nil)
		qt.Check(t, qt.IsFalse(b.Sorted()))
		var got []uint32
		for _, f := range b.ByName("again") {
			got = append(got, f.ID)
		}
		qt.Check(t, qt.DeepEquals(got, dup))
		qt.Check(t, qt.HasLen(b.ByName("fn_000"), 1))
		qt.Check(t, qt.HasLen(b.ByName("fn_00"), 0))
		qt.Check(t, qt.HasLen(b.ByName("fn_0000"), 0))
		qt.Check(t, qt.HasLen(b.ByName(""), 0))
		for i := range b.Indexes("again") {
			qt.Check(t, qt.Equals(b.Func(i).ID, dup[0]))
			break
		}
	})
}

// TestSameNameIsLinear would take minutes if equal names were probed over.
func TestSameNameIsLinear(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	void := w.proto(0)
	const n = 300_000
	for range n {
		w.fn("same", void)
	}
	qt.Check(t, qt.HasLen(w.parse(t, nil).ByName("same"), n))
}

func TestSorted(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	void := w.proto(0)
	names := []string{"alpha", "beta", "beta2", "gamma"}
	for _, name := range names {
		w.fn(name, void)
		w.ptr(void)
	}
	b := w.parse(t, nil)
	qt.Check(t, qt.IsTrue(b.Sorted()))
	for range 2 { // by binary search, then by the index
		for i, name := range names {
			qt.Check(t, qt.DeepEquals(b.ByName(name), []Func{b.Func(i)}))
		}
		qt.Check(t, qt.HasLen(b.ByName("beta1"), 0))
		qt.Check(t, qt.HasLen(b.ByName("zeta"), 0))
		b.IndexNames()
	}

	w.fn("gamma", void)
	b = w.parse(t, nil)
	qt.Check(t, qt.IsFalse(b.Sorted()), qt.Commentf("equal names do not rise"))
	qt.Check(t, qt.HasLen(b.ByName("gamma"), 2))
}

func TestFuncByID(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	void := w.proto(0)
	id := w.fn("one", void)
	b := w.parse(t, nil)
	_, ok := b.FuncByID(id)
	qt.Check(t, qt.IsTrue(ok))
	for _, id := range []uint32{0, void, id + 1, 1 << 31} {
		_, ok := b.FuncByID(id)
		qt.Check(t, qt.IsFalse(ok), qt.Commentf("%d", id))
	}
}

// TestSplitChain has split BTF over split BTF, as vmlinux, a module and the
// module's inline sites.
func TestSplitChain(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		i := w.int("int", 4)
		base := w.parse(t, nil)

		w = over(base, order)
		p := w.proto(i, "a", i)
		mid := w.fn("mid", p)
		module := w.parse(t, base)

		w = over(module, order)
		w.add(kindLocParam, 2, "", 4, 8, 1, 2)
		w.add(kindLocProto, 3, "", 0, 1, 2, 3)
		w.add(kindLocsec, 2, "inline.text", 0, 1, 2, 3, 4, 5, 6)
		top := w.fn("top", p)
		b := w.parse(t, module)

		qt.Check(t, qt.IsNil(b.Partial()))
		qt.Check(t, qt.Equals(b.FirstID(), mid+1))
		qt.Check(t, qt.Equals(b.ByName("top")[0].ID, top))
		qt.Check(t, qt.Equals(mustPrototype(t, b, "top"), "int top(int a)"))
		f, ok := b.FuncByID(mid)
		qt.Check(t, qt.IsTrue(ok))
		qt.Check(t, qt.Equals(f.Name, "mid"))
		ok, err := b.MatchType(i, "int")
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(ok))
	})
}

func TestBaseDoesNotFit(t *testing.T) {
	w := newBuilder(binary.BigEndian)
	w.int("int", 4)
	big := w.parse(t, nil)
	_, err := Parse(newBuilder(binary.LittleEndian).bytes(), big)
	qt.Check(t, qt.ErrorMatches(err, ".*byte order differs.*"))

	w.add(99, 0, "", 0)
	partial := w.parse(t, nil)
	_, err = Parse(over(partial, binary.BigEndian).bytes(), partial)
	qt.Check(t, qt.ErrorMatches(err, "base BTF is incomplete.*unknown kind 99.*"))
}

func TestUnknownKind(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		late := w.next + 100
		w.fn("before", late) // refers to what the scan will not see
		id := w.add(42, 2, "what", 0, 1, 2, 3)
		w.fn("after", late)
		b := w.parse(t, nil)
		qt.Check(t, qt.DeepEquals(b.Partial(), &UnknownKindError{42, id, headerSize + typeSize}))
		qt.Check(t, qt.ErrorMatches(error(b.Partial()), `BTF type 2 at byte 36: unknown kind 42 \(newest known is 22, LOCSEC\).*`))
		qt.Check(t, qt.Equals(b.NumTypes(), 1))
		qt.Check(t, qt.HasLen(b.ByName("before"), 1))
		qt.Check(t, qt.HasLen(b.ByName("after"), 0))
		_, err := b.Prototype(b.Func(0))
		qt.Check(t, qt.ErrorMatches(err, `prototype of before \(BTF type 1\): BTF type 101: no such type, ids go from 1 to 1`))
	})
}

// TestLayout skips an unknown kind whose size the BTF itself says.
func TestLayout(t *testing.T) {
	bothOrders(t, func(t *testing.T, order byteOrder) {
		w := newBuilder(order)
		w.layout = make([]byte, 4*(42+1))
		w.layout[4*42], w.layout[4*42+1] = 4, 8 // one word, then two for each of vlen
		w.add(42, 2, "what", 0, 1, 2, 3, 4, 5)
		id := w.fn("after", w.proto(0))
		b := w.parse(t, nil)
		qt.Check(t, qt.IsNil(b.Partial()))
		qt.Check(t, qt.Equals(b.Warning(), ""))
		qt.Check(t, qt.Equals(b.ByName("after")[0].ID, id))

		// A kind that the layout does not have either still ends the scan.
		w.add(43, 0, "", 0)
		qt.Check(t, qt.Equals(w.parse(t, nil).Partial().Kind, 43))
	})
}

func TestWideVlen(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	i := w.int("int", 4)
	words := make([]uint32, 0, 3*70_000)
	for range 70_000 {
		words = append(words, w.str("m"), i, 0)
	}
	w.add(kindStruct, 70_000, "wide", 4, words...)
	id := w.fn("after", w.proto(0))
	qt.Check(t, qt.Equals(w.parse(t, nil).ByName("after")[0].ID, id))
}

func TestProtoErrors(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	i := w.int("int", 4)
	bad := w.add(kindFuncProto, 1, "", i, 1<<20, i)
	f := w.fn("bad", i)
	g := w.fn("worse", bad)
	b := w.parse(t, nil)
	for id, want := range map[uint32]string{
		0:   `BTF type 0: no such type, ids go from 1 to 4`,
		i:   `BTF type 1: kind INT, not FUNC_PROTO`,
		9:   `BTF type 9: no such type, ids go from 1 to 4`,
		bad: `BTF type 2 at byte 52: name offset 1048576 is outside the string section of 15 bytes`,
	} {
		_, err := b.Proto(id)
		qt.Check(t, qt.ErrorMatches(err, want))
	}
	for _, id := range []uint32{f, g} {
		fn, _ := b.FuncByID(id)
		got, err := b.AppendPrototype([]byte("kept"), fn)
		qt.Check(t, qt.IsNotNil(err))
		qt.Check(t, qt.Equals(string(got), "kept"))
	}
	_, err := b.TypeName(f)
	qt.Check(t, qt.ErrorMatches(err, `BTF type 3: kind FUNC, not a data type`))
}

// TestConcurrent builds all indexes from several goroutines, for -race.
func TestConcurrent(t *testing.T) {
	w := newBuilder(binary.LittleEndian)
	p := w.proto(w.ptr(w.add(kindStruct, 0, "s", 8)))
	w.fn("b", p)
	w.fn("a", p)
	b := w.parse(t, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, name := range slices.Repeat([]string{"a", "b"}, 50) {
				s, err := b.Prototype(b.ByName(name)[0])
				if err != nil || s != "struct s *"+name+"(void)" {
					t.Error(s, err)
				}
			}
		})
	}
	group.Wait()
}
