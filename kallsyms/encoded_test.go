package kallsyms

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// encode makes the kernel's tables of symbols: every letter is a token of its
// own, and the unused codes are frequent strings, as in scripts/kallsyms.c.
func encode(symbols []Symbol) *Encoded {
	e := &Encoded{Count: len(symbols), Order: binary.LittleEndian}
	strings256 := tokenStrings()
	for _, s := range strings256 {
		e.TokenIndex = binary.LittleEndian.AppendUint16(e.TokenIndex, uint16(len(e.TokenTable)))
		e.TokenTable = append(append(e.TokenTable, s...), 0)
	}
	for _, s := range symbols {
		codes := encodeName(string(s.Type)+s.Name, &strings256)
		if n := len(codes); n > 0x7f {
			e.Names = append(e.Names, byte(n)|0x80, byte(n>>7))
		} else {
			e.Names = append(e.Names, byte(n))
		}
		e.Names = append(e.Names, codes...)
	}
	e.Addr = func(i int) uint64 { return symbols[i].Addr }
	return e
}

func tokenStrings() (tokens [256]string) {
	frequent := []string{"T__pfx_", "t__", "__x64_sys_", "_read", "tcp_", "in", "er", "a_token_longer_than_eight"}
	for i := range tokens {
		if i > ' ' && i < 0x7f {
			tokens[i] = string(rune(i))
		} else if len(frequent) > 0 {
			tokens[i], frequent = frequent[0], frequent[1:]
		}
	}
	return tokens
}

// encodeName takes the longest token each time.
func encodeName(s string, tokens *[256]string) (codes []byte) {
	for s != "" {
		best := int(s[0])
		for c, t := range tokens {
			if strings.HasPrefix(s, t) && len(t) > len(tokens[best]) {
				best = c
			}
		}
		codes, s = append(codes, byte(best)), strings.TrimPrefix(s, tokens[best])
	}
	return codes
}

func symbolsOf(t *Table) (symbols []Symbol) {
	for _, s := range t.All() {
		symbols = append(symbols, s)
	}
	return symbols
}

func TestEncoded(t *testing.T) {
	symbols := []Symbol{
		{0, 'A', "fixed_percpu_data", ""},
		{0xffffffff81000000, 'T', "_text", ""},
		{0xffffffff81000000, 't', "a_token_longer_than_eight_read", ""},
		{0xffffffff81000010, 'T', "__pfx___x64_sys_getppid", ""},
		{0xffffffff81000020, 't', strings.Repeat("x", 200), ""}, // two bytes of length
		{0xffffffff81000030, 'w', strings.Repeat("y", maxEncodedName-1), ""},
	}
	for i := range 2 * chunkLen {
		symbols = append(symbols, Symbol{0xffffffff82000000 + uint64(i), 't', fmt.Sprintf("tcp_%d", i), ""})
	}
	mapping := Symbol{0xffffffff81000040, 't', "$x.17", ""}
	table, err := encode(append(symbols, mapping)).Table()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(symbolsOf(table), symbols))
	qt.Assert(t, qt.Equals(table.Mapping(), 1))
	qt.Assert(t, qt.Equals(table.Lines(), len(symbols)+1))
	qt.Assert(t, qt.Equals(table.State(), Visible))
	qt.Assert(t, qt.HasLen(table.Modules(), 0))
}

func TestEncodedErrors(t *testing.T) {
	good := func() *Encoded { return encode([]Symbol{{1, 't', "tcp_read", ""}, {2, 't', "b", ""}}) }
	tests := []struct {
		name  string
		spoil func(*Encoded)
		want  string
	}{
		{"more symbols than names", func(e *Encoded) { e.Count = 1 << 30 }, ".*: symbol 2 of 1073741824: the names end here"},
		{"no symbols", func(e *Encoded) { e.Count = 0 }, ": it has no symbols"},
		{"names cut", func(e *Encoded) { e.Names = e.Names[:len(e.Names)-1] }, ".*: symbol 1 of 2: the names end here"},
		{"length cut", func(e *Encoded) { e.Names = []byte{0x80} }, ".*: symbol 0 of 2: the names end here"},
		{"no tokens", func(e *Encoded) { e.Names[0] = 0 }, ".*: symbol 0 of 2: the names end here"},
		{"type only", func(e *Encoded) { e.Names = []byte{1, 't', 1, 't'} }, `.*: symbol 0 of 2: no type and name: "t"`},
		{"bad type", func(e *Encoded) { e.Names = []byte{2, '+', 'a'} }, `.*: symbol 0 of 2: no type and name: "\+a"`},
		{"name too long", func(e *Encoded) {
			e.Names = append([]byte{0xff, 4}, bytes.Repeat([]byte{'t'}, 4<<7|0x7f)...)
		}, ".*: symbol 0 of 2: the name is longer than 512 bytes"},
		{"short index", func(e *Encoded) { e.TokenIndex = e.TokenIndex[:510] }, ".*: the token index has 510 bytes, not 512"},
		{"index outside", func(e *Encoded) { e.TokenIndex[0] = 0xff; e.TokenIndex[1] = 0xff }, ".*: token 0 is outside of the token table"},
		{"token without end", func(e *Encoded) { e.TokenTable = e.TokenTable[:3] }, ".*: token 0 does not end"},
		{"token no text", func(e *Encoded) { e.TokenTable[0] = ' ' }, ".*: token 0 is not text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := good()
			tt.spoil(e)
			table, err := e.Table()
			qt.Check(t, qt.IsNil(table))
			qt.Check(t, qt.ErrorMatches(err, "not a symbol table of the kernel"+tt.want))
		})
	}
}

// FuzzEncoded checks that what the kernel would print of its tables is read
// back as the same table, and that no tables make the decoder fail otherwise
// than by an error.
func FuzzEncoded(f *testing.F) {
	f.Add([]byte("0000000000001000 t a\n0000000000001010 T tcp_read\n"), uint16(3), byte(0xff))
	f.Add([]byte("ffffffff81000000 T __pfx___x64_sys_getppid\n0000000000000000 A $x\n"), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, text []byte, at uint16, flip byte) {
		want, err := Parse(text, Options{})
		if err != nil || want.Len() == 0 || len(want.Modules()) > 0 || cannotEncode(want) {
			return
		}
		e := encode(symbolsOf(want))
		got, err := e.Table()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(symbolsOf(got), symbolsOf(want)))
		qt.Assert(t, qt.Equals(got.State(), want.State()))

		part := [][]byte{e.Names, e.TokenTable, e.TokenIndex}[at%3]
		part[int(at)%len(part)] ^= flip
		if got, err = e.Table(); err == nil && got.Len() > e.Count {
			t.Fatalf("%d of %d symbols", got.Len(), e.Count)
		}
	})
}

// cannotEncode reports whether a name is none that the kernel's tables or
// these tokens can hold.
func cannotEncode(t *Table) bool {
	for _, s := range t.All() {
		if len(s.Name) >= maxEncodedName || s.Type == '?' || strings.ContainsFunc(s.Name, func(r rune) bool { return r >= 0x7f }) {
			return true
		}
	}
	return false
}

func BenchmarkEncoded(b *testing.B) {
	table, err := Parse(kernelList(b), Options{})
	qt.Assert(b, qt.IsNil(err))
	var symbols []Symbol
	for i := range table.InModule("") {
		symbols = append(symbols, table.Symbol(i))
	}
	e := encode(symbols)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Table(); err != nil {
			b.Fatal(err)
		}
	}
	perLine(b, len(symbols), "symbol")
}
