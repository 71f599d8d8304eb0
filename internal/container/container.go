// Package container is the file format that snapshots, address files and caches
// share: named sections behind a table, with a version and checksums.
//
//	w := container.NewWriter("snapshot", 1)
//	w.Add("symbols", text, container.Zstd)
//	err := w.WriteFile("k.ksnap")
//
//	f, err := container.Open(file, size, container.Options{Kind: "snapshot", Version: 1})
//	text, err := f.Section("symbols").Bytes(1 << 20)
//
// A file is a header, a table, and the sections in the order of the table. All
// numbers are little-endian, all offsets count from the start of the file.
//
//	header, 48 bytes
//	   0  [8]byte   magic "\x89kscope\n"
//	   8  u16       version of this format: 1
//	  10  u16       version of what the sections of this kind hold, from 1
//	  12  u32       number of sections
//	  16  [16]byte  kind, such as "snapshot", filled up with zeros
//	  32  u64       length of the file
//	  40  u32       length of the table, at most 4 MiB
//	  44  u32       CRC-32C of the 44 bytes before and of the table
//
//	table, for each section
//	   0  u64       offset of its first byte
//	   8  u64       stored length
//	  16  u64       length when inflated
//	  24  u32       CRC-32C of the stored bytes
//	  28  u16       flags: bit 0 is set for zstd; the others are zero
//	  30  u16       length of the name, 1 to 255
//	  32  …         name: UTF-8 without control characters
//
// Sections lie behind the table, in its order, without overlap; their names
// differ. What is stored raw begins at a multiple of 64 bytes, so that a mapped
// file can be used in place. Bytes between sections are zero and mean nothing.
//
// A reader ignores sections that it does not know, and refuses what is later
// than its own versions, of the format or of the kind: a change that older
// readers may overlook adds a section, any other raises a version. A section
// with an unknown flag is an error only for whom opens it.
//
// CRC-32C finds every change of up to 32 neighbouring bits, and processors
// compute it at the speed of memory. It is no protection against intent: lengths
// are limits that are checked while reading, never sizes to allocate.
package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	magic         = "\x89kscope\n"
	formatVersion = 1

	headerSize  = 48
	checkedSize = 44 // of the header
	kindSize    = 16
	entrySize   = 32 // without the name
	maxName     = 255
	maxTable    = 4 << 20
	alignment   = 64

	flagZstd = 1 << 0
)

// maxWindow bounds what a zstd frame may ask a reader to keep. Writers use
// less: see newEncoder.
const maxWindow = 8 << 20

// defaultMaxLength is what all sections of a file may inflate to. A kernel with
// all of Debian's modules loaded has some 100 MiB of facts.
const defaultMaxLength = 256 << 20

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Storage is how a section lies in the file.
type Storage uint8

// Raw sections can be used in place, Zstd ones are small.
const (
	Raw Storage = iota
	Zstd
)

var (
	// ErrFormat says that bytes are no file of this format.
	ErrFormat = errors.New("not a file that kallscope wrote")
	// ErrVersion says that a file is of a later version.
	ErrVersion = errors.New("made by a newer kallscope")
	// ErrKind says that a file holds something else than is wanted.
	ErrKind = errors.New("another kind of file")
	// ErrDamaged says that a file is not as it was written.
	ErrDamaged = errors.New("damaged")
)

// A DamageError says where a file is not as it was written. It is an
// [ErrDamaged].
type DamageError struct {
	Section string // empty in the header and the table
	Offset  int64  // in the file
	Reason  string
}

// Error returns section, offset and reason.
func (e *DamageError) Error() string {
	where := ""
	if e.Section != "" {
		where = fmt.Sprintf("section %q ", e.Section)
	}
	return fmt.Sprintf("%sat byte %d: %s", where, e.Offset, e.Reason)
}

// Is makes errors.Is(e, ErrDamaged) true.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// checkName returns what is wrong with the name of a section.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("a name of %d bytes, 1 to %d are allowed", len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("name %q is not text", name)
	}
	return nil
}

// align rounds up.
func align(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }
