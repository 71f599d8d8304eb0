package kallsyms

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
)

const (
	// One read of /proc/kallsyms returns at most a page, whatever the size of
	// the buffer, because seq_file formats into one page at a time. The rest
	// is for files.
	bufferSize = 32 << 10

	maxWarnings = 100 // kept in full; further ones are only counted
	maxQuoted   = 60  // bytes of a line that errors and warnings repeat
)

// Line is one symbol of a [Scanner]. Name and Module are parts of its buffer:
// they are valid until the next Scan.
type Line struct {
	Addr   uint64
	Type   byte
	Name   []byte
	Module []byte // nil for vmlinux
	Number int    // of the line, counted from 1
}

// Symbol returns a copy that stays valid.
func (l *Line) Symbol() Symbol {
	return Symbol{Addr: l.Addr, Type: l.Type, Name: string(l.Name), Module: string(l.Module)}
}

// Scanner reads symbols one at a time, in the manner of [bufio.Scanner]. It
// allocates its buffer once and nothing for a line. Not safe for concurrent
// use.
type Scanner struct {
	r        io.Reader // nil when buf is the whole input
	buf      []byte
	pos, end int   // what is left of buf
	word     words // the symbol
	line     Line  // the same for callers
	visit    func(*Line) Action
	max      int
	lenient  bool

	sniffed bool // the first bytes have been looked at
	eof     bool // r has nothing more
	done    bool
	stopped bool
	err     error

	number   int // lines taken
	parsed   int // of these, symbols
	mapping  int // of these, mapping symbols
	skipped  int // lines left out
	warnings []Warning
}

// NewScanner returns a scanner over r. A gzip stream is recognised by its
// first bytes and unpacked.
func NewScanner(r io.Reader, o Options) *Scanner {
	return &Scanner{
		r: r, buf: make([]byte, bufferSize),
		visit: o.Visit, max: o.maxLine(), lenient: o.Lenient,
	}
}

// newByteScanner returns a scanner over b, which it never writes to.
func newByteScanner(b []byte, o Options) *Scanner {
	return &Scanner{
		buf: b, end: len(b), eof: true,
		visit: o.Visit, max: o.maxLine(), lenient: o.Lenient,
	}
}

// Line returns the symbol that the last Scan found. It is the same object
// every time.
func (s *Scanner) Line() *Line {
	w := &s.word
	s.line = Line{Addr: w.addr, Type: w.typ, Name: s.buf[w.name:w.nameEnd], Number: s.number}
	if w.moduleEnd > w.module {
		s.line.Module = s.buf[w.module:w.moduleEnd]
	}
	return &s.line
}

// Err returns what ended the scan; nil at a clean end or after [Stop].
func (s *Scanner) Err() error { return s.err }

// Stopped returns whether [Options.Visit] ended the scan.
func (s *Scanner) Stopped() bool { return s.stopped }

// Lines returns how many lines have been taken, symbols or not.
func (s *Scanner) Lines() int { return s.number }

// Mapping returns how many mapping symbols have been dropped: $x and $d, with
// or without .N, of arm64, $a, $t and $d of arm, .L* and L0*. They mark what
// the bytes are and would hide the symbol at the same address.
func (s *Scanner) Mapping() int { return s.mapping }

// Skipped returns how many lines have been left out because they are no
// symbols. Empty lines do not count. Always zero in a strict scan.
func (s *Scanner) Skipped() int { return s.skipped }

// Warnings returns what was odd, at most the first hundred oddities. Skipped
// counts all lines left out.
func (s *Scanner) Warnings() []Warning { return slices.Clone(s.warnings) }

// Scan moves to the next symbol and returns whether there is one. When it
// returns false, Err says whether that was the end or an error.
func (s *Scanner) Scan() bool {
	for !s.done {
		if !s.fast() && !s.slow() {
			continue // a line that is no symbol, or the end
		}
		s.parsed++
		if isMapping(s.buf[s.word.name:s.word.nameEnd]) {
			s.mapping++
			continue
		}
		if s.visit == nil || s.take() {
			return true
		}
	}
	return false
}

// take asks the visitor about the line.
func (s *Scanner) take() bool {
	switch s.visit(s.Line()) {
	case Keep:
		return true
	case Stop:
		s.stopped, s.done = true, true
	}
	return false
}

// slow takes one line of any form, reading more if necessary. It returns
// whether the line is a symbol.
func (s *Scanner) slow() bool {
	if !s.sniffed && !s.sniff() {
		return false
	}
	raw, ended, ok := s.rawLine()
	if !ok {
		return false
	}
	if s.lenient {
		return s.slowLenient(raw, ended)
	}
	var l Line
	bad := parseStrict(raw, &l)
	switch {
	case bad != "":
		s.reject(raw, bad)
	case !ended:
		s.fail(clip(raw), ErrTruncated) // the kernel ends every line: the name may go on
	}
	s.place(&l)
	return bad == "" && ended
}

// place notes where the parts of l stand. They are slices of the buffer, which
// end with its capacity.
func (s *Scanner) place(l *Line) {
	s.word = words{addr: l.Addr, typ: l.Type}
	s.word.name = cap(s.buf) - cap(l.Name)
	s.word.nameEnd = s.word.name + len(l.Name)
	if l.Module != nil {
		s.word.module = cap(s.buf) - cap(l.Module)
		s.word.moduleEnd = s.word.module + len(l.Module)
	}
}

