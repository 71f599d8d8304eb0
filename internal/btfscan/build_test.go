package btfscan

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// builder makes BTF in either byte order.
type builder struct {
	order   byteOrder
	types   []byte
	strs    []byte
	known   map[string]uint32
	strBase uint32
	next    uint32
	layout  []byte
}

func newBuilder(order byteOrder) *builder {
	return &builder{order: order, strs: []byte{0}, known: map[string]uint32{"": 0}, next: 1}
}

// over makes a builder for split BTF.
func over(b *BTF, order byteOrder) *builder {
	return &builder{order: order, known: map[string]uint32{"": 0}, strBase: b.strEnd(), next: b.end()}
}

func (b *builder) str(s string) uint32 {
	if off, ok := b.known[s]; ok {
		return off
	}
	off := b.strBase + uint32(len(b.strs))
	b.known[s] = off
	b.strs = append(append(b.strs, s...), 0)
	return off
}

// add appends a type and returns its id.
func (b *builder) add(kind, vlen uint32, name string, ref uint32, words ...uint32) uint32 {
	for _, w := range append([]uint32{b.str(name), kind<<24 | vlen, ref}, words...) {
		b.types = b.order.AppendUint32(b.types, w)
	}
	b.next++
	return b.next - 1
}

func (b *builder) int(name string, size uint32) uint32 { return b.add(kindInt, 0, name, size, size*8) }
func (b *builder) ptr(to uint32) uint32                { return b.add(kindPtr, 0, "", to) }

// proto adds a prototype; params are pairs of name and id.
func (b *builder) proto(ret uint32, params ...any) uint32 {
	var words []uint32
	for i := 0; i < len(params); i += 2 {
		words = append(words, b.str(params[i].(string)), params[i+1].(uint32))
	}
	return b.add(kindFuncProto, uint32(len(params)/2), "", ret, words...)
}

func (b *builder) fn(name string, proto uint32) uint32 { return b.add(kindFunc, 0, name, proto) }

func (b *builder) bytes() []byte {
	hdrLen := uint32(headerSize)
	if b.layout != nil {
		hdrLen = layoutHeaderEnd
	}
	out := b.order.AppendUint16(nil, magic)
	out = append(out, version, 0)
	tl, sl := uint32(len(b.types)), uint32(len(b.strs))
	for _, w := range []uint32{hdrLen, 0, tl, tl, sl} {
		out = b.order.AppendUint32(out, w)
	}
	if b.layout != nil {
		out = b.order.AppendUint32(out, tl+sl)
		out = b.order.AppendUint32(out, uint32(len(b.layout)))
	}
	return bytes.Join([][]byte{out, b.types, b.strs, b.layout}, nil)
}

func (b *builder) parse(tb testing.TB, base *BTF) *BTF {
	tb.Helper()
	x, err := Parse(b.bytes(), base)
	qt.Assert(tb, qt.IsNil(err))
	return x
}

func readCase(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	qt.Assert(tb, qt.IsNil(err))
	return data
}

func mustParse(tb testing.TB, data []byte, base *BTF) *BTF {
	tb.Helper()
	b, err := Parse(data, base)
	qt.Assert(tb, qt.IsNil(err))
	return b
}

func mustPrototype(tb testing.TB, b *BTF, name string) string {
	tb.Helper()
	fs := b.ByName(name)
	qt.Assert(tb, qt.HasLen(fs, 1))
	s, err := b.Prototype(fs[0])
	qt.Assert(tb, qt.IsNil(err))
	return s
}

// bothOrders runs a test with little- and big-endian BTF.
func bothOrders(t *testing.T, test func(t *testing.T, order byteOrder)) {
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		t.Run(order.String(), func(t *testing.T) { test(t, order) })
	}
}
