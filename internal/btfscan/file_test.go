package btfscan

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestOpen(t *testing.T) {
	for _, name := range []string{"btf_min.btf", "elf_btf.elf"} {
		f, err := Open(filepath.Join("testdata", "cases", name), nil)
		qt.Assert(t, qt.IsNil(err))
		checkMin(t, f.BTF)
		qt.Check(t, qt.IsFalse(f.Mapped()))
		qt.Check(t, qt.IsNil(f.Close()))
		qt.Check(t, qt.IsNil(f.Close()))
	}

	_, err := Open("testdata/none", nil)
	qt.Check(t, qt.ErrorIs(err, fs.ErrNotExist))
	_, err = Open("testdata/cases/btf_zero_bytes.btf", nil)
	qt.Check(t, qt.ErrorMatches(err, "BTF of testdata/cases/btf_zero_bytes.btf: .*file is empty"))
	_, err = Open("testdata/cases", nil)
	qt.Check(t, qt.IsNotNil(err))
}

func TestOpenSplit(t *testing.T) {
	base, err := Open("testdata/cases/btf_split_base.btf", nil)
	qt.Assert(t, qt.IsNil(err))
	defer base.Close()
	f, err := Open("testdata/cases/btf_split_mod.btf", base.BTF)
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	qt.Check(t, qt.Equals(f.ByName("mod_fn")[0].ID, 6))
}

func TestFromELFErrors(t *testing.T) {
	good := readCase(t, "elf_btf.elf")
	_, err := FromELF(bytes.NewReader(good[:100]), nil)
	qt.Check(t, qt.IsNotNil(err))
	_, err = FromELF(bytes.NewReader(nil), nil)
	qt.Check(t, qt.ErrorIs(err, io.EOF))
	// The name of the section is the only ".BTF" in the file.
	_, err = FromELF(bytes.NewReader(bytes.Replace(good, []byte(".BTF"), []byte(".btf"), 1)), nil)
	qt.Check(t, qt.ErrorIs(err, ErrNoBTF))
}

func TestReadSection(t *testing.T) {
	_, err := readSection(bytes.NewReader([]byte("abc")), 1<<40)
	qt.Check(t, qt.ErrorIs(err, io.EOF))
	data, err := readSection(bytes.NewReader([]byte("abc")), 2)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(data), "ab"))
}

func TestOpenKernel(t *testing.T) {
	f, err := Open(kernelPath, nil)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no kernel BTF here")
	}
	qt.Assert(t, qt.IsNil(err))
	data, err := os.ReadFile(kernelPath)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Equal(f.data, data)))
	t.Log("mapped:", f.Mapped())
	qt.Check(t, qt.IsNil(f.Close()))
	qt.Check(t, qt.IsNil(f.Close()))
}
