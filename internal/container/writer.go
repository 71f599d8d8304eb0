package container

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// A Writer collects sections and writes them in one go. Compressed sections
// are kept in memory, raw ones are those of the caller. Not safe for concurrent
// use.
type Writer struct {
	kind     string
	version  uint16
	sections []*Section
	encoder  *zstd.Encoder
}

// NewWriter returns a writer for a kind of at most 16 bytes, and the version of
// what its sections hold.
func NewWriter(kind string, version uint16) *Writer {
	return &Writer{kind: kind, version: version}
}

// newEncoder makes frames that need little memory to read: the level's own window
// of 16 MiB makes a kernel's facts 0.3 % smaller.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderConcurrency(1))
}

// Add appends a section. It keeps data when that is stored raw, which must not
// change before it is written. It fails on a name that is taken or is none.
func (w *Writer) Add(name string, data []byte, s Storage) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("section: %w", err)
	}
	for _, other := range w.sections {
		if other.name == name {
			return fmt.Errorf("section %q is there already", name)
		}
	}
	section := &Section{name: name, length: int64(len(data)), data: data}
	if s == Zstd {
		if w.encoder == nil {
			var err error
			if w.encoder, err = newEncoder(); err != nil {
				return fmt.Errorf("section %q: %w", name, err)
			}
		}
		section.flags, section.data = flagZstd, w.encoder.EncodeAll(data, nil)
	}
	section.stored = int64(len(section.data))
	section.sum = crc32.Checksum(section.data, castagnoli)
	w.sections = append(w.sections, section)
	return nil
}

// Sections returns what was added, in its order.
func (w *Writer) Sections() []*Section { return w.sections }

// head returns header and table, and sets the offsets of the sections.
func (w *Writer) head() ([]byte, error) {
	if len(w.kind) == 0 || len(w.kind) > kindSize || w.version == 0 {
		return nil, fmt.Errorf("kind %q, version %d: not in 1 to %d bytes, from 1", w.kind, w.version, kindSize)
	}
	size := headerSize
	for _, s := range w.sections {
		size += entrySize + len(s.name)
	}
	if size-headerSize > maxTable {
		return nil, fmt.Errorf("a table of %d bytes for %d sections, at most %d are allowed", size-headerSize, len(w.sections), maxTable)
	}
	b := make([]byte, headerSize, size)
	end := int64(size)
	for _, s := range w.sections {
		if s.offset = end; s.flags&flagZstd == 0 {
			s.offset = align(end)
		}
		end = s.offset + s.stored
		b = le.AppendUint64(b, uint64(s.offset))
		b = le.AppendUint64(b, uint64(s.stored))
		b = le.AppendUint64(b, uint64(s.length))
		b = le.AppendUint32(b, s.sum)
		b = le.AppendUint16(b, s.flags)
		b = le.AppendUint16(b, uint16(len(s.name)))
		b = append(b, s.name...)
	}
	copy(b, magic)
	le.PutUint16(b[8:], formatVersion)
	le.PutUint16(b[10:], w.version)
	le.PutUint32(b[12:], uint32(len(w.sections)))
	copy(b[16:], w.kind)
	le.PutUint64(b[32:], uint64(end))
	le.PutUint32(b[40:], uint32(size-headerSize))
	le.PutUint32(b[checkedSize:], headSum(b))
	return b, nil
}

// headSum is the checksum over header and table.
func headSum(head []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:checkedSize], castagnoli), castagnoli, head[headerSize:])
}

// WriteTo writes the file to a stream.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	head, err := w.head()
	if err != nil {
		return 0, err
	}
	written := int64(0)
	write := func(b []byte) {
		if err == nil {
			var n int
			n, err = out.Write(b)
			written += int64(n)
		}
	}
	write(head)
	for _, s := range w.sections {
		write(make([]byte, max(s.offset-written, 0)))
		write(s.data)
	}
	return written, err
}

// WriteFile writes the file at path, which has the old content or the new one
// at any time and never a part: a temporary file beside it takes its place once
// it is on the disk. Only its owner may read it. It fails, and leaves nothing
// behind, where something else than a file is at path.
func (w *Writer) WriteFile(path string) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("write %s: not a regular file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, cause(err))
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = w.WriteTo(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// cause drops the name of the temporary file, which nobody asked for.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// Bytes returns the file.
func (w *Writer) Bytes() ([]byte, error) {
	var b bytes.Buffer
	_, err := w.WriteTo(&b)
	return b.Bytes(), err
}
