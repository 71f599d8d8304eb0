// Package kallsyms reads the kernel's symbol list, /proc/kallsyms or a copy
// of it, and answers questions by name and by address.
//
// A name is not a key and neither is an address: one name may stand for many
// functions, one function may have several names. Every look-up therefore
// returns all that fits, in the order of the source. Nothing is lost in
// silence: lines that are skipped are counted and reported, a file that was
// cut short is an [ErrTruncated], and a kernel that hides its addresses is
// [Hidden], not empty.
//
// [Read], [Parse] and [ReadFile] build a [Table], which never changes and may
// be used from several goroutines. A [Scanner] gives the lines one at a time
// and keeps nothing.
//
// The order of /proc/kallsyms is: vmlinux by address, then the modules, each
// in one piece but not sorted, then the pseudo-modules __builtin__ftrace, bpf
// and __builtin__kprobes (update_iter_mod() in kernel/kallsyms.c). Whoever
// needs vmlinux only may stop at the first line with a module.
package kallsyms

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Symbol is one line of kallsyms.
type Symbol struct {
	// Addr is where the symbol starts; zero when the kernel hides addresses.
	Addr uint64
	// Type is the letter of nm(1): see [IsText].
	Type byte
	// Name is the whole name, compiler suffixes included.
	Name string
	// Module is the name in brackets; empty for vmlinux. See [IsPseudoModule].
	Module string
}

// IsText returns whether the symbol is code. It is the function of the same
// name applied to Type.
func (s Symbol) IsText() bool { return IsText(s.Type) }

// String returns the symbol as /proc/kallsyms prints it, without line end.
func (s Symbol) String() string {
	if s.Module == "" {
		return fmt.Sprintf("%016x %c %s", s.Addr, s.Type, s.Name)
	}
	return fmt.Sprintf("%016x %c %s\t[%s]", s.Addr, s.Type, s.Name, s.Module)
}

// IsText returns whether typ marks code: T and t, and the weak functions W
// and w. V and v are weak objects, hence data.
func IsText(typ byte) bool {
	return typ == 't' || typ == 'T' || typ == 'W' || typ == 'w'
}

// IsPseudoModule returns whether name is no module but a label the kernel
// gives to code that it makes at run time: "bpf" for programs and
// trampolines, "__builtin__ftrace" and "__builtin__kprobes" for their pages
// (get_ksymbol_bpf() and its neighbours in kernel/kallsyms.c).
func IsPseudoModule(name string) bool {
	return name == "bpf" || strings.HasPrefix(name, "__builtin__")
}

// Action is what [Options.Visit] decides about a line.
type Action int

const (
	// Keep takes the line.
	Keep Action = iota
	// Skip leaves the line out and goes on.
	Skip
	// Stop leaves the line out and reads no further.
	Stop
)

const (
	defaultMaxLine = 64 << 10
	// The open chunk of a table holds chunkLen names and counts their bytes
	// in 32 bits, which bounds the length of a line.
	limitMaxLine = 512 << 10
)

// Options says how to read. The zero value suits /proc/kallsyms.
type Options struct {
	// MaxLine is the longest line accepted, in bytes without the line end. A
	// longer one is [ErrLineTooLong]. Zero means 64 KiB; more than 512 KiB
	// counts as 512 KiB. The kernel's own names end at KSYM_NAME_LEN, 512.
	MaxLine int

	// Lenient accepts what happens to copies: a byte order mark, CRLF, blanks
	// for tabs, comments, empty lines, a last line without end. A line that is
	// no symbol is skipped and reported by Warnings instead of ending the
	// read. Well-formed lines cost the same with and without it.
	Lenient bool

	// Visit is called for each symbol in order and decides what becomes of
	// it, for instance Stop at the first line of a module. The line is valid
	// during the call only. Nil keeps everything.
	//
	// Mapping symbols are dropped before it.
	Visit func(*Line) Action
}

func (o Options) maxLine() int {
	if o.MaxLine <= 0 {
		return defaultMaxLine
	}
	return min(o.MaxLine, limitMaxLine)
}

// Read returns the table of what r holds. A gzip stream is recognised by its
// first bytes and unpacked.
//
// On [ErrTruncated] the table has all lines before the cut; with any other
// error it is nil. Memory grows with the number of symbols only: about 41
// bytes for each, names of the usual length included.
func Read(r io.Reader, o Options) (*Table, error) {
	t, err := newBuilder().read(NewScanner(r, o))
	if err != nil {
		return t, fmt.Errorf("read kallsyms: %w", err)
	}
	return t, nil
}

// Parse returns the table of the text in b, which it does not keep. Apart
// from that it equals [Read].
func Parse(b []byte, o Options) (*Table, error) {
	t, err := newBuilder().read(newByteScanner(b, o))
	if err != nil {
		return t, fmt.Errorf("parse kallsyms: %w", err)
	}
	return t, nil
}

// ReadFile returns the table of the file at path, plain or packed by gzip,
// whatever its name. Errors are those of [Read] and those of opening a file.
func ReadFile(path string, o Options) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the operation and the path itself
	}
	defer f.Close()
	t, err := newBuilder().read(NewScanner(f, o))
	if err != nil {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	return t, nil
}

// Append returns a table with the symbols of t and, behind them, those that r
// holds, as if both had been read in one: the modules from another source than
// vmlinux. Lines and warnings are those of r. It shares the storage of t, which
// stays as it is. An empty r adds nothing; else errors are those of [Read].
func (t *Table) Append(r io.Reader, o Options) (*Table, error) {
	more, err := newBuilderFrom(t).read(NewScanner(r, o))
	switch {
	case errors.Is(err, ErrEmpty):
		return t, nil
	case err != nil:
		return more, fmt.Errorf("append kallsyms: %w", err)
	}
	return more, nil
}

func (b *builder) read(s *Scanner) (*Table, error) {
	for s.Scan() {
		b.add(s.buf, &s.word)
	}
	err := s.Err()
	truncated := errors.Is(err, ErrTruncated)
	if err != nil && !truncated {
		return nil, err
	}
	t := b.finish()
	t.lines, t.mapping, t.skipped = s.number, s.mapping, s.skipped
	t.warnings, t.stopped, t.truncated = s.warnings, s.stopped, truncated
	return t, err
}
