package cpio

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func sample(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	qt.Assert(tb, qt.IsNil(w.Mkdir("/tmp", 0o1777)))
	qt.Assert(tb, qt.IsNil(w.Device("dev/console", 0o600, 5, 1)))
	qt.Assert(tb, qt.IsNil(w.WriteFile("/init", 0o755, []byte("hello"))))
	qt.Assert(tb, qt.IsNil(w.CopyFile("a/b/c", 0o644, 3, strings.NewReader("abcdef"))))
	qt.Assert(tb, qt.IsNil(w.Symlink("bin", "usr/bin")))
	qt.Assert(tb, qt.IsNil(w.Mkdir("a/b", 0o755)))
	qt.Assert(tb, qt.IsNil(w.Close()))
	return b.Bytes()
}

func readAll(tb testing.TB, data []byte) []Entry {
	tb.Helper()
	var list []Entry
	for e, err := range Read(bytes.NewReader(data)) {
		qt.Assert(tb, qt.IsNil(err))
		list = append(list, e)
	}
	return list
}

func TestWriteRead(t *testing.T) {
	want := []Entry{
		{Header: Header{Name: "tmp", Mode: TypeDir | 0o1777}},
		{Header: Header{Name: "dev", Mode: TypeDir | 0o755}},
		{Header: Header{Name: "dev/console", Mode: TypeChar | 0o600, Major: 5, Minor: 1}},
		{Header: Header{Name: "init", Mode: TypeRegular | 0o755, Size: 5}, Data: []byte("hello")},
		{Header: Header{Name: "a", Mode: TypeDir | 0o755}},
		{Header: Header{Name: "a/b", Mode: TypeDir | 0o755}},
		{Header: Header{Name: "a/b/c", Mode: TypeRegular | 0o644, Size: 3}, Data: []byte("abc")},
		{Header: Header{Name: "bin", Mode: TypeSymlink | 0o777, Size: 7}, Data: []byte("usr/bin")},
	}
	got := readAll(t, sample(t))
	qt.Assert(t, qt.HasLen(got, len(want)))
	for i := range want {
		if len(got[i].Data) == 0 {
			got[i].Data = nil
		}
		qt.Check(t, qt.DeepEquals(got[i], want[i]))
	}
}

func TestWriteGolden(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	qt.Assert(t, qt.IsNil(w.WriteFile("x", 0o644, []byte("hi"))))
	qt.Assert(t, qt.IsNil(w.Close()))
	zero := strings.Repeat("0", 8)
	want := "070701" + "00000001" + "000081A4" + zero + zero + "00000001" + zero + "00000002" +
		zero + zero + zero + zero + "00000002" + zero + "x\x00" + "hi\x00\x00" +
		"070701" + "00000002" + zero + zero + zero + "00000001" + zero + zero +
		zero + zero + zero + zero + "0000000B" + zero + "TRAILER!!!\x00\x00\x00\x00"
	qt.Assert(t, qt.Equals(b.String(), want))
}

func TestReadByCpio(t *testing.T) {
	tool, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("no cpio(1) to compare with")
	}
	cmd := exec.Command(tool, "-t", "--quiet")
	cmd.Stdin = bytes.NewReader(sample(t))
	out, err := cmd.Output()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(out), "tmp\ndev\ndev/console\ninit\na\na/b\na/b/c\nbin\n"))
}

func TestWriteErrors(t *testing.T) {
	w := NewWriter(&bytes.Buffer{})
	err := w.WriteFile(strings.Repeat("n", 5000), 0o644, nil)
	qt.Assert(t, qt.ErrorMatches(err, `write cpio entry "n+": name of 5000 bytes, want 1 to 4095`))
	qt.Assert(t, qt.Equals(w.Close(), err), qt.Commentf("the first error stays"))

	w = NewWriter(&bytes.Buffer{})
	err = w.CopyFile("short", 0o644, 10, strings.NewReader("abc"))
	qt.Assert(t, qt.ErrorMatches(err, `write cpio entry "short": EOF`))
}

func TestReadErrors(t *testing.T) {
	good := sample(t)
	for name, data := range map[string][]byte{
		"empty":     nil,
		"magic":     append([]byte("070702"), good[6:]...),
		"digit":     append([]byte("070701zz"), good[8:]...),
		"cut":       good[:200],
		"noTrailer": good[:112],
	} {
		t.Run(name, func(t *testing.T) {
			var last error
			for _, err := range Read(bytes.NewReader(data)) {
				last = err
			}
			qt.Assert(t, qt.IsTrue(errors.Is(last, ErrFormat)), qt.Commentf("%v", last))
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		for e := range Read(bytes.NewReader(data)) {
			total += len(e.Data)
		}
		qt.Assert(t, qt.IsTrue(total <= len(data)))
	})
}

func BenchmarkCopyFile(b *testing.B) {
	data := bytes.Repeat([]byte("x"), 1<<20)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		w := NewWriter(&discard{})
		if err := w.CopyFile("f", 0o644, 1<<20, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
