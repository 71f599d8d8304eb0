package container

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
)

var text = strings.Repeat("ffffffff81000000 T _text\n", 40)

// small returns a file with a section of each sort.
func small(t testing.TB) []byte {
	t.Helper()
	w := NewWriter("test", 3)
	for _, s := range []struct {
		name, data string
		storage    Storage
	}{{"text", text, Zstd}, {"raw", "in place", Raw}, {"none", "", Zstd}, {"späť", "\x00\x01", Raw}, {"empty", "", Raw}} {
		qt.Assert(t, qt.IsNil(w.Add(s.name, []byte(s.data), s.storage)))
	}
	data, err := w.Bytes()
	qt.Assert(t, qt.IsNil(err))
	return data
}

var options = Options{Kind: "test", Version: 3}

// contents opens a file and reads all of it, by Bytes and by Reader.
func contents(data []byte) (map[string]string, error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)), options)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	for _, s := range f.Sections() {
		b, err := s.Bytes(s.Len())
		if err != nil {
			return nil, err
		}
		r, err := s.Reader()
		if err != nil {
			return nil, err
		}
		streamed, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(streamed, b) || int64(len(b)) != s.Len() {
			return nil, fmt.Errorf("section %s: %d bytes at once, %d streamed, %d wanted", s.Name(), len(b), len(streamed), s.Len())
		}
		all[s.Name()] = string(b)
	}
	return all, f.Verify()
}

var want = map[string]string{"text": text, "raw": "in place", "none": "", "späť": "\x00\x01", "empty": ""}

func TestWriteRead(t *testing.T) {
	data := small(t)
	got, err := contents(data)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, want))
	qt.Assert(t, qt.IsTrue(len(data) < len(text)))
	qt.Assert(t, qt.IsTrue(Is(data)))

	f, err := OpenBytes(data, Options{Kind: "test", Version: 9})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(f.Version, 3))
	b, err := f.Section("raw").Bytes(8)
	qt.Assert(t, qt.IsNil(err))
	at := bytes.Index(data, []byte("in place"))
	qt.Assert(t, qt.Equals(at%alignment, 0))
	qt.Assert(t, qt.IsTrue(&b[0] == &data[at])) // not a copy
	qt.Assert(t, qt.Equals(cap(b), 8))
	b, err = f.Section("text").Bytes(1 << 20)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(b), text))
	_, err = f.Section("text").Bytes(100)
	qt.Assert(t, qt.ErrorMatches(err, `section "text" at byte \d+: inflates to 1000 bytes, at most 100 are read`))

	// What is not there is empty.
	qt.Assert(t, qt.IsNil(f.Section("other")))
	b, err = f.Section("other").Bytes(1)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(b, 0))
	r, err := f.Section("other").Reader()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(func() error { _, err := io.ReadAll(r); return err }()))
}

// TestFlips: a byte that changes is an error, or it is one between sections.
func TestFlips(t *testing.T) {
	data := small(t)
	harmless := 0
	for i := range data {
		for _, bits := range []byte{1, 0x80, 0xff} {
			data[i] ^= bits
			got, err := contents(data)
			if err == nil {
				harmless++
				qt.Assert(t, qt.DeepEquals(got, want), qt.Commentf("byte %d", i))
			}
			data[i] ^= bits
		}
	}
	f, err := OpenBytes(data, options)
	qt.Assert(t, qt.IsNil(err))
	gaps := int64(len(data)) - headerSize - int64(le.Uint32(data[40:]))
	for _, s := range f.Sections() {
		gaps -= s.Stored()
	}
	qt.Assert(t, qt.Equals(int64(harmless), 3*gaps))
}

// TestLengths: a file that is cut, or has something behind its end, is none.
func TestLengths(t *testing.T) {
	data := small(t)
	for n := range data {
		_, err := contents(data[:n])
		if n == 0 {
			qt.Assert(t, qt.ErrorIs(err, ErrFormat))
			continue
		}
		qt.Assert(t, qt.ErrorIs(err, ErrDamaged), qt.Commentf("%d bytes: %v", n, err))
	}
	_, err := contents(append(data, 0))
	qt.Assert(t, qt.ErrorMatches(err, `at byte \d+: the file has \d+ bytes, \d+ were written`))
}

