package inflate

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"
)

// A legacy frame is its magic and blocks, each a length and the data of at most
// 8 MiB; nothing marks the end (lib/decompress_unlz4.c).
const (
	lz4Magic     = 0x184c2102
	lz4BlockSize = 8 << 20
)

// lz4All appends the blocks to dst.
func lz4All(data, dst []byte, limit int64) ([]byte, error) {
	at := 0
	for at < len(data) {
		if len(data)-at < 4 {
			return nil, fmt.Errorf("length of a block at byte %d: %w", at, io.ErrUnexpectedEOF)
		}
		n := binary.LittleEndian.Uint32(data[at:])
		at += 4
		if n == lz4Magic {
			continue // also between frames
		}
		if int64(n) > int64(len(data)-at) {
			return nil, fmt.Errorf("block at byte %d has %d bytes, %d are left: %w", at, n, len(data)-at, io.ErrUnexpectedEOF)
		}
		// A block grows by 255 at most, whatever it claims.
		dst = slices.Grow(dst, min(lz4BlockSize, 255*int(n)))
		room := dst[len(dst):min(cap(dst), len(dst)+lz4BlockSize)]
		m, err := lz4.UncompressBlock(data[at:at+int(n)], room)
		if err != nil {
			return nil, fmt.Errorf("block at byte %d: %w", at, err)
		}
		dst, at = dst[:len(dst)+m], at+int(n)
		if int64(len(dst)) > limit {
			return nil, fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)
		}
	}
	return dst, nil
}
