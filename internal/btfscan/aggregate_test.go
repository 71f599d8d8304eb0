package btfscan

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

func TestAggregates(t *testing.T) {
	u32 := &btf.Int{Name: "unsigned int", Size: 4}
	inner := &btf.Union{Size: 4, Members: []btf.Member{{Name: "deep", Type: u32}}}
	outer := &btf.Struct{Name: "outer", Size: 12, Members: []btf.Member{
		{Name: "first", Type: u32}, {Type: inner, Offset: 32}, {Name: "flag", Type: u32, Offset: 65, BitfieldSize: 1},
	}}
	builder, err := btf.NewBuilder([]btf.Type{outer}, nil)
	qt.Assert(t, qt.IsNil(err))
	blob, err := builder.Marshal(nil, nil)
	qt.Assert(t, qt.IsNil(err))
	b, err := Parse(blob, nil)
	qt.Assert(t, qt.IsNil(err))

	s := b.Aggregates("outer", "none")
	qt.Assert(t, qt.Equals(s[0].Size(), 12))
	off, ok := s[0].Offset("deep", 4)
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.Equals(off, 4))
	for _, bad := range []struct {
		name string
		size uint32
	}{{"flag", 4}, {"deep", 9}, {"nothing", 4}} {
		_, ok := s[0].Offset(bad.name, bad.size)
		qt.Assert(t, qt.IsFalse(ok), qt.Commentf("%s", bad.name))
	}
	qt.Assert(t, qt.Equals(s[1].Size(), 0))
	_, ok = s[1].Offset("first", 4)
	qt.Assert(t, qt.IsFalse(ok))
	bits, _, ok := b.StructMember("outer", "flag")
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.Equals(bits, 65))
}