// edit changes the head of the small file and makes its checksum right again.
func edit(t *testing.T, change func(head []byte)) []byte {
	t.Helper()
	data := small(t)
	change(data)
	table := le.Uint32(data[40:])
	if int(table) <= len(data)-headerSize {
		le.PutUint32(data[checkedSize:], headSum(data[:headerSize+int(table)]))
	}
	return data
}

func TestHostile(t *testing.T) {
	const first = headerSize
	const second = first + entrySize + len("text")
	const third = second + entrySize + len("raw")
	for _, test := range []struct {
		name   string
		change func([]byte)
		want   string
		is     error
	}{
		{"other file", func(b []byte) { copy(b, "\x7fELF") }, "not a file that kallscope wrote", ErrFormat},
		{"later format", func(b []byte) { le.PutUint16(b[8:], 2) }, "made by a newer kallscope: format version 2, this one reads 1", ErrVersion},
		{"no format", func(b []byte) { le.PutUint16(b[8:], 0) }, "at byte 8: format version 0", ErrDamaged},
		{"later version", func(b []byte) { le.PutUint16(b[10:], 4) }, "made by a newer kallscope: test version 4, this one reads up to 3", ErrVersion},
		{"no version", func(b []byte) { le.PutUint16(b[10:], 0) }, "at byte 10: test version 0", ErrDamaged},
		{"other kind", func(b []byte) { copy(b[16:], "addresses") }, `another kind of file: "addresses", want "test"`, ErrKind},
		{"more sections", func(b []byte) { le.PutUint32(b[12:], 1<<31) }, "at byte 230: the table ends inside of an entry of 32 bytes", ErrDamaged},
		{"fewer sections", func(b []byte) { le.PutUint32(b[12:], 4) }, "at byte 193: 37 bytes behind the last of 4 entries", ErrDamaged},
		{"huge table", func(b []byte) { le.PutUint32(b[40:], 1<<31) }, "at byte 40: a table of 2147483648 bytes, at most 4194304 are read", ErrDamaged},
		{"table beyond the end", func(b []byte) { le.PutUint32(b[40:], 4000) }, `at byte \d+: the file ends inside of its table of 4000 bytes`, ErrDamaged},
		{"long name", func(b []byte) { le.PutUint16(b[first+30:], 1000) }, "at byte 48: the table ends inside of a name of 1000 bytes", ErrDamaged},
		{"no name", func(b []byte) { le.PutUint16(b[first+30:], 0) }, "at byte 48: a name of 0 bytes, 1 to 255 are allowed", ErrDamaged},
		{"odd name", func(b []byte) { b[first+entrySize] = '\n' }, `at byte 48: name "\\next" is not text`, ErrDamaged},
		{"same name", func(b []byte) { copy(b[third+entrySize:], "text") }, `section "text" at byte 155: two sections before this byte have this name`, ErrDamaged},
		{"offset in the table", func(b []byte) { le.PutUint64(b[first:], 10) }, `section "text" at byte 48: begins at byte 10, not in 230 to \d+`, ErrDamaged},
		{"offset beyond", func(b []byte) { le.PutUint64(b[first:], 1<<63) }, `section "text" at byte 48: begins at byte 9223372036854775808, .*`, ErrDamaged},
		{"stored beyond", func(b []byte) { le.PutUint64(b[first+8:], ^uint64(0)) }, `section "text" at byte 48: 18446744073709551615 bytes are stored, \d+ are left in the file`, ErrDamaged},
		{"overlap", func(b []byte) { le.PutUint64(b[second:], le.Uint64(b[first:])) }, `section "raw" at byte 84: begins at byte 230, not in \d+ to \d+`, ErrDamaged},
		{"raw not aligned", func(b []byte) {
			le.PutUint64(b[second:], le.Uint64(b[second:])+4)
			le.PutUint64(b[second+8:], 4)
			le.PutUint64(b[second+16:], 4)
		}, `section "raw" at byte 84: begins at byte \d+, no multiple of 64`, ErrDamaged},
		{"raw of two lengths", func(b []byte) { le.PutUint64(b[second+16:], 9) }, `section "raw" at byte 84: 8 bytes are stored, but its length is 9`, ErrDamaged},
		{"length of a bomb", func(b []byte) { le.PutUint64(b[first+16:], 1<<40) }, `section "text" at byte 48: inflates to 1099511627776 bytes; 268435456 are left of what is read of one file`, ErrDamaged},
		{"longer than said", func(b []byte) { le.PutUint64(b[first+16:], 999) }, `section "text" at byte 230: inflates to more than its length of 999 bytes`, ErrDamaged},
		{"shorter than said", func(b []byte) { le.PutUint64(b[first+16:], 1001) }, `section "text" at byte 230: inflates to 1 bytes less than its length of 1001`, ErrDamaged},
		{"unknown flag", func(b []byte) { le.PutUint16(b[first+28:], 3) }, `section "text": made by a newer kallscope: unknown flags 0x3`, ErrVersion},
		{"checksum", func(b []byte) { b[first+24]++ }, `section "text" at byte 230: checksum is [0-9a-f]{8}, [0-9a-f]{8} was written`, ErrDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := contents(edit(t, test.change))
			qt.Assert(t, qt.ErrorMatches(err, test.want))
			qt.Assert(t, qt.ErrorIs(err, test.is))
		})
	}
}

