package container

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// Options say what a file must be.
type Options struct {
	// Kind is what the file must hold.
	Kind string
	// Version is the latest version of the kind that the caller can read.
	Version uint16
	// MaxLength bounds what all sections may inflate to. Zero means 256 MiB.
	MaxLength int64
}

// A File is an open file: its table has been read and checked. It is safe for
// concurrent use. It never closes what it reads from.
type File struct {
	// Version is that of the kind.
	Version uint16

	r        io.ReaderAt
	sections []*Section
	byName   map[string]*Section
	idle     sync.Pool // of *zstd.Decoder, each 140 kB that take a while to set up
}

// A Section is a part of a file with a name.
type Section struct {
	name                   string
	offset, stored, length int64
	sum                    uint32
	flags                  uint16

	data []byte // of a writer, or of a file in memory
	file *File
	// intact is set once the checksum has been found right.
	intact atomic.Bool
}

// Open reads header and table of a file of size bytes; sections are read when
// they are asked for. Errors are [ErrFormat], [ErrVersion], [ErrKind] and
// [*DamageError], or from r.
func Open(r io.ReaderAt, size int64, o Options) (*File, error) {
	head, h, err := readHead(r, size)
	if err != nil {
		return nil, err
	}
	if err := h.check(size, o); err != nil {
		return nil, err
	}
	f := &File{Version: h.version, r: r, byName: make(map[string]*Section)}
	p := tableParser{file: f, table: head[headerSize:], pos: headerSize, end: int64(len(head)), size: size, left: cmp.Or(o.MaxLength, defaultMaxLength)}
	if err := p.parse(h.count); err != nil {
		return nil, err
	}
	return f, nil
}

// OpenBytes is Open for a file in memory, which it keeps: raw sections are
// parts of data.
func OpenBytes(data []byte, o Options) (*File, error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		return nil, err
	}
	for _, s := range f.sections {
		s.data = data[s.offset : s.offset+s.stored : s.offset+s.stored]
	}
	return f, nil
}

// Is reports whether a file that begins with these bytes is one of this format.
func Is(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }

// Section returns the section of a name, or nil. A nil section is empty and
// reads as such.
func (f *File) Section(name string) *Section { return f.byName[name] }

// Sections returns all sections in the order of the file.
func (f *File) Sections() []*Section { return f.sections }

// Verify reads the whole file and compares all checksums, at the speed of
// memory; nothing is inflated. Afterwards no section is checked again.
func (f *File) Verify() error {
	for _, s := range f.sections {
		if err := s.verify(); err != nil {
			return err
		}
	}
	return nil
}

// Name returns the name.
func (s *Section) Name() string { return s.name }

// Len returns the length in bytes as it was added.
func (s *Section) Len() int64 { return s.length }

// Stored returns how many bytes it takes in the file.
func (s *Section) Stored() int64 { return s.stored }

func (s *Section) damage(format string, args ...any) error {
	return &DamageError{Section: s.name, Offset: s.offset, Reason: fmt.Sprintf(format, args...)}
}

// verify compares the checksum, once.
func (s *Section) verify() error {
	if s.intact.Load() {
		return nil
	}
	hash := crc32.New(castagnoli)
	if s.data != nil {
		hash.Write(s.data)
	} else if n, err := io.CopyBuffer(hash, io.NewSectionReader(s.file.r, s.offset, s.stored), make([]byte, 64<<10)); err != nil || n < s.stored {
		return s.readError(err)
	}
	if hash.Sum32() != s.sum {
		return s.damage("checksum is %08x, %08x was written", hash.Sum32(), s.sum)
	}
	s.intact.Store(true)
	return nil
}

func (s *Section) readError(err error) error {
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.damage("the file has become shorter")
	}
	return fmt.Errorf("section %q at byte %d: %w", s.name, s.offset, err)
}

// Reader returns a stream of the section, whose checksum is compared first. It
// needs some 2 MiB however long the section is. Reading fails, with a
// [*DamageError], unless the section has exactly its length.
func (s *Section) Reader() (io.Reader, error) {
	if s == nil {
		return strings.NewReader(""), nil
	}
	r := &exactReader{section: s, left: s.length}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// newDecoder works in the caller's goroutine.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// exactReader ends where the section must.
type exactReader struct {
	section *Section
	r       io.Reader
	left    int64
	err     error
}

func (r *exactReader) open() error {
	s := r.section
	if err := s.verify(); err != nil {
		return err
	}
	stored := io.NewSectionReader(s.file.r, s.offset, s.stored)
	switch s.flags {
	case 0:
		r.r = stored
		return nil
	case flagZstd:
		d, ok := s.file.idle.Get().(*zstd.Decoder)
		if !ok {
			var err error
			if d, err = newDecoder(); err != nil {
				return s.damage("%v", err)
			}
		}
		if err := d.Reset(stored); err != nil {
			return s.damage("%v", err)
		}
		r.r = d
		return nil
	}
	return fmt.Errorf("section %q: %w: unknown flags %#x", s.name, ErrVersion, s.flags)
}

// end gives the decoder back.
func (r *exactReader) end(err error) {
	r.err = err
	if d, ok := r.r.(*zstd.Decoder); ok && d.Reset(nil) == nil {
		r.section.file.idle.Put(d)
	}
	r.r = nil
}

func (r *exactReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1] // one more byte tells that there are too many
	}
	n, err := r.r.Read(p)
	switch {
	case int64(n) > r.left:
		n = int(r.left)
		r.end(r.section.damage("inflates to more than its length of %d bytes", r.section.length))
	case errors.Is(err, io.EOF) && int64(n) < r.left:
		r.end(r.section.damage("inflates to %d bytes less than its length of %d", r.left-int64(n), r.section.length))
	case err != nil && !errors.Is(err, io.EOF):
		r.end(r.section.damage("%v", err))
	case err != nil:
		r.end(err)
	}
	r.left -= int64(n)
	return n, r.err
}

// maxRatio is up to what ratio of lengths memory is taken before the bytes are
// there.
const maxRatio = 64

// Bytes returns the section, whose checksum is compared first. It fails when
// the length is above limit, before anything is inflated. The bytes of a raw
// section of [OpenBytes] are those of the file; others belong to the caller.
func (s *Section) Bytes(limit int64) ([]byte, error) {
	switch {
	case s == nil:
		return nil, nil
	case s.length > limit:
		return nil, s.damage("inflates to %d bytes, at most %d are read", s.length, limit)
	}
	if s.flags == 0 && s.data != nil {
		return s.data, s.verify()
	}
	r, err := s.Reader()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(s.length, maxRatio*s.stored+alignment)+bytes.MinRead))
	if _, err := b.ReadFrom(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
