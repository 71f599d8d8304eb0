package kimage

import (
	"fmt"
	"io"
	"os"
)

// blob is the bytes of a file, or of what was unpacked from one.
type blob struct {
	r    io.ReaderAt
	size int64
	mem  *memory // nil for files
}

// memory is bytes that may be forgotten.
type memory struct{ b []byte }

func memBlob(b []byte) blob {
	m := &memory{b}
	return blob{r: m, size: int64(len(b)), mem: m}
}

// forget lets go of memory; then nothing can be read any more.
func (b blob) forget() {
	if b.mem != nil {
		b.mem.b = nil
	}
}

// ReadAt is that of bytes.Reader, without its position.
func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// bytes returns n bytes at off. They must not be changed.
func (b blob) bytes(off, n uint64) ([]byte, error) {
	if err := b.check(off, n); err != nil {
		return nil, err
	}
	switch {
	case n == 0:
		return nil, nil
	case b.mem != nil && b.mem.b == nil:
		return nil, fmt.Errorf("read %d bytes at %#x: %w", n, off, os.ErrClosed)
	case b.mem != nil:
		return b.mem.b[off : off+n : off+n], nil
	}
	buf := make([]byte, n)
	if _, err := b.r.ReadAt(buf, int64(off)); err != nil {
		return nil, fmt.Errorf("read %d bytes at %#x: %w", n, off, err)
	}
	return buf, nil
}

// check says what is wrong with n bytes at off.
func (b blob) check(off, n uint64) error {
	if size := uint64(b.size); off > size || n > size-off {
		return fmt.Errorf("bytes %#x to %#x are past the end of the file, which has %#x", off, off+n, size)
	}
	return nil
}

// part returns n bytes at off as a blob of their own.
func (b blob) part(off, n uint64) (blob, error) {
	if b.mem != nil {
		data, err := b.bytes(off, n)
		return memBlob(data), err
	}
	return blob{r: io.NewSectionReader(b.r, int64(off), int64(n)), size: int64(n)}, b.check(off, n)
}

// start returns the first n bytes, or all if there are fewer.
func (b blob) start(n int64) ([]byte, error) { return b.bytes(0, uint64(min(n, b.size))) }