// TestBombs: what a frame asks for counts as little as what the table says.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	w := NewWriter("test", 3)
	qt.Assert(t, qt.IsNil(w.Add("zeros", zeros, Zstd)))
	data, err := w.Bytes()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(data) < 16<<10))

	_, err = Open(bytes.NewReader(data), int64(len(data)), Options{Kind: "test", Version: 3, MaxLength: 1 << 20})
	qt.Assert(t, qt.ErrorMatches(err, `section "zeros" at byte 48: inflates to 67108864 bytes; 1048576 are left of what is read of one file`))

	// The table says 100 bytes.
	le.PutUint64(data[headerSize+16:], 100)
	le.PutUint32(data[checkedSize:], headSum(data[:headerSize+entrySize+len("zeros")]))
	f, err := OpenBytes(data, options)
	qt.Assert(t, qt.IsNil(err))
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err = f.Section("zeros").Bytes(1 << 30)
		}
	}).AllocedBytesPerOp()
	qt.Assert(t, qt.ErrorMatches(err, `section "zeros" at byte \d+: inflates to more than its length of 100 bytes`))
	qt.Assert(t, qt.IsTrue(allocated < 4<<20), qt.Commentf("%d bytes", allocated))

	// A frame that needs a window of 64 MiB.
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	qt.Assert(t, qt.IsNil(err))
	var frame bytes.Buffer
	wide.Reset(&frame)
	_, err = wide.Write(zeros)
	qt.Assert(t, qt.IsNil(errors.Join(err, wide.Close())))
	w = NewWriter("test", 3)
	qt.Assert(t, qt.IsNil(w.Add("wide", frame.Bytes(), Raw)))
	w.sections[0].flags, w.sections[0].length = flagZstd, int64(len(zeros))
	data, err = w.Bytes()
	qt.Assert(t, qt.IsNil(err))
	_, err = contents(data)
	qt.Assert(t, qt.ErrorMatches(err, `section "wide" at byte \d+: window size exceeded`))
}

// shrinking is a file that somebody cuts while it is read.
type shrinking struct{ *bytes.Reader }

func (s *shrinking) ReadAt(p []byte, off int64) (int, error) {
	if off > headerSize {
		return 0, io.EOF
	}
	return s.Reader.ReadAt(p, off)
}