func (s *Scanner) slowLenient(raw []byte, ended bool) bool {
	line := bytes.Trim(raw, " \t\r")
	if len(line) == 0 {
		return false
	}
	var l Line
	if bad := parseLenient(line, &l); bad != "" {
		s.reject(line, bad)
		return false
	}
	s.place(&l)
	if !ended {
		s.warn(Warning{Line: s.number, Text: clip(line), Reason: "no line end, the name may be cut short"})
	}
	return true
}

// reject deals with a line that is no symbol.
func (s *Scanner) reject(line []byte, bad string) {
	text := clip(line) // atEnd may overwrite the line
	switch {
	case s.parsed > 0 && incomplete(line) && s.atEnd():
		s.fail(text, ErrTruncated)
	case s.lenient:
		s.skipped++
		s.warn(Warning{Line: s.number, Text: text, Reason: bad, Skipped: true})
	case s.parsed == 0:
		s.fail(text, ErrNotKallsyms)
	default:
		s.fail(text, fmt.Errorf("%s: %w", bad, ErrSyntax))
	}
}

func (s *Scanner) warn(w Warning) {
	if len(s.warnings) < maxWarnings {
		s.warnings = append(s.warnings, w)
	}
}

// fail ends the scan with an error at the line taken last.
func (s *Scanner) fail(text string, err error) {
	s.done = true
	s.err = &LineError{Line: max(s.number, 1), Text: text, Err: err}
}

// rawLine returns the next line without its end, and whether it had one. At
// the end of the input or on an error it ends the scan and returns false.
func (s *Scanner) rawLine() (line []byte, ended, ok bool) {
	seen := 0
	for {
		i := bytes.IndexByte(s.buf[s.pos+seen:s.end], '\n')
		if n := seen + i; i >= 0 && n <= s.max {
			return s.cut(n, 1), true, true
		}
		seen = s.end - s.pos
		switch {
		case i >= 0 || seen > s.max:
			s.tooLong()
			return nil, false, false
		case s.fill():
		case s.err != nil || seen == 0:
			s.finish()
			return nil, false, false
		default:
			return s.cut(seen, 0), false, true
		}
	}
}

// cut takes n bytes as a line, and the bytes of its end.
func (s *Scanner) cut(n, end int) []byte {
	line := s.buf[s.pos : s.pos+n]
	s.pos += n + end
	s.number++
	return line
}

func (s *Scanner) tooLong() {
	text := clip(s.buf[s.pos:s.end])
	s.number++
	if s.parsed == 0 {
		s.fail(text, errors.Join(ErrNotKallsyms, ErrLineTooLong))
		return
	}
	s.fail(text, fmt.Errorf("%w (%d bytes)", ErrLineTooLong, s.max))
}

// finish ends the scan at the end of the input.
func (s *Scanner) finish() {
	s.done = true
	switch {
	case s.err != nil || s.parsed > 0:
	case s.number == 0:
		s.err = ErrEmpty
	default:
		s.err = ErrNotKallsyms
	}
}

// atEnd returns whether the line taken last is the last one.
func (s *Scanner) atEnd() bool {
	return s.pos == s.end && !s.fill() && s.err == nil
}

// sniff looks at the first bytes: gzip is unpacked, and a lenient scan leaves
// out a byte order mark. It returns false when that ends the scan.
func (s *Scanner) sniff() bool {
	s.sniffed = true
	for s.end-s.pos < 3 && s.fill() {
	}
	head := s.buf[s.pos:s.end]
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		return s.gunzip() && s.sniffText()
	}
	return s.sniffText()
}

func (s *Scanner) sniffText() bool {
	for s.end-s.pos < 3 && s.fill() {
	}
	if s.lenient && bytes.HasPrefix(s.buf[s.pos:s.end], []byte("\xef\xbb\xbf")) {
		s.pos += 3
	}
	return true
}

// gunzip puts a decompressor between the scanner and its input.
func (s *Scanner) gunzip() bool {
	var rest io.Reader = bytes.NewReader(slices.Clone(s.buf[s.pos:s.end]))
	if s.r != nil && !s.eof {
		rest = io.MultiReader(rest, s.r)
	}
	z, err := gzip.NewReader(rest)
	if err != nil {
		s.done, s.err = true, fmt.Errorf("unpack gzip: %w", err)
		return false
	}
	s.r, s.eof = z, false
	s.buf, s.pos, s.end = make([]byte, bufferSize), 0, 0
	return true
}

// fill reads more behind what is left and returns whether anything came. It
// moves what is left, which ends the validity of lines.
func (s *Scanner) fill() bool {
	if s.eof || s.err != nil {
		return false
	}
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.note(err)
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.note(io.ErrNoProgress)
	return false
}

// note records what a reader said besides its data.
func (s *Scanner) note(err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		s.eof = true
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.eof = true
		s.err = &LineError{Line: s.number + 1, Err: errors.Join(ErrTruncated, err)}
	default:
		s.eof = true
		s.err = fmt.Errorf("line %d: %w", s.number+1, err)
	}
}

// clip returns the beginning of a line for a message.
func clip(line []byte) string {
	if len(line) > maxQuoted {
		return string(line[:maxQuoted]) + "..."
	}
	return string(line)
}
