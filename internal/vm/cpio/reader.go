package cpio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// Entry is one entry read back from an archive.
type Entry struct {
	Header
	// Data is the content; for a symbolic link, the target.
	Data []byte
}

// Read yields the entries of an archive in order, up to its trailer. The
// first error ends the sequence; errors about the form wrap [ErrFormat].
func Read(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		br := bufio.NewReader(r)
		for {
			e, err := next(br)
			if err == nil && e.Name == trailer {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func next(r *bufio.Reader) (Entry, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Entry{}, formatError("header", err)
	}
	h, nameLen, err := decode(head[:])
	if err != nil {
		return Entry{}, err
	}
	name, err := readPadded(r, nameLen, headerLen)
	if err != nil {
		return Entry{}, formatError("name", err)
	}
	h.Name = strings.TrimSuffix(string(name), "\x00")
	data, err := readPadded(r, h.Size, 0)
	if err != nil {
		return Entry{}, formatError("data of "+h.Name, err)
	}
	return Entry{Header: h, Data: data}, nil
}

func decode(head []byte) (Header, int64, error) {
	if string(head[:6]) != magic {
		return Header{}, 0, fmt.Errorf("magic %q: %w", head[:6], ErrFormat)
	}
	var f [13]uint32
	for i := range f {
		v, err := strconv.ParseUint(string(head[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			return Header{}, 0, formatError("header field", err)
		}
		f[i] = uint32(v)
	}
	if f[11] == 0 || f[11] > maxName {
		return Header{}, 0, fmt.Errorf("name of %d bytes: %w", f[11], ErrFormat)
	}
	return Header{Mode: f[1], Size: int64(f[6]), Major: f[9], Minor: f[10]}, int64(f[11]), nil
}

// readPadded reads n bytes and the padding that follows them, where before
// bytes come ahead of them in the same aligned unit.
func readPadded(r *bufio.Reader, n, before int64) ([]byte, error) {
	var b strings.Builder
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, err
	}
	_, err := r.Discard(len(padding(before + n)))
	return []byte(b.String()), err
}

func formatError(what string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: %w: %w", what, ErrFormat, err)
}
