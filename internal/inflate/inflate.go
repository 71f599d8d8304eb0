// Package inflate unpacks what kernels, modules and packages are compressed
// with, from files that nobody vouches for: the result is bounded, and memory
// is taken as data comes, not because a header says so.
//
//	format := inflate.Detect(data)
//	raw, err := inflate.All(data, inflate.Options{Format: format, Max: 1 << 30})
package inflate

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
	"github.com/ulikunitz/xz/lzma"
)

// Format names a compression; empty means none that is known.
type Format string

// The formats of CONFIG_KERNEL_* and CONFIG_MODULE_COMPRESS_*.
const (
	Gzip  Format = "gzip"
	XZ    Format = "xz"
	LZMA  Format = "lzma"
	Bzip2 Format = "bzip2"
	LZ4   Format = "lz4" // the legacy frame, as lz4 -l makes it
	Zstd  Format = "zstd"
	LZO   Format = "lzo" // recognised, not unpacked
)

// magics are those of lib/decompress.c in the kernel; lzma has none, these are
// the properties and the low bytes of a dictionary size that the kernel's
// build uses.
var magics = []struct {
	format Format
	magic  string
}{
	{Gzip, "\x1f\x8b"},
	{Zstd, "\x28\xb5\x2f\xfd"},
	{LZ4, "\x02\x21\x4c\x18"},
	{XZ, "\xfd7zXZ\x00"},
	{Bzip2, "BZh"},
	{LZO, "\x89LZO"},
	{LZMA, "\x5d\x00\x00"},
}

// Detect returns the format of data by its first bytes.
func Detect(data []byte) Format {
	for _, m := range magics {
		if bytes.HasPrefix(data, []byte(m.magic)) {
			return m.format
		}
	}
	return ""
}

// Errors that callers tell apart.
var (
	// ErrTooLarge says that the result would pass Options.Max.
	ErrTooLarge = errors.New("too large when unpacked")
	// ErrLZO says that lzo is not supported: no kept library reads it, and no
	// distribution uses it for kernels.
	ErrLZO = errors.New("lzo is not supported; unpack the file with lzop first")
)

// Options for [All].
type Options struct {
	Format Format
	// Size is how many bytes must come out; zero when that is not known.
	Size int64
	// Max bounds the result, in bytes.
	Max int64
}

// maxWindow bounds the dictionaries. The kernel's build uses 128 MiB at most
// (scripts/xz_wrap.sh; zstd --ultra -22).
const maxWindow = 128 << 20

// maxRatio is how much All believes data to grow by when it takes memory ahead
// of the data. Kernels grow by four to nine.
const maxRatio = 32

// All returns data unpacked. A result of another size than Options.Size, or
// above Options.Max, is an error.
func All(data []byte, o Options) ([]byte, error) {
	if o.Size > o.Max {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d are read", o.Format, ErrTooLarge, o.Size, o.Max)
	}
	if o.Size > 0 {
		o.Max = o.Size
	}
	raw, err := all(data, o)
	if err == nil && o.Size > 0 && int64(len(raw)) != o.Size {
		err = fmt.Errorf("%d bytes unpacked, there must be %d", len(raw), o.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Format, err)
	}
	return raw, nil
}

func all(data []byte, o Options) ([]byte, error) {
	room := min(o.Size, maxRatio*int64(len(data)))
	switch {
	case o.Format == LZ4:
		// With room for a whole block behind the last, nothing is moved.
		return lz4All(data, make([]byte, 0, room+lz4BlockSize), o.Max)
	case o.Format == Zstd && room > 0 && room == o.Size:
		return zstdAll(data, int(room))
	}
	r, err := NewReader(bytes.NewReader(data), o.Format)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	buf := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(r, o.Max+1)); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > o.Max {
		return nil, fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, o.Max)
	}
	return buf.Bytes(), nil
}

// zstdAll needs no window besides the result and takes two thirds of the time
// of a stream.
func zstdAll(data []byte, size int) ([]byte, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(data, make([]byte, 0, size))
}

// NewReader returns a reader of what r holds unpacked. It reads r in large
// pieces and may take more of it than it needs. LZ4 is for [All] only.
func NewReader(r io.Reader, f Format) (io.ReadCloser, error) {
	switch f {
	case Gzip:
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		return z, nil
	case XZ:
		z, err := xz.NewReader(r, maxWindow)
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		return io.NopCloser(z), nil
	case LZMA:
		z, err := lzma.ReaderConfig{DictCap: maxWindow}.NewReader(r)
		return io.NopCloser(z), err
	case Bzip2:
		return io.NopCloser(bzip2.NewReader(r)), nil
	case Zstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case LZO:
		return nil, ErrLZO
	}
	return nil, fmt.Errorf("no stream of compression %q", string(f))
}
