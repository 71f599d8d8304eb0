package kallsyms

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of reading. All but [ErrEmpty] come inside a [LineError] where a
// line is to blame.
var (
	// ErrEmpty says that the input has no bytes at all.
	ErrEmpty = errors.New("input is empty; was the copy made from a readable /proc/kallsyms?")
	// ErrNotKallsyms says that nothing in the input is a symbol. A strict
	// read judges by the first line, a lenient one by all of them.
	ErrNotKallsyms = errors.New("no line looks like a symbol; is this the right file?")
	// ErrTruncated says that the last line is incomplete. The symbols before
	// it are in the table.
	ErrTruncated = errors.New("line is incomplete; was the file cut short?")
	// ErrLineTooLong says that a line is longer than [Options.MaxLine].
	ErrLineTooLong = errors.New("line is longer than Options.MaxLine")
	// ErrSyntax says that a strict read met a line the kernel does not print.
	ErrSyntax = errors.New("not a symbol as the kernel prints it; set Options.Lenient for edited copies")
)

// Errors of looking up.
var (
	// ErrNotFound says that no symbol has this name, or that no function
	// covers this address.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous says that one name has several addresses.
	ErrAmbiguous = errors.New("more than one address")
	// ErrHidden says that the symbol is there but its address is not told.
	// The two gates are those of kallsyms_show_value() in the kernel.
	ErrHidden = errors.New("addresses are hidden; " +
		"they need kernel.kptr_restrict 0 or 1, and CAP_SYSLOG, when kallsyms is opened")
)

// LineError is an error at one line of the input.
type LineError struct {
	Line int    // counted from 1
	Text string // the beginning of the line
	Err  error  // what is wrong
}

// Error returns the line number, the text and the cause.
func (e *LineError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %q: %v", e.Line, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Warning is something odd at one line that did not end the read.
type Warning struct {
	Line    int    // counted from 1
	Text    string // the beginning of the line
	Reason  string // what is odd about it
	Skipped bool   // whether the line was left out
}

// String returns the warning as one line of text.
func (w Warning) String() string {
	if w.Skipped {
		return fmt.Sprintf("line %d skipped: %s: %q", w.Line, w.Reason, w.Text)
	}
	return fmt.Sprintf("line %d: %s: %q", w.Line, w.Reason, w.Text)
}

// NotFoundError says that no symbol has exactly the name asked for, and which
// symbols are made from it. It is an [ErrNotFound].
type NotFoundError struct {
	Name string
	// Variants are functions that the compiler made from Name. They may take
	// other arguments. Padding and fragments are not among them.
	Variants []Symbol
}

// Error returns the name and, if there are any, the variants to try.
func (e *NotFoundError) Error() string {
	if len(e.Variants) == 0 {
		return fmt.Sprintf("symbol %s: not found", e.Name)
	}
	names := make([]string, len(e.Variants))
	for i, s := range e.Variants {
		names[i] = s.Name
	}
	return fmt.Sprintf("symbol %s: not found; the compiler made %s of it, whose arguments may differ",
		e.Name, listSome(names))
}

// Is returns whether target is [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// AmbiguousError says that a name stands for several addresses. It is an
// [ErrAmbiguous].
type AmbiguousError struct {
	Name    string
	Symbols []Symbol // in the order of the source
}

// Error returns the name and its addresses.
func (e *AmbiguousError) Error() string {
	places := make([]string, len(e.Symbols))
	for i, s := range e.Symbols {
		places[i] = fmt.Sprintf("%#x %s", s.Addr, s.Name)
		if s.Module != "" {
			places[i] += " [" + s.Module + "]"
		}
	}
	return fmt.Sprintf("symbol %s: %d addresses (%s); choose by module or address",
		e.Name, len(e.Symbols), listSome(places))
}

// Is returns whether target is [ErrAmbiguous].
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// listSome joins the first few of list.
func listSome(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// hiddenError is an [ErrHidden] that names what was asked for.
type hiddenError struct{ name string }

func (e *hiddenError) Error() string { return e.name + ": " + ErrHidden.Error() }

func (e *hiddenError) Unwrap() error { return ErrHidden }
