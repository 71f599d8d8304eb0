package kallscope

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotFound: no such function, reason, mechanism or object.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous: a name stands for several functions and one was asked for.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrRestricted: the kernel keeps the fact from this process.
	ErrRestricted = errors.New("restricted")
	// ErrNotSupported: the kernel does not have the mechanism.
	ErrNotSupported = errors.New("not supported by this kernel")
	// ErrOtherKernel: the plan was made for another kernel.
	ErrOtherKernel = errors.New("made for another kernel")
)

// An AmbiguousError names the functions that share a name. It is an
// [ErrAmbiguous].
type AmbiguousError struct {
	Name  string
	Funcs []Func
}

// Error lists at most eight of the addresses.
func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d functions have this name:", e.Name, len(e.Funcs))
	for i, f := range e.Funcs {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(e.Funcs)-i)
			break
		}
		fmt.Fprintf(&b, " %#x [%s]", f.Addr, f.Module)
	}
	b.WriteString("; choose by address or with --duplicates")
	return b.String()
}

// Is makes errors.Is(e, ErrAmbiguous) true.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }
