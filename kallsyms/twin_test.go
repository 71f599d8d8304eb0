package kallsyms

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-quicktest/qt"
)

// The slow twin of Scanner: the grammar of a line as regular expressions.
var (
	strictLine = regexp.MustCompile(
		`^(?:([0-9a-fA-F]{1,16})| *\(null\)) ([A-Za-z?]) ([^\x00-\x20]+)(?:\t\[([^\x00-\x20]+)\])?$`)
	lenientLine = regexp.MustCompile(
		`^(?:([0-9a-fA-F]{1,16})|\(null\))[ \t]+([A-Za-z?])[ \t]+([^\x00-\x20]+)(?:[ \t]+\[([^\x00-\x20]+)\])?$`)
	cutLine = regexp.MustCompile(
		`(?s)^(?:[0-9a-fA-F]{1,16}|\(null\))(?:[ \t]+[A-Za-z?](?:[ \t]+[^ \t]+[ \t]+(?:\[(?:.*[^\]])?|\[\]))?)?$`)
	mappingName = regexp.MustCompile(`^(?:\$|\.L|L0)`)
)

// twinResult is what reader and twin must agree on.
type twinResult struct {
	Symbols          []Symbol
	Mapping, Skipped int
	Lines            int
	Warnings         int
	Err              string
}

// twin reads like a Scanner, in the slowest way that is easy to check.
type twin struct {
	o      Options
	r      twinResult
	parsed int
}

func readTwin(b []byte, o Options) twinResult {
	if o.Lenient {
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	w := twin{o: o}
	for w.r.Err == "" && len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		b = rest
		w.line(line, ended, len(rest) == 0)
	}
	switch {
	case w.r.Err != "":
	case w.r.Lines == 0:
		w.r.Err = "empty"
	case w.parsed == 0:
		w.r.Err = "not kallsyms"
	}
	return w.r
}

func (w *twin) line(line []byte, ended, last bool) {
	w.r.Lines++
	if len(line) > w.o.maxLine() {
		w.r.Err = "too long"
		return
	}
	form := strictLine
	if w.o.Lenient {
		form = lenientLine
		if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
			return
		}
	}
	match := form.FindSubmatch(line)
	cut := cutLine.Match(bytes.Trim(line, " \t\r")) && last && w.parsed > 0
	switch {
	case match == nil && cut, match != nil && !ended && !w.o.Lenient:
		w.r.Err = "truncated"
	case match == nil && w.o.Lenient:
		w.r.Skipped++
		w.r.Warnings++
	case match == nil && w.parsed == 0:
		w.r.Err = "not kallsyms"
	case match == nil:
		w.r.Err = "syntax"
	default:
		w.symbol(match, ended)
	}
}

func (w *twin) symbol(match [][]byte, ended bool) {
	w.parsed++
	if !ended {
		w.r.Warnings++
	}
	if mappingName.Match(match[3]) {
		w.r.Mapping++
		return
	}
	addr, _ := strconv.ParseUint(string(match[1]), 16, 64) // zero for (null)
	w.r.Symbols = append(w.r.Symbols,
		Symbol{Addr: addr, Type: match[2][0], Name: string(match[3]), Module: string(match[4])})
}

