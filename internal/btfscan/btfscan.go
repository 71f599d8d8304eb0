// Package btfscan reads functions and their types from raw BTF without
// decoding the rest.
//
// [Parse] walks the type section once and notes where the functions are:
// about a millisecond for the 126,000 types of a kernel. Everything else is
// read from the bytes when asked for, and indexes are built at first use:
//
//	b, err := btfscan.Parse(data, nil)
//	for f := range b.Funcs() {
//		proto, err := b.Prototype(f) // ssize_t vfs_read(struct file *file, …)
//	}
//
// Split BTF (modules) continues the ids and string offsets of its base, see
// [Parse]. All kinds up to LOCSEC (22) are known, in both byte orders; an
// unknown kind is skipped when the BTF has a layout section and otherwise ends
// the scan, see [BTF.Partial].
//
// Bytes from outside are safe to parse: every length is checked before it is
// believed, and depth and output are bounded. The slow twin that tests compare
// with is github.com/cilium/ebpf/btf.
package btfscan

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/kallscope/kallscope/internal/nameindex"
)

// BTF is one BTF object, perhaps on top of a base. It is immutable and safe for
// concurrent use; the indexes it builds at first use are guarded.
//
// Strings that come out of it share memory with the data given to [Parse]:
// clone what must outlive a mapped file.
type BTF struct {
	base      *BTF
	data      []byte
	types     []byte
	typesOff  int
	str       string
	strOff    uint32 // of str[0], in the count that continues the base
	first     uint32 // id of the first own type
	n         uint32 // own types
	big       bool
	distilled bool
	warning   string
	partial   *UnknownKindError
	sizes     *kindSizes
	funcs     []rawFunc

	offsets lazy[[]uint32]
	values  lazy[[]packedValue]
	sorted  lazy[bool]
	hashed  atomic.Bool
	byName  lazy[*nameindex.Index]
}

// Parse checks the header and scans the type section once. base is nil for BTF
// that stands alone (vmlinux); for split BTF it is what the ids continue, and
// may be split itself.
//
// data is kept, not copied, and must not change. Errors are [*FormatError],
// [*RefError], or wrap [ErrNeedsBase]. The cost is some 10 ns a type and 12
// bytes a function.
func Parse(data []byte, base *BTF) (*BTF, error) {
	h, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	b := &BTF{base: base, data: data, types: h.types.of(data), typesOff: h.types.off, first: 1, big: h.bigEndian}
	b.sizes = knownSizes.withLayout(h.layout.of(data))
	if h.unknownFields {
		b.warning = fmt.Sprintf("unknown header fields (byte %d is not zero): written by a newer tool, parts may be missing", h.unknownFieldsPos)
	}
	if err := b.continueBase(); err != nil {
		return nil, err
	}
	if err := b.checkStrings(h.str); err != nil {
		return nil, err
	}
	if err := b.scan(); err != nil {
		return nil, b.blameBase(err)
	}
	if base == nil && b.str[0] != 0 {
		return nil, &FormatError{Offset: int64(h.str.off), Reason: "string section does not begin with NUL; split BTF without its base?"}
	}
	return b, nil
}

// continueBase takes up ids and string offsets where the base ends.
func (b *BTF) continueBase() error {
	base := b.base
	switch {
	case base == nil:
		return nil
	case base.big != b.big:
		return &FormatError{Reason: "byte order differs from that of the base"}
	case base.partial != nil:
		return fmt.Errorf("base BTF is incomplete, ids cannot continue it: %w", base.partial)
	case uint64(base.strOff)+uint64(len(base.str))+maxSize > 1<<32:
		return &FormatError{Reason: "base too large"}
	}
	b.first = base.first + base.n
	b.strOff = base.strOff + uint32(len(base.str))
	return nil
}

// checkStrings makes sure that every string ends inside the section. Whether
// the first one is empty must wait for the scan: split BTF has no empty string
// of its own, and the scan tells it from damage.
func (b *BTF) checkStrings(s span) error {
	str := s.of(b.data)
	switch {
	case len(str) == 0 && b.base == nil:
		return &FormatError{Offset: int64(s.off), Reason: "no string section"}
	case len(str) == 0:
		return nil
	case str[len(str)-1] != 0:
		return &FormatError{Offset: int64(s.off + s.len - 1), Reason: "string section does not end in NUL"}
	}
	// Immutable by the contract of Parse.
	b.str = unsafe.String(&str[0], len(str))
	return nil
}

// blameBase turns an error about what lies beyond the own strings and ids into
// one about the missing base, if this looks like split BTF.
func (b *BTF) blameBase(err error) error {
	beyond := &beyondError{}
	if errors.As(err, &beyond) {
		if b.base == nil && b.str[0] != 0 {
			return fmt.Errorf("%w (%s): pass the BTF it was built on, /sys/kernel/btf/vmlinux for modules", ErrNeedsBase, beyond.short)
		}
		return beyond.err
	}
	return err
}

// NumTypes returns the number of own types, without void and without the base.
func (b *BTF) NumTypes() int { return int(b.n) }

// FirstID returns the id of the first own type: 1, or the one after the base's
// last.
func (b *BTF) FirstID() uint32 { return b.first }

// Base returns what [Parse] was given, or what [FromELF] found.
func (b *BTF) Base() *BTF { return b.base }

// Partial returns the unknown kind that ended the scan, or nil. Types and
// functions before it are there, those after it are not.
func (b *BTF) Partial() *UnknownKindError { return b.partial }

// Warning returns a remark about header fields that are not understood, or "".
func (b *BTF) Warning() string { return b.warning }

// Bytes returns what [Parse] was given, or the section that [FromELF] found: all
// of it, also where the scan ended early. It must not be changed.
func (b *BTF) Bytes() []byte { return b.data }

// Distilled says that the base is a distilled one (.BTF.base of an out-of-tree
// module): names and prototypes are right, but ids are not those of the
// running kernel and must not be given to it before relocation.
func (b *BTF) Distilled() bool { return b.distilled }

// end is the id after the last type.
func (b *BTF) end() uint32 { return b.first + b.n }

// strEnd is the string offset after the last string.
func (b *BTF) strEnd() uint32 { return b.strOff + uint32(len(b.str)) }
