package kimage

import (
	"fmt"
	"io"
)

// blob is the bytes of a file, or of what was unpacked from one.
type blob struct {
	r    io.ReaderAt
	size int64
	mem  []byte // all of it, when it is in memory
}

func memBlob(b []byte) blob { return blob{r: byteReader(b), size: int64(len(b)), mem: b} }

// check says what is wrong with n bytes at off.
func (b blob) check(off, n uint64) error {
	if size := uint64(b.size); off > size || n > size-off {
		return fmt.Errorf("bytes %#x to %#x are past the end of the file, which has %#x", off, off+n, size)
	}
	return nil
}

// bytes returns n bytes at off. They must not be changed.
func (b blob) bytes(off, n uint64) ([]byte, error) {
	if err := b.check(off, n); err != nil {
		return nil, err
	}
	if b.mem != nil {
		return b.mem[off : off+n : off+n], nil
	}
	if n == 0 {
		return nil, nil
	}
	buf := make([]byte, n)
	if _, err := b.r.ReadAt(buf, int64(off)); err != nil {
		return nil, fmt.Errorf("read %d bytes at %#x: %w", n, off, err)
	}
	return buf, nil
}

// part returns n bytes at off as a blob of their own.
func (b blob) part(off, n uint64) (blob, error) {
	if err := b.check(off, n); err != nil {
		return blob{}, err
	}
	if b.mem != nil {
		return memBlob(b.mem[off : off+n : off+n]), nil
	}
	return blob{r: io.NewSectionReader(b.r, int64(off), int64(n)), size: int64(n)}, nil
}

// start returns the first n bytes, or all if there are fewer.
func (b blob) start(n int64) ([]byte, error) { return b.bytes(0, uint64(min(n, b.size))) }

// byteReader is bytes.Reader without a position.
type byteReader []byte

func (b byteReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
