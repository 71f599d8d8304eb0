package kimage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

func readCase(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/cases", name))
	qt.Assert(tb, qt.IsNil(err))
	return data
}

// checkDemo checks the BTF that elf_btf.elf has: int, a prototype, demo_fn.
func checkDemo(tb testing.TB, im *Image) {
	tb.Helper()
	b, err := im.BTF()
	qt.Assert(tb, qt.IsNil(err))
	qt.Check(tb, qt.Equals(b.From, "section .BTF"))
	qt.Check(tb, qt.IsNil(b.Base))
	parsed, err := btfscan.Parse(b.Data, nil)
	qt.Assert(tb, qt.IsNil(err))
	qt.Check(tb, qt.Equals(parsed.NumTypes(), 3))
	fns := parsed.ByName("demo_fn")
	qt.Assert(tb, qt.HasLen(fns, 1))
	qt.Check(tb, qt.Equals(fns[0].ID, 3))
}

func TestCaseELF(t *testing.T) {
	im := open(t, readCase(t, "elf_btf.elf"))
	qt.Check(t, qt.Equals(im.Format(), "vmlinux"))
	qt.Check(t, qt.Equals(im.Arch(), "amd64"))
	checkDemo(t, im)

	m := newModule("elf_btf_base.elf", readCase(t, "elf_btf_base.elf"))
	b, err := m.BTF()
	qt.Assert(t, qt.IsNil(err))
	base, err := btfscan.Parse(b.Base, nil)
	qt.Assert(t, qt.IsNil(err))
	parsed, err := btfscan.Parse(b.Data, base)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(parsed.ByName("oot_fn")[0].ID, 6))
}

func TestCaseVmlinuz(t *testing.T) {
	want := readCase(t, "elf_btf.elf")
	for _, c := range []struct{ name, format string }{
		{"vmlinuz_gzip.img", "bzImage (gzip)"},
		{"vmlinuz_xz.img", "bzImage (xz)"},
		{"vmlinuz_lzma.img", "bzImage (lzma)"},
		{"vmlinuz_bzip2.img", "bzImage (bzip2)"},
		{"vmlinuz_zstd.img", "bzImage (zstd)"},
	} {
		im := open(t, readCase(t, c.name))
		qt.Check(t, qt.Equals(im.Format(), c.format))
		qt.Check(t, qt.IsTrue(bytes.Equal(im.file.space.blob.mem.b, want)), qt.Commentf(c.name))
		checkDemo(t, im)
	}
}

func TestCaseCut(t *testing.T) {
	data := readCase(t, "vmlinuz_cut.img")
	im, err := New(bytes.NewReader(data), int64(len(data)))
	qt.Check(t, qt.IsNil(im))
	qt.Check(t, qt.ErrorMatches(err, `image: bzImage: payload: bytes .* past the end of the file, .*; is the file cut short\?`))
}

func TestCaseImage(t *testing.T) {
	im := open(t, readCase(t, "image_arm64_raw.img"))
	qt.Check(t, qt.Equals(im.Format(), "arm64 Image"))
	b, err := im.BTF()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(b.From, "searched for by its header"))
	parsed, err := btfscan.Parse(b.Data, nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(parsed.ByName("demo_fn"), 1))
	_, err = im.Symbols()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
}

// TestCasesAllHeld fails when a case is added that no test reads.
func TestCasesAllHeld(t *testing.T) {
	names, err := filepath.Glob("testdata/cases/*.expect")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(names, 9))
	tests, err := os.ReadFile("cases_test.go")
	qt.Assert(t, qt.IsNil(err))
	for _, name := range names {
		input := filepath.Base(strings.TrimSuffix(name, ".expect"))
		qt.Check(t, qt.IsTrue(bytes.Contains(tests, []byte(`"`+input+`"`))), qt.Commentf(input))
	}
}
