package container

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

type header struct {
	format, version uint16
	count           uint32
	kind            string
	length          uint64
	table           uint32
}

// readHead returns header and table with the right checksum.
func readHead(r io.ReaderAt, size int64) ([]byte, *header, error) {
	if size < headerSize {
		return nil, nil, cutHeader(r, size)
	}
	head := make([]byte, headerSize)
	if err := readFull(r, head, 0); err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(head, size)
	if err != nil {
		return nil, nil, err
	}
	head = append(head, make([]byte, h.table)...)
	if err := readFull(r, head[headerSize:], headerSize); err != nil {
		return nil, nil, err
	}
	if sum, written := headSum(head), le.Uint32(head[checkedSize:]); sum != written {
		return nil, nil, &DamageError{Offset: checkedSize, Reason: fmt.Sprintf("checksum of header and table is %08x, %08x was written", sum, written)}
	}
	return head, h, nil
}

// cutHeader says what is wrong with a file that has no whole header.
func cutHeader(r io.ReaderAt, size int64) error {
	start := make([]byte, max(min(size, int64(len(magic))), 0))
	if err := readFull(r, start, 0); err != nil {
		return err
	}
	if len(start) > 0 && strings.HasPrefix(magic, string(start)) {
		return &DamageError{Offset: size, Reason: fmt.Sprintf("the file ends inside of its header of %d bytes", headerSize)}
	}
	return ErrFormat
}

// parseHeader takes a header apart whose checksum is not known yet.
func parseHeader(b []byte, size int64) (*header, error) {
	h := &header{
		format: le.Uint16(b[8:]), version: le.Uint16(b[10:]), count: le.Uint32(b[12:]),
		kind: strings.TrimRight(string(b[16:16+kindSize]), "\x00"), length: le.Uint64(b[32:]), table: le.Uint32(b[40:]),
	}
	switch {
	case !Is(b):
		return nil, ErrFormat
	case h.format > formatVersion:
		return nil, fmt.Errorf("%w: format version %d, this one reads %d", ErrVersion, h.format, formatVersion)
	case h.format == 0:
		return nil, &DamageError{Offset: 8, Reason: "format version 0"}
	case h.table > maxTable:
		return nil, &DamageError{Offset: 40, Reason: fmt.Sprintf("a table of %d bytes, at most %d are read", h.table, maxTable)}
	case int64(h.table) > size-headerSize:
		return nil, &DamageError{Offset: size, Reason: fmt.Sprintf("the file ends inside of its table of %d bytes", h.table)}
	}
	return h, nil
}

// check compares a header with the file and with what is wanted.
func (h *header) check(size int64, o Options) error {
	switch {
	case h.kind != o.Kind:
		return fmt.Errorf("%w: %q, want %q", ErrKind, h.kind, o.Kind)
	case h.version > o.Version:
		return fmt.Errorf("%w: %s version %d, this one reads up to %d", ErrVersion, h.kind, h.version, o.Version)
	case h.version == 0:
		return &DamageError{Offset: 10, Reason: h.kind + " version 0"}
	case uint64(size) != h.length:
		return &DamageError{Offset: min(size, int64(h.length&(1<<63-1))), Reason: fmt.Sprintf("the file has %d bytes, %d were written", size, h.length)}
	}
	return nil
}

// tableParser takes the entries of a table apart.
type tableParser struct {
	file  *File
	table []byte // what is left
	pos   int64  // of the table, in the file
	end   int64  // of the section before
	size  int64  // of the file
	left  int64  // bytes that sections may still inflate to
}

func (p *tableParser) parse(count uint32) error {
	for range count {
		s, err := p.next()
		if err != nil {
			return err
		}
		if p.file.byName[s.name] != nil {
			return p.damage(s.name, "two sections before this byte have this name")
		}
		p.file.byName[s.name] = s
		p.file.sections = append(p.file.sections, s)
	}
	if len(p.table) > 0 {
		return p.damage("", fmt.Sprintf("%d bytes behind the last of %d entries", len(p.table), count))
	}
	return nil
}

func (p *tableParser) damage(section, reason string) error {
	return &DamageError{Section: section, Offset: p.pos, Reason: reason}
}

func (p *tableParser) next() (*Section, error) {
	if len(p.table) < entrySize {
		return nil, p.damage("", fmt.Sprintf("the table ends inside of an entry of %d bytes", entrySize))
	}
	e := p.table[:entrySize]
	nameLen := int(le.Uint16(e[30:]))
	if nameLen > len(p.table)-entrySize {
		return nil, p.damage("", fmt.Sprintf("the table ends inside of a name of %d bytes", nameLen))
	}
	name := string(p.table[entrySize : entrySize+nameLen])
	if err := checkName(name); err != nil {
		return nil, p.damage("", err.Error())
	}
	offset, stored, length := le.Uint64(e), le.Uint64(e[8:]), le.Uint64(e[16:])
	s := &Section{
		file: p.file, name: name, offset: int64(offset), stored: int64(stored), length: int64(length),
		sum: le.Uint32(e[24:]), flags: le.Uint16(e[28:]),
	}
	switch {
	case offset < uint64(p.end) || offset > uint64(p.size):
		return nil, p.damage(name, fmt.Sprintf("begins at byte %d, not in %d to %d", offset, p.end, p.size))
	case stored > uint64(p.size)-offset:
		return nil, p.damage(name, fmt.Sprintf("%d bytes are stored, %d are left in the file", stored, uint64(p.size)-offset))
	case s.flags == 0 && stored != length:
		return nil, p.damage(name, fmt.Sprintf("%d bytes are stored, but its length is %d", stored, length))
	case s.flags == 0 && offset%alignment != 0:
		return nil, p.damage(name, fmt.Sprintf("begins at byte %d, no multiple of %d", offset, alignment))
	case length > uint64(p.left):
		return nil, p.damage(name, fmt.Sprintf("inflates to %d bytes; %d are left of what is read of one file", length, p.left))
	}
	p.end, p.left = s.offset+s.stored, p.left-s.length
	p.table, p.pos = p.table[entrySize+nameLen:], p.pos+entrySize+int64(nameLen)
	return s, nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return &DamageError{Offset: off + int64(n), Reason: "the file has become shorter"}
	}
	return err
}