// kind names the errors that twins tell apart.
func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{ErrLineTooLong, "too long"},
		{ErrEmpty, "empty"},
		{ErrNotKallsyms, "not kallsyms"},
		{ErrTruncated, "truncated"},
		{ErrSyntax, "syntax"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// scanAll returns what a scanner finds.
func scanAll(s *Scanner) twinResult {
	var r twinResult
	for s.Scan() {
		r.Symbols = append(r.Symbols, s.Line().Symbol())
	}
	r.Mapping, r.Skipped, r.Lines, r.Err = s.Mapping(), s.Skipped(), s.Lines(), kind(s.Err())
	r.Warnings = len(s.Warnings())
	return r
}

// checkTwin compares every way to read b with the twin.
func checkTwin(tb testing.TB, b []byte, o Options) {
	tb.Helper()
	want := readTwin(b, o)
	want.Warnings = min(want.Warnings, maxWarnings)
	readers := map[string]io.Reader{
		"whole":   bytes.NewReader(b),
		"bytes":   iotest.OneByteReader(bytes.NewReader(b)),
		"halves":  iotest.HalfReader(bytes.NewReader(b)),
		"dataerr": iotest.DataErrReader(bytes.NewReader(b)),
	}
	qt.Check(tb, qt.DeepEquals(scanAll(newByteScanner(b, o)), want))
	for name, r := range readers {
		qt.Check(tb, qt.DeepEquals(scanAll(NewScanner(r, o)), want), qt.Commentf("%s", name))
	}
	checkTable(tb, b, o, want)
}

// checkTable compares the columns of a table with the twin.
func checkTable(tb testing.TB, b []byte, o Options, want twinResult) {
	tb.Helper()
	t, err := Parse(b, o)
	qt.Check(tb, qt.Equals(kind(err), want.Err))
	if t == nil {
		qt.Check(tb, qt.IsTrue(want.Err != "" && want.Err != "truncated"))
		return
	}
	var got []Symbol
	for i, s := range t.All() {
		qt.Check(tb, qt.Equals(t.Symbol(i), s))
		got = append(got, s)
	}
	qt.Check(tb, qt.DeepEquals(got, want.Symbols))
	checkLookups(tb, t)
}

// checkLookups compares both indexes with a walk over the table.
func checkLookups(tb testing.TB, t *Table) {
	tb.Helper()
	byName, byAddr := make(map[string][]int), make(map[uint64][]int)
	for i, s := range t.All() {
		byName[s.Name] = append(byName[s.Name], i)
		if s.Type|0x20 != 'a' && !t.hides(i) {
			byAddr[s.Addr] = append(byAddr[s.Addr], i)
		}
	}
	for name, want := range byName {
		qt.Check(tb, qt.DeepEquals(t.ByName(name), want))
	}
	for addr, want := range byAddr {
		qt.Check(tb, qt.DeepEquals(t.At(addr), want))
	}
	qt.Check(tb, qt.IsNil(t.ByName("no such name")))
	for _, s := range t.All() {
		checkNeighbours(tb, t, s)
	}
}

// checkNeighbours asks for addresses around s and compares with findSlowly.
func checkNeighbours(tb testing.TB, t *Table, s Symbol) {
	tb.Helper()
	if t.Len() > 200 {
		return // findSlowly is quadratic
	}
	for _, addr := range []uint64{s.Addr - 1, s.Addr, s.Addr + 1, s.Addr + 4095, math.MaxUint64} {
		l, ok := t.Find(addr)
		index, offset := findSlowly(t, addr)
		qt.Check(tb, qt.Equals(ok, index >= 0), qt.Commentf("%#x", addr))
		if ok && index >= 0 {
			qt.Check(tb, qt.Equals(l.Index, index))
			qt.Check(tb, qt.Equals(l.Offset, offset))
		}
	}
}

// findSlowly is the slow twin of Find.
func findSlowly(t *Table, addr uint64) (index int, offset uint64) {
	var group, above []int
	for i := range t.Len() {
		a := t.Addr(i)
		switch {
		case t.Type(i)|0x20 == 'a' || t.hides(i):
		case a <= addr && (len(group) == 0 || a >= t.Addr(group[0])):
			if len(group) > 0 && a > t.Addr(group[0]) {
				group = nil
			}
			group = append(group, i)
		case a > addr && (len(above) == 0 || a <= t.Addr(above[0])):
			if len(above) > 0 && a < t.Addr(above[0]) {
				above = nil
			}
			above = append(above, i)
		}
	}
	index = -1
	ended := false
	for _, i := range group {
		ended = ended || isTextEnd(t.Name(i))
		better := index < 0 || !Classify(t.Name(index)).IsFunction() && Classify(t.Name(i)).IsFunction()
		if IsText(t.Type(i)) && better {
			index = i
		}
	}
	if index < 0 {
		return -1, 0
	}
	start := t.Addr(index)
	bounded := false
	for _, i := range above {
		bounded = bounded || IsText(t.Type(i)) && t.Module(i) == t.Module(index)
	}
	if isTextEnd(t.Name(index)) {
		bounded = false
	}
	if bounded || addr == start || !ended && start>>12 == addr>>12 {
		return index, addr - start
	}
	return -1, 0
}

func FuzzRead(f *testing.F) {
	seeds := []string{
		"ffffffff81000000 T _stext\nffffffff81000010 t f\t[m]\n",
		"0000000000000000 A x\nffffffff81000000 W _text\nffffffff81000000 t __pfx_f.isra.0.cold\n",
		"\xef\xbb\xbfC0008000  T\tstext\r\n# note\r\n\r\nc0008100 t $a\nc0008100 ? f [m]",
		"          (null) A a\n(null) T b\nffffffff81000000 T é\x80\n",
		"ffffffff81000000 T a\nffffffff8100",
		"ffffffff81000000 T a\nffffffff81000000 T b\t[m",
		"ffffffff81000000 T a_name_that_is_longer_than_thirty_two_bytes\t[m]\nffffffff81000000 T b",
		"<html>\n",
		"ffffffff81000000 T .L\nffffffff81000000 T L0\nfffffffff81000000 T seventeen\n",
	}
	for _, s := range seeds {
		f.Add([]byte(s), false, uint16(0))
		f.Add([]byte(s), true, uint16(40))
	}
	f.Fuzz(func(t *testing.T, b []byte, lenient bool, maxLine uint16) {
		if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			return // gzip
		}
		checkTwin(t, b, Options{Lenient: lenient, MaxLine: int(maxLine)})
	})
}

// naive is how such a file is usually read: the twin for speed.
func naive(r io.Reader) ([]Symbol, error) {
	var list []Symbol
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 3 {
			return nil, ErrSyntax
		}
		addr, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			return nil, err
		}
		s := Symbol{Addr: addr, Type: f[1][0], Name: f[2]}
		if len(f) > 3 {
			s.Module = strings.Trim(f[3], "[]")
		}
		list = append(list, s)
	}
	return list, sc.Err()
}

func TestTwinsAgreeOnManySymbols(t *testing.T) {
	b := generate(bigList{symbols: 6000, modules: 20, bpf: 100})
	for _, lenient := range []bool{false, true} {
		checkTwin(t, b, Options{Lenient: lenient})
	}
	want, err := naive(bytes.NewReader(b))
	qt.Assert(t, qt.IsNil(err))
	tab, err := Parse(b, Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Len(), len(want)))
	for i, s := range want {
		qt.Assert(t, qt.Equals(tab.Symbol(i), s))
	}
}
