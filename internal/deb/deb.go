// Package deb reads the files of a Debian package as a stream: an ar archive
// whose member data.tar, compressed or not, has the files (deb(5)).
package deb

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/kallscope/kallscope/internal/inflate"
)

// Magic is how packages, and all ar archives, begin.
const Magic = "!<arch>\n"

// Reader goes over the files of a package, once, in its order. It is not safe
// for concurrent use.
type Reader struct {
	tar   *tar.Reader
	close func() error
}

// blockSize is what is read at once: archive/tar asks for 512 bytes at a time,
// and a decompressor that is asked so spends most of its time on being asked.
const blockSize = 128 << 10

// NewReader finds the files in a package.
func NewReader(r io.Reader) (*Reader, error) {
	br := bufio.NewReaderSize(r, blockSize)
	magic := make([]byte, len(Magic))
	if _, err := io.ReadFull(br, magic); err != nil || string(magic) != Magic {
		return nil, errors.New("no Debian package: it is no ar archive")
	}
	for {
		name, size, err := nextMember(br)
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("no Debian package: it has no data.tar")
		case err != nil:
			return nil, fmt.Errorf("read Debian package: %w", err)
		case strings.HasPrefix(name, "data.tar"):
			d, err := openTar(&member{br, size})
			if err != nil {
				return nil, fmt.Errorf("read Debian package: %s: %w", name, err)
			}
			return d, nil
		}
		if _, err := io.CopyN(io.Discard, br, size+size&1); err != nil {
			return nil, fmt.Errorf("read Debian package: %s: %w", name, io.ErrUnexpectedEOF)
		}
	}
}

// nextMember reads the header of a member: name 16 bytes, date 12, owner 6,
// group 6, mode 8, size 10, end 2, all of them text.
func nextMember(r io.Reader) (name string, size int64, err error) {
	var h [60]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return "", 0, err
	}
	name = strings.TrimRight(string(h[:16]), " /")
	size, err = strconv.ParseInt(strings.TrimSpace(string(h[48:58])), 10, 64)
	if err != nil || size < 0 || string(h[58:]) != "`\n" {
		return "", 0, fmt.Errorf("%.16q is no header of an ar archive", h[:])
	}
	return name, size, nil
}

// member reads a member to its end, which must not be that of the file.
type member struct {
	r    io.Reader
	left int64
}

func (m *member) Read(p []byte) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	if errors.Is(err, io.EOF) && m.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func openTar(r io.Reader) (*Reader, error) {
	br := bufio.NewReaderSize(r, blockSize)
	start, err := br.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	format := inflate.Detect(start)
	if format == "" {
		return &Reader{tar: tar.NewReader(br), close: func() error { return nil }}, nil
	}
	z, err := inflate.NewReader(br, format)
	if err != nil {
		return nil, err
	}
	return &Reader{tar: tar.NewReader(bufio.NewReaderSize(z, blockSize)), close: z.Close}, nil
}

// File is one regular file; its content is valid up to the next one.
type File struct {
	// Name is the path without a leading "./" or "/".
	Name string
	// Size is what the archive says; no memory should be taken for it ahead of
	// the content.
	Size int64

	r io.Reader
}

// Next returns the next regular file, or io.EOF behind the last.
func (d *Reader) Next() (*File, error) {
	for {
		h, err := d.tar.Next()
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			return &File{Name: strings.TrimPrefix(path.Clean("/"+h.Name), "/"), Size: h.Size, r: d.tar}, nil
		}
	}
}

// Content reads the file, at most limit bytes.
func (f *File) Content(limit int64) ([]byte, error) {
	if f.Size > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", f.Name, f.Size, limit)
	}
	var buf bytes.Buffer
	buf.Grow(int(min(f.Size, 1<<20)) + bytes.MinRead)
	if _, err := buf.ReadFrom(f.r); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return buf.Bytes(), nil
}

// Close releases what unpacking took.
func (d *Reader) Close() error { return d.close() }
