package btfscan

import (
	"encoding/binary"
	"fmt"
)

// The header of BTF version 1 (include/uapi/linux/btf.h). Section offsets
// count from the end of the header, whose length may grow.
//
//	0  u16 magic 0xeb9f   2  u8 version    3  u8 flags    4  u32 hdr_len
//	8  u32 type_off      12 u32 type_len  16 u32 str_off  20 u32 str_len
//	24 u32 layout_off    28 u32 layout_len (since the layout section exists)
const (
	magic           = 0xeb9f
	headerSize      = 24
	layoutHeaderEnd = 32
	version         = 1

	// maxSize bounds what is accepted as BTF. vmlinux has some 6 MB; with
	// this bound no sum of offsets leaves 32 bits.
	maxSize = 1 << 30
)

// span is a part of the BTF, in bytes from the start of the header.
type span struct{ off, len int }

func (s span) of(data []byte) []byte { return data[s.off : s.off+s.len : s.off+s.len] }

type header struct {
	bigEndian        bool
	types, str       span
	layout           span
	unknownFields    bool
	unknownFieldsPos int
}

func parseHeader(data []byte) (header, error) {
	var h header
	order, err := checkStart(data)
	if err != nil {
		return h, err
	}
	h.bigEndian = order == binary.BigEndian

	hdrLen := uint64(order.Uint32(data[4:]))
	if hdrLen < headerSize {
		return h, &FormatError{Offset: 4, Reason: fmt.Sprintf("header length %d, at least %d needed", hdrLen, headerSize)}
	}
	if hdrLen > uint64(len(data)) {
		return h, &FormatError{Offset: 4, Reason: fmt.Sprintf("header length %d, only %d bytes there", hdrLen, len(data))}
	}

	sections := []struct {
		name string
		pos  int
		to   *span
	}{{"type", 8, &h.types}, {"string", 16, &h.str}}
	for _, s := range sections {
		*s.to, err = section(data, order, int(hdrLen), s.pos)
		if err != nil {
			return h, fmt.Errorf("%s section: %w", s.name, err)
		}
	}
	return h, h.parseExtra(data, order, int(hdrLen))
}

// checkStart looks at magic, version and flags.
func checkStart(data []byte) (binary.ByteOrder, error) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(data) == 0:
		return nil, &FormatError{Reason: "not BTF: file is empty"}
	case len(data) > maxSize:
		return nil, &FormatError{Reason: fmt.Sprintf("%d bytes, at most %d are read", len(data), maxSize)}
	case len(data) < 2 || order.Uint16(data) != magic && binary.BigEndian.Uint16(data) != magic:
		return nil, &FormatError{Reason: fmt.Sprintf("not BTF (first bytes % x)", data[:min(2, len(data))])}
	case len(data) < headerSize:
		return nil, &FormatError{Reason: fmt.Sprintf("header cut: %d of %d bytes", len(data), headerSize)}
	}
	if order.Uint16(data) != magic {
		order = binary.BigEndian
	}
	if v := data[2]; v != version {
		return nil, &FormatError{Offset: 2, Reason: fmt.Sprintf("BTF version %d, only version %d is known", v, version)}
	}
	if f := data[3]; f != 0 {
		return nil, &FormatError{Offset: 3, Reason: fmt.Sprintf("flags %#x, none are known", f)}
	}
	return order, nil
}

// section reads one offset and length pair of the header at pos.
func section(data []byte, order binary.ByteOrder, hdrLen, pos int) (span, error) {
	off, n := uint64(order.Uint32(data[pos:])), uint64(order.Uint32(data[pos+4:]))
	if start := uint64(hdrLen) + off; start+n > uint64(len(data)) {
		return span{}, &FormatError{Offset: int64(pos), Reason: fmt.Sprintf("bytes %d to %d are past the end, %d bytes there", start, start+n, len(data))}
	}
	return span{hdrLen + int(off), int(n)}, nil
}

// parseExtra looks at header bytes beyond the first 24: the layout section, a
// pair like the others, and whatever is not known yet. The kernel refuses
// unknown bytes that are not zero (E2BIG); here they are only remarked.
func (h *header) parseExtra(data []byte, order binary.ByteOrder, hdrLen int) error {
	known := headerSize
	if hdrLen >= layoutHeaderEnd && order.Uint32(data[headerSize+4:]) != 0 {
		var err error
		if h.layout, err = section(data, order, hdrLen, headerSize); err != nil {
			return fmt.Errorf("layout section: %w", err)
		}
		known = layoutHeaderEnd
	}
	for i, c := range data[known:hdrLen] {
		if c != 0 {
			h.unknownFields, h.unknownFieldsPos = true, known+i
			break
		}
	}
	return nil
}