func TestReadErrors(t *testing.T) {
	data := small(t)
	f, err := Open(&shrinking{bytes.NewReader(data)}, int64(len(data)), options)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.ErrorMatches(f.Verify(), `section "text" at byte 230: the file has become shorter`))
	_, err = Open(bytes.NewReader(data[:60]), int64(len(data)), options)
	qt.Assert(t, qt.ErrorMatches(err, `at byte 60: the file has become shorter`))
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter("test", 1)
	qt.Assert(t, qt.IsNil(w.Add("a", nil, Raw)))
	qt.Assert(t, qt.ErrorMatches(w.Add("a", nil, Zstd), `section "a" is there already`))
	qt.Assert(t, qt.ErrorMatches(w.Add("", nil, Raw), `section: a name of 0 bytes.*`))
	qt.Assert(t, qt.ErrorMatches(w.Add("a\x00", nil, Raw), `section: name "a\\x00" is not text`))
	_, err := NewWriter("a kind with a long name", 1).Bytes()
	qt.Assert(t, qt.ErrorMatches(err, `kind "a kind with a long name", version 1: .*`))
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("old"), 0o644)))
	w := NewWriter("test", 3)
	qt.Assert(t, qt.IsNil(w.Add("text", []byte(text), Zstd)))
	qt.Assert(t, qt.IsNil(w.WriteFile(path)))
	got, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	data, err := w.Bytes()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, data))
	info, err := os.Stat(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(info.Mode(), 0o600))

	// What fails leaves the old file and nothing else.
	qt.Assert(t, qt.ErrorMatches(NewWriter("", 1).WriteFile(path), `write .*/file: kind "".*`))
	qt.Assert(t, qt.ErrorMatches(w.WriteFile(dir), `write .*: not a regular file`))
	qt.Assert(t, qt.ErrorMatches(w.WriteFile("/dev/null"), `write /dev/null: not a regular file`))
	qt.Assert(t, qt.ErrorMatches(w.WriteFile(filepath.Join(dir, "no", "file")), `write .*/no/file: no such file or directory`))
	qt.Assert(t, qt.ErrorMatches(w.WriteFile(filepath.Join(dir, strings.Repeat("x", 300))), `write .*: file name too long`))
	left, err := os.ReadDir(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(left, 1))
	again, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(again, data))
}

// fuzzOptions take any version and little memory.
var fuzzOptions = Options{Kind: "test", Version: 1<<16 - 1, MaxLength: 1 << 20}

// FuzzOpen: of any bytes, what opens has sections that are an error or have
// their length, and is the same when it is written anew. With fix the checksums
// are made right, to get behind them.
func FuzzOpen(f *testing.F) {
	data := small(f)
	f.Add(data, false)
	f.Add(data, true)
	f.Add(data[:100], true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, fix bool) {
		if fix {
			data = fixSums(bytes.Clone(data))
		}
		file, err := OpenBytes(data, fuzzOptions)
		if err != nil {
			return
		}
		w := NewWriter("test", file.Version)
		all := make(map[string][]byte)
		for _, s := range file.Sections() {
			b, err := s.Bytes(1 << 20)
			if err != nil {
				return
			}
			if int64(len(b)) != s.Len() {
				t.Fatalf("%s: %d bytes, %d wanted", s.Name(), len(b), s.Len())
			}
			all[s.Name()] = b
			if err := w.Add(s.Name(), b, Storage(len(all)%2)); err != nil {
				t.Fatal(err)
			}
		}
		again, err := w.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		second, err := OpenBytes(again, fuzzOptions)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range all {
			if b, err := second.Section(name).Bytes(1 << 20); err != nil || !bytes.Equal(b, want) {
				t.Fatalf("%s: %d bytes, %d wanted: %v", name, len(b), len(want), err)
			}
		}
	})
}

// fixSums makes the checksums of header, table and sections right where they
// can be found.
func fixSums(data []byte) []byte {
	if len(data) < headerSize {
		return data
	}
	copy(data, magic)
	table := int64(le.Uint32(data[40:]))
	if table > int64(len(data)-headerSize) {
		return data
	}
	le.PutUint64(data[32:], uint64(len(data)))
	for rest := data[headerSize : headerSize+table]; len(rest) >= entrySize; {
		offset, stored := le.Uint64(rest), le.Uint64(rest[8:])
		if offset <= uint64(len(data)) && stored <= uint64(len(data))-offset {
			le.PutUint32(rest[24:], crc32.Checksum(data[offset:offset+stored], castagnoli))
		}
		rest = rest[min(entrySize+int(le.Uint16(rest[30:])), len(rest)):]
	}
	le.PutUint32(data[checkedSize:], headSum(data[:headerSize+table]))
	return data
}
