package kimage

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/kallsyms"
)

const x86Base = 0xffffffff81000000

func open(tb testing.TB, data []byte) *Image {
	tb.Helper()
	im, err := New(bytes.NewReader(data), int64(len(data)))
	qt.Assert(tb, qt.IsNil(err))
	return im
}

// checkSymbols compares the symbols of an image with those it was made of.
func checkSymbols(tb testing.TB, im *Image, want []kallsyms.Symbol) {
	tb.Helper()
	table, err := im.Symbols()
	qt.Assert(tb, qt.IsNil(err))
	qt.Assert(tb, qt.Equals(table.Len(), len(want)))
	for i, s := range want {
		qt.Assert(tb, qt.Equals(table.Symbol(i), s))
	}
}

var layouts = func() (all []layout) {
	for _, old := range []bool{false, true} {
		for _, f := range []form{basePlain, basePerCPU, placeRelative, absolute} {
			for _, seqs := range []bool{false, true} {
				for _, align := range []int{4, 8} {
					for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
						if old && (f == placeRelative || align == 4) || align == 4 && f == absolute {
							continue // never were
						}
						all = append(all, layout{old, f, seqs, align, order})
					}
				}
			}
		}
	}
	return all
}()

// TestLayouts: every order and form of the tables that there was gives the same
// symbols.
func TestLayouts(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			k := makeKernel(l, x86Base)
			im := open(t, k.elf())
			checkSymbols(t, im, k.symbols)
			text, err := im.Text()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(text, k.base))
			sites, err := im.Sites()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(sites, Sites{Addrs: k.sites, Dropped: 1}))
		})
	}
}

// TestTablesAmongOthers: what only looks like the tables does not stop the
// search.
func TestTablesAmongOthers(t *testing.T) {
	k := makeKernel(modern, x86Base)
	want, err := findTables(k.rodata, binary.LittleEndian)
	qt.Assert(t, qt.IsNil(err))
	// The tables again without their names, in front.
	decoy := bytes.Clone(k.rodata)
	clear(decoy[want.names:want.markers])
	decoy = decoy[:len(decoy)&^7]
	got, err := findTables(append(decoy, k.rodata...), binary.LittleEndian)
	qt.Assert(t, qt.IsNil(err))
	n := len(decoy)
	qt.Check(t, qt.Equals(got, tables{want.numSyms + n, want.names + n, want.markers + n, want.tokens + n, want.index + n, want.count}))
}

func TestNoTables(t *testing.T) {
	k := makeKernel(modern, x86Base)
	clear(k.rodata[64:])
	_, err := open(t, k.elf()).Symbols()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
	qt.Check(t, qt.ErrorMatches(err, ".*CONFIG_KALLSYMS.*"))
}

// TestDamagedTables: a table that contradicts itself is an error, and never a
// table with other addresses.
func TestDamagedTables(t *testing.T) {
	for _, l := range []layout{modern, {form: placeRelative, align: 4, order: binary.LittleEndian}, {old: true, form: basePerCPU, align: 8, order: binary.LittleEndian}} {
		k := makeKernel(l, x86Base)
		found, err := findTables(k.rodata, binary.LittleEndian)
		qt.Assert(t, qt.IsNil(err))
		for _, d := range []struct {
			name string
			at   int
		}{
			{"number", found.numSyms},
			{"marker", found.markers + 4},
			{"token table", found.tokens + 3},
			{"token index", found.index + 7},
		} {
			rodata := bytes.Clone(k.rodata)
			rodata[d.at] ^= 0x10
			broken := *k
			broken.rodata = rodata
			_, err := open(t, broken.elf()).Symbols()
			qt.Check(t, qt.IsNotNil(err), qt.Commentf("%v: %s", l, d.name))
		}
	}
}

// TestMovedTables: the table says itself where it is.
func TestMovedTables(t *testing.T) {
	k := makeKernel(modern, x86Base)
	k.base += 0x1000 // of the file's headers only
	_, err := open(t, k.elf()).Symbols()
	qt.Check(t, qt.IsNotNil(err))
}

// TestWorkIsBounded: nothing that looks like tables all over takes long.
func TestWorkIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	k := makeKernel(modern, x86Base)
	found, err := findTables(k.rodata, binary.LittleEndian)
	qt.Assert(t, qt.IsNil(err))
	tokens := k.rodata[found.tokens : found.index+indexSize]
	var b []byte
	for range 1 << 18 {
		b = append(b, 0, 0, 0, 0, 0, 4, 0, 0) // as markers would begin
	}
	for range 1 << 10 {
		b = append(b, tokens...)
		b = append(b, make([]byte, -len(b)&7)...)
	}
	start := time.Now()
	_, err = findTables(b, binary.LittleEndian)
	qt.Check(t, qt.ErrorIs(err, errNoTables))
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("%v for %d bytes", d, len(b))
	}
}
