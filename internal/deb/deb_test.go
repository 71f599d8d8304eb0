package deb_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/kallscope/kallscope/internal/deb"
	"github.com/kallscope/kallscope/internal/testutil"
)

var files = []testutil.DebFile{
	{Name: "boot/vmlinuz-1", Content: bytes.Repeat([]byte("kernel"), 1000)},
	{Name: "lib/modules/1/a.ko", Content: []byte("module")},
	{Name: "empty"},
}

func packGzip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func packXZ(b []byte) []byte {
	var out bytes.Buffer
	w, err := xz.NewWriter(&out)
	if err != nil {
		panic(err)
	}
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func packZstd(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

func list(data []byte) ([]testutil.DebFile, error) {
	d, err := deb.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var got []testutil.DebFile
	for {
		f, err := d.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		content, err := f.Content(1 << 20)
		if err != nil {
			return got, err
		}
		got = append(got, testutil.DebFile{Name: f.Name, Content: content})
	}
}

func TestRead(t *testing.T) {
	for name, pack := range map[string]func([]byte) []byte{"tar": nil, "gz": packGzip, "xz": packXZ, "zst": packZstd} {
		got, err := list(testutil.Deb(t, pack, files...))
		qt.Assert(t, qt.IsNil(err), qt.Commentf(name))
		qt.Assert(t, qt.HasLen(got, len(files)), qt.Commentf(name))
		for i, f := range files {
			qt.Check(t, qt.Equals(got[i].Name, f.Name))
			qt.Check(t, qt.IsTrue(bytes.Equal(got[i].Content, f.Content)), qt.Commentf("%s: %s", name, f.Name))
		}
	}
}

// TestCut: a package that was cut short never looks whole.
func TestCut(t *testing.T) {
	for name, pack := range map[string]func([]byte) []byte{"gz": packGzip, "xz": packXZ, "zst": packZstd} {
		data := testutil.Deb(t, pack, files...)
		for n := 0; n < len(data)-40; n++ {
			if _, err := list(data[:n]); err == nil {
				t.Fatalf("%s: %d of %d bytes are a package", name, n, len(data))
			}
		}
	}
}

func TestErrors(t *testing.T) {
	whole := string(testutil.Deb(t, nil, files...))
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "no Debian package: it is no ar archive"},
		{"text", "hello, world", "no Debian package: it is no ar archive"},
		{"nothing in it", deb.Magic, "no Debian package: it has no data.tar"},
		{"no data.tar", strings.Replace(whole, "data.tar", "date.tar", 1), "no Debian package: it has no data.tar"},
		{"no number", strings.Replace(whole, "4         `", "x         `", 1), `read Debian package: "debian-binary.*" is no header of an ar archive`},
		{"negative", strings.Replace(whole, "4         `", "-4        `", 1), `read Debian package: .* is no header of an ar archive`},
		{"lzo", string(testutil.Deb(t, func([]byte) []byte { return []byte("\x89LZO\x00") })), "read Debian package: data.tar: lzo is not supported.*"},
	} {
		_, err := list([]byte(c.data))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf(c.name))
	}
}

func TestLimit(t *testing.T) {
	d, err := deb.NewReader(bytes.NewReader(testutil.Deb(t, nil, files...)))
	qt.Assert(t, qt.IsNil(err))
	f, err := d.Next()
	qt.Assert(t, qt.IsNil(err))
	_, err = f.Content(10)
	qt.Check(t, qt.ErrorMatches(err, "boot/vmlinuz-1 has 6000 bytes, at most 10 are read"))
}

func FuzzReader(f *testing.F) {
	f.Add(testutil.Deb(f, nil, files...))
	f.Add(testutil.Deb(f, packGzip, files...))
	f.Add(testutil.Deb(f, packXZ, files...))
	f.Add(testutil.Deb(f, packZstd, files...))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := list(data)
		for _, file := range got {
			if strings.HasPrefix(file.Name, "/") || strings.HasPrefix(file.Name, "../") {
				t.Fatalf("%q, %v", file.Name, err)
			}
		}
	})
}
