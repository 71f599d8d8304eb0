package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"
)

var samples = []struct {
	file   string
	format Format
}{
	{"plain.gz", Gzip},
	{"plain.xz", XZ},
	{"plain.x86.xz", XZ},
	{"plain.lzma", LZMA},
	{"plain.bz2", Bzip2},
	{"plain.lz4", LZ4},
	{"plain.zst", Zstd},
}

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	qt.Assert(tb, qt.IsNil(err))
	return data
}

func TestAll(t *testing.T) {
	want := read(t, "plain")
	size := int64(len(want))
	for _, s := range samples {
		t.Run(s.file, func(t *testing.T) {
			data := read(t, s.file)
			qt.Assert(t, qt.Equals(Detect(data), s.format))
			for _, o := range []Options{{s.format, 0, size}, {s.format, size, size}} {
				got, err := All(data, o)
				qt.Assert(t, qt.IsNil(err))
				qt.Assert(t, qt.IsTrue(bytes.Equal(got, want)))
			}
			_, err := All(data, Options{s.format, 0, size - 1})
			qt.Check(t, qt.ErrorIs(err, ErrTooLarge))
			_, err = All(data, Options{s.format, size, size - 1})
			qt.Check(t, qt.ErrorIs(err, ErrTooLarge))
			for _, wrong := range []int64{size - 1, size + 1, 1} {
				_, err := All(data, Options{s.format, wrong, 2 * size})
				qt.Check(t, qt.IsNotNil(err), qt.Commentf("size %d", wrong))
			}
		})
	}
}

// TestCut: whatever is missing at the end, there is an error or, where a format
// has no end mark, no more than the beginning.
func TestCut(t *testing.T) {
	want := read(t, "plain")
	for _, s := range samples {
		data := read(t, s.file)
		for n := 0; n < len(data)-1; n += 61 {
			got, err := All(data[:n], Options{s.format, int64(len(want)), 1 << 20})
			if err == nil {
				t.Errorf("%s: %d of %d bytes gave %d", s.file, n, len(data), len(got))
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for _, data := range []string{"", "\x1f", "BZ", "\x7fELF", "\x5d\x00"} {
		qt.Check(t, qt.Equals(Detect([]byte(data)), ""))
	}
	qt.Check(t, qt.Equals(Detect([]byte("\x89LZO\x00\r\n")), LZO))
}

func TestLZO(t *testing.T) {
	_, err := All([]byte("\x89LZO\x00\r\n\x1a\n"), Options{LZO, 0, 1 << 20})
	qt.Check(t, qt.ErrorIs(err, ErrLZO))
	qt.Check(t, qt.ErrorMatches(err, "lzo: .*lzop first"))
}

func TestUnknown(t *testing.T) {
	_, err := All([]byte("text"), Options{"", 0, 1 << 20})
	qt.Check(t, qt.ErrorMatches(err, `.*no stream of compression ""`))
}

// TestLZ4Frames: frames follow each other, and the end may be a block of none.
func TestLZ4Frames(t *testing.T) {
	data, want := read(t, "plain.lz4"), read(t, "plain")
	got, err := All(append(bytes.Clone(data), data...), Options{LZ4, 0, 1 << 20})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Equal(got, append(bytes.Clone(want), want...))))

	long := binary.LittleEndian.AppendUint32(bytes.Clone(data), 1<<31)
	_, err = All(long, Options{LZ4, 0, 1 << 20})
	qt.Check(t, qt.ErrorIs(err, io.ErrUnexpectedEOF))
}

// TestClaims: no memory is taken because a header wants it.
func TestClaims(t *testing.T) {
	for _, s := range samples {
		data := read(t, s.file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := All(data, Options{s.format, 1 << 30, 1 << 30})
		runtime.ReadMemStats(&after)
		qt.Check(t, qt.IsNotNil(err))
		// 128 MiB is a dictionary, which plain.xz claims, and the kernel's too.
		if n := after.TotalAlloc - before.TotalAlloc; n > 150<<20 {
			t.Errorf("%s: %d bytes taken", s.file, n)
		}
	}
}

func FuzzAll(f *testing.F) {
	for _, s := range samples {
		f.Add(read(f, s.file), uint16(len(read(f, "plain"))))
	}
	f.Add([]byte("\x89LZO\x00"), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		const limit = 1 << 20
		o := Options{Format: Detect(data), Max: limit}
		unsized, err := All(data, o)
		if err == nil && len(unsized) > limit {
			t.Fatalf("%d bytes", len(unsized))
		}
		// With a size, zstd takes another way.
		o.Size = int64(size)
		sized, errSized := All(data, o)
		if errSized == nil && size != 0 && len(sized) != int(size) {
			t.Fatalf("%d bytes, not %d", len(sized), size)
		}
		if err == nil && len(unsized) == int(size) && errSized == nil && !bytes.Equal(sized, unsized) {
			t.Fatal("two ways, two results")
		}
		if err == nil && size != 0 && len(unsized) == int(size) && errSized != nil && !errors.Is(errSized, ErrTooLarge) {
			t.Fatalf("with its size: %v", errSized)
		}
	})
}
