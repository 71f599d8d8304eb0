package kimage

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/testutil"
)

// fuzzLimit keeps inputs that unpack to much from filling the time.
const fuzzLimit = 1 << 20

// useAll asks for everything; whatever the file, there is an answer or an error.
func useAll(tb testing.TB, im *Image) {
	table, err := im.Symbols()
	if err == nil {
		for i := 1; i < table.Len(); i++ {
			if table.Addr(i) < table.Addr(i-1) {
				tb.Fatalf("symbol %d: %v is before %v", i, table.Symbol(i), table.Symbol(i-1))
			}
		}
	}
	im.Text()
	im.Release()
	im.BuildID()
	im.BTF()
	im.Sites()
	im.KprobeBlacklist()
	im.ELFSymbols()
	im.Config()
	for m, err := range im.Modules() {
		if err == nil {
			useModule(m)
		}
	}
}

func useModule(m *Module) {
	m.Release()
	m.BuildID()
	m.BTF()
	m.Symbols()
	m.Sites()
}

func FuzzImage(f *testing.F) {
	names, err := filepath.Glob("testdata/cases/*.*")
	qt.Assert(f, qt.IsNil(err))
	for _, name := range names {
		if filepath.Ext(name) != ".expect" {
			f.Add(readCase(f, filepath.Base(name)))
		}
	}
	k := makeKernel(modern, x86Base)
	f.Add(k.elf())
	f.Add(bzImage(packGzip(k.elf())))
	f.Add(packGzip(makeKernel(modern, armBase).bare(false)))
	f.Add(testutil.Deb(f, packGzip, append(kernelFiles(k), moduleFiles()...)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzLimit {
			return
		}
		im, err := New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		defer im.Close()
		useAll(t, im)
	})
}

// FuzzTables gives the bytes to the search as a part of a kernel, and as one
// without headers.
func FuzzTables(f *testing.F) {
	for _, l := range layouts {
		if l.order == binary.LittleEndian {
			f.Add(makeKernel(l, x86Base).rodata)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < headerSize || len(data) > fuzzLimit {
			return // a bare image has a header
		}
		for _, bare := range []bool{false, true} {
			s := newBareSpace(data)
			if !bare {
				s = newSpace(memBlob(data), binary.LittleEndian, []part{{name: ".rodata", addr: x86Base + rodataAt, size: uint64(len(data))}})
			}
			useAll(t, imageOf(s))
		}
	})
}

// imageOf is an image that has nothing but bytes at addresses.
func imageOf(s *space) *Image {
	im := &Image{file: &kernelFile{arch: "arm64", space: s}}
	im.lazy()
	return im
}

func FuzzModule(f *testing.F) {
	f.Add(makeModule())
	f.Add(packZstd(makeModule()))
	f.Add(packXZ(makeModule()))
	f.Add(readCase(f, "elf_btf_base.elf"))
	kernel := imageOf(newBareSpace(make([]byte, 64)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		m := newModule("m.ko", data)
		m.image = kernel
		useModule(m)
	})
}

// TestFlippedBits: no single bit makes a small kernel take the program down.
func TestFlippedBits(t *testing.T) {
	k := makeKernel(modern, x86Base)
	k.text = k.text[:64]
	for _, data := range [][]byte{k.elf(), makeModule(), bzImage(packGzip(k.elf()))} {
		step := len(data)/300 + 1
		for at := 0; at < len(data); at += step {
			flipped := bytes.Clone(data)
			flipped[at] ^= 1 << (at % 8)
			im, err := New(bytes.NewReader(flipped), int64(len(flipped)))
			if err != nil {
				continue
			}
			useAll(t, im)
			useModule(newModule("m.ko", flipped))
		}
	}
}

// TestCutAnywhere: a kernel that was cut short gives errors, and what it gives
// is right.
func TestCutAnywhere(t *testing.T) {
	k := makeKernel(modern, x86Base)
	for _, data := range [][]byte{k.elf(), bzImage(packGzip(k.elf())), packGzip(makeKernel(modern, armBase).bare(false))} {
		for n := 0; n < len(data); n += len(data)/100 + 1 {
			im, err := New(bytes.NewReader(data[:n]), int64(n))
			if err != nil {
				continue
			}
			useAll(t, im)
			if table, err := im.Symbols(); err == nil {
				qt.Check(t, qt.Equals(table.Len(), len(k.symbols)))
			}
		}
	}
}
