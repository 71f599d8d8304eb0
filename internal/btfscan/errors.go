package btfscan

import (
	"errors"
	"fmt"
)

// ErrNeedsBase is returned by [Parse] for split BTF that came without the BTF
// it continues, such as that of a module without vmlinux.
var ErrNeedsBase = errors.New("split BTF: needs its base")

// ErrNoBTF is returned by [FromELF] for an ELF file without a .BTF section.
var ErrNoBTF = errors.New("no .BTF section")

// ErrCycle is in the chain of errors about types that lead back to themselves
// or are nested deeper than the kernel accepts.
var ErrCycle = errors.New("type cycle")

// FormatError says what is wrong with the bytes and where.
type FormatError struct {
	// Offset is the position from the start of the BTF, of its header not of
	// a section.
	Offset int64
	// ID is the type concerned. Zero means a header or a section.
	ID uint32
	// Reason is the text without the place.
	Reason string
}

// Error returns the place and the reason.
func (e *FormatError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("BTF byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("BTF type %d at byte %d: %s", e.ID, e.Offset, e.Reason)
}

// UnknownKindError says which kind ended a scan. What comes before it is
// usable, what follows is not: the size of an unknown kind is unknown.
type UnknownKindError struct {
	Kind   uint8
	ID     uint32
	Offset int64
}

// Error returns the kind, the type id, the offset and the newest kind known.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("BTF type %d at byte %d: unknown kind %d (newest known is %d, LOCSEC): functions after it are not seen; use a newer kallscope",
		e.ID, e.Offset, e.Kind, maxKind)
}

// RefError says that a type refers to an id that does not exist or is of the
// wrong kind.
type RefError struct {
	// ID is the referring type, Ref the id it names.
	ID, Ref uint32
	// Reason is why Ref does not fit.
	Reason string
}

// Error returns both ids and the reason.
func (e *RefError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("BTF type %d: %s", e.Ref, e.Reason)
	}
	return fmt.Sprintf("BTF type %d refers to type %d: %s", e.ID, e.Ref, e.Reason)
}
