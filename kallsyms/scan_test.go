package kallsyms

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-quicktest/qt"
)

func TestStrictLines(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"ffffffff81000000 T a", "ffffffff81000000 T a"},
		{"FFFFFFFF8100000A T a", "ffffffff8100000a T a"},
		{"ffffffffc0000000 t a\t[m]", "ffffffffc0000000 t a\t[m]"},
		{"c0008000 T a", "00000000c0008000 T a"},
		{"0 T a", "0000000000000000 T a"},
		{"(null) T a", "0000000000000000 T a"},
		{"          (null) A a\t[m]", "0000000000000000 A a\t[m]"},
		{"ffffffff81000000 ? a", "ffffffff81000000 ? a"},
		{"ffffffff81000000 t naïve\xff", "ffffffff81000000 t naïve\xff"},
		{"ffffffff81000000 t [a]", "ffffffff81000000 t [a]"},
		{"ffffffff81000000 t .a", "ffffffff81000000 t .a"},
		{"ffffffff81000000 t a\t[[]]", "ffffffff81000000 t a\t[[]]"},
	} {
		s := newByteScanner([]byte(c.in+"\n"), Options{})
		qt.Assert(t, qt.IsTrue(s.Scan()), qt.Commentf("%q: %v", c.in, s.Err()))
		qt.Check(t, qt.Equals(s.Line().Symbol().String(), c.want))
		qt.Check(t, qt.IsFalse(s.Scan()))
		qt.Check(t, qt.IsNil(s.Err()))
	}
}

func TestStrictRefuses(t *testing.T) {
	const good = "ffffffff81000000 T good\n"
	for _, c := range []struct{ line, want string }{
		{"", badAddress},
		{"\r", badAddress},
		{"# comment", badAddress},
		{" ffffffff81000000 T a", badAddress},
		{"0ffffffff81000000 T a", badAddress},
		{"0xffffffff81000000 T a", badType},
		{"ffffffff8100000g T a", badType},
		{"ffffffff81000000  T a", badType},
		{"ffffffff81000000 TT a", badType},
		{"ffffffff81000000 1 a", badType},
		{"ffffffff81000000 T a b", badModule},
		{"ffffffff81000000 T a\r", badModule},
		{"ffffffff81000000 T a [m]", badModule},
		{"ffffffff81000000 T a\tm", badModule},
		{"ffffffff81000000 T a\t[]", badModule},
		{"ffffffff81000000 T a\t[m] ", badModule},
		{"ffffffff81000000 T  a", badName},
		{"ffffffff81000000 T \x00", badName},
	} {
		tab, err := Parse([]byte(good+c.line+"\n"+good), Options{})
		qt.Check(t, qt.IsNil(tab))
		qt.Check(t, qt.ErrorIs(err, ErrSyntax), qt.Commentf("%q", c.line))
		qt.Check(t, qt.StringContains(fmt.Sprint(err), c.want+": "))
		qt.Check(t, qt.StringContains(fmt.Sprint(err), "line 2: "))
		qt.Check(t, qt.StringContains(fmt.Sprint(err), "Lenient"))
	}
}

func TestLenientSkips(t *testing.T) {
	in := "# head\n\nffffffff81000000   T\t a  \nwhat is this\nffffffff81000010 T b\tm\nffffffff81000020 T c   [m]\r\n"
	tab, err := Parse([]byte(in), Options{Lenient: true})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"a", "c"}))
	qt.Assert(t, qt.Equals(tab.Module(1), "m"))
	qt.Assert(t, qt.Equals(tab.Skipped(), 3))
	qt.Assert(t, qt.Equals(tab.Lines(), 6))
	qt.Assert(t, qt.DeepEquals(tab.Warnings(), []Warning{
		{Line: 1, Text: "# head", Reason: "a comment", Skipped: true},
		{Line: 4, Text: "what is this", Reason: badAddress, Skipped: true},
		{Line: 5, Text: "ffffffff81000010 T b\tm", Reason: badModule, Skipped: true},
	}))
}

func TestWarningsAreBounded(t *testing.T) {
	in := strings.Repeat("nothing\n", 1000) + "ffffffff81000000 T a\n"
	tab, err := Parse([]byte(in), Options{Lenient: true})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Skipped(), 1000))
	qt.Assert(t, qt.Equals(len(tab.Warnings()), maxWarnings))
}

func TestTruncated(t *testing.T) {
	const good = "ffffffff81000000 T good\n"
	for _, tail := range []string{
		"ffff", "ffffffff81000010", "ffffffff81000010 ", "ffffffff81000010 T", "ffffffff81000010 T ",
		"ffffffff81000010 T a\t[", "ffffffff81000010 T a\t[mod", "ffffffff81000010 T a\t[mod\n", "(null)\n",
	} {
		for _, lenient := range []bool{false, true} {
			tab, err := Parse([]byte(good+tail), Options{Lenient: lenient})
			qt.Assert(t, qt.ErrorIs(err, ErrTruncated), qt.Commentf("%q", tail))
			qt.Check(t, qt.DeepEquals(names(tab), []string{"good"}))
			qt.Check(t, qt.IsTrue(tab.Truncated()))
		}
	}
}

// A whole last line without its end may have lost the end of its name.
func TestLastLineWithoutEnd(t *testing.T) {
	in := []byte("ffffffff81000000 T good\nffffffff81000010 T vfs_re")
	tab, err := Parse(in, Options{})
	qt.Assert(t, qt.ErrorIs(err, ErrTruncated))
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"good"}))

	tab, err = Parse(in, Options{Lenient: true})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Len(), 2))
	qt.Assert(t, qt.Equals(tab.Warnings()[0].Line, 2))
}

func TestEmpty(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		tab, err := Read(strings.NewReader(""), Options{Lenient: lenient})
		qt.Check(t, qt.IsNil(tab))
		qt.Check(t, qt.ErrorIs(err, ErrEmpty))
		_, err = Parse(nil, Options{Lenient: lenient})
		qt.Check(t, qt.ErrorIs(err, ErrEmpty))
	}
	_, err := Parse([]byte("\n\n"), Options{Lenient: true})
	qt.Check(t, qt.ErrorIs(err, ErrNotKallsyms))
}

func TestVisit(t *testing.T) {
	in := []byte("ffffffff81000000 T a\nffffffff81000010 D b\nffffffff81000020 T c\nffffffffc0000000 t d\t[m]\n")
	var seen []int
	tab, err := Parse(in, Options{Visit: func(l *Line) Action {
		seen = append(seen, l.Number)
		switch {
		case l.Module != nil:
			return Stop
		case !IsText(l.Type):
			return Skip
		}
		return Keep
	}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(names(tab), []string{"a", "c"}))
	qt.Assert(t, qt.DeepEquals(seen, []int{1, 2, 3, 4}))
	qt.Assert(t, qt.IsTrue(tab.Stopped()))

	tab, err = Parse(in, Options{Visit: func(*Line) Action { return Skip }})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Len(), 0))
	qt.Assert(t, qt.Equals(tab.State(), Empty))
	qt.Assert(t, qt.IsFalse(tab.Stopped()))
}

// Stop must not read on: the rest of /proc/kallsyms is expensive.
func TestStopReadsNoFurther(t *testing.T) {
	head := strings.NewReader("ffffffff81000000 T a\nffffffffc0000000 t d\t[m]\n")
	never := iotest.ErrReader(errors.New("read too far"))
	tab, err := Read(io.MultiReader(head, never), Options{Visit: func(l *Line) Action {
		if l.Module != nil {
			return Stop
		}
		return Keep
	}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(tab.Len(), 1))
}

func TestReaderErrors(t *testing.T) {
	boom := errors.New("boom")
	head := "ffffffff81000000 T a\nffffffff81000010 T b\nffff"
	s := NewScanner(io.MultiReader(strings.NewReader(head), iotest.ErrReader(boom)), Options{})
	n := 0
	for s.Scan() {
		n++
	}
	qt.Assert(t, qt.Equals(n, 2))
	qt.Assert(t, qt.ErrorIs(s.Err(), boom))
	qt.Assert(t, qt.ErrorMatches(s.Err(), "line 3: boom"))
	qt.Assert(t, qt.IsFalse(s.Scan()))

	_, err := Read(io.MultiReader(strings.NewReader(head), iotest.ErrReader(boom)), Options{})
	qt.Assert(t, qt.ErrorMatches(err, "read kallsyms: line 3: boom"))
	_, err = Read(stuckReader{}, Options{})
	qt.Assert(t, qt.ErrorIs(err, io.ErrNoProgress))
	_, err = ReadFile(filepath.Join(t.TempDir(), "none"), Options{})
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
}

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

func TestMaxLine(t *testing.T) {
	line := func(n int) string { return "ffffffff81000000 T " + strings.Repeat("n", n-nameOff) + "\n" }
	for _, c := range []struct {
		limit, length int
		ok            bool
	}{
		{100, 100, true},
		{100, 101, false},
		{0, defaultMaxLine, true},
		{0, defaultMaxLine + 1, false},
		{1 << 30, limitMaxLine, true},
		{1 << 30, limitMaxLine + 1, false},
	} {
		in := line(30) + line(c.length) + line(30)
		for _, r := range []io.Reader{strings.NewReader(in), iotest.HalfReader(strings.NewReader(in))} {
			tab, err := Read(r, Options{MaxLine: c.limit})
			if c.ok {
				qt.Assert(t, qt.IsNil(err))
				qt.Check(t, qt.Equals(len(tab.Name(1)), c.length-nameOff))
				continue
			}
			qt.Check(t, qt.ErrorIs(err, ErrLineTooLong))
			qt.Check(t, qt.ErrorMatches(err, `read kallsyms: line 2: "ffff.*\.\.\.": line is longer than Options.MaxLine .*`))
		}
	}
}

func TestGzipStreams(t *testing.T) {
	text := generate(bigList{symbols: 5000, modules: 3, bpf: 10})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	must(z.Write(text))
	qt.Assert(t, qt.IsNil(z.Close()))
	want := readTwin(text, Options{})

	qt.Check(t, qt.DeepEquals(scanAll(newByteScanner(packed.Bytes(), Options{})), want))
	slow := iotest.OneByteReader(bytes.NewReader(packed.Bytes()))
	qt.Check(t, qt.DeepEquals(scanAll(NewScanner(slow, Options{})), want))

	// Cut in the middle: what could be unpacked is there, and the cut is told.
	tab, err := Parse(packed.Bytes()[:packed.Len()/2], Options{})
	qt.Assert(t, qt.ErrorIs(err, ErrTruncated))
	qt.Assert(t, qt.ErrorIs(err, io.ErrUnexpectedEOF))
	qt.Check(t, qt.IsTrue(tab.Truncated()))
	qt.Check(t, qt.IsTrue(tab.Len() > 1000 && tab.Len() < 4000), qt.Commentf("%d", tab.Len()))
	for i, s := range tab.All() {
		qt.Assert(t, qt.Equals(s, want.Symbols[i]))
	}

	_, err = Parse([]byte("\x1f\x8bnot gzip at all"), Options{})
	qt.Check(t, qt.ErrorMatches(err, "parse kallsyms: unpack gzip: .*"))
}

func must(_ int, err error) {
	if err != nil {
		panic(err)
	}
}

// Parse must not write to its input, which may be a read-only mapping.
func TestParseLeavesInputAlone(t *testing.T) {
	in := generate(bigList{symbols: 5000, modules: 3, bpf: 10})
	before := bytes.Clone(in)
	tab, err := Parse(in, Options{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(bytes.Equal(in, before)))
	want := names(tab)
	clear(in)
	qt.Assert(t, qt.DeepEquals(names(tab), want))
}

// Random bytes must end in a clear error, in bounded memory.
func TestGarbage(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		for name, r := range map[string]io.Reader{
			"random": &randomReader{left: 32 << 20, r: rand.New(rand.NewPCG(1, 1))},
			"zeros":  io.LimitReader(zeroReader{}, 32<<20),
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read(r, Options{Lenient: lenient})
			runtime.ReadMemStats(&after)
			qt.Check(t, qt.ErrorIs(err, ErrNotKallsyms), qt.Commentf("%s", name))
			used := after.TotalAlloc - before.TotalAlloc
			qt.Check(t, qt.IsTrue(used < 8<<20), qt.Commentf("%s: %d bytes", name, used))
		}
	}
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type randomReader struct {
	left int
	r    *rand.Rand
}

func (r *randomReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	r.left -= len(b)
	for i := range b {
		b[i] = byte(r.r.Uint32())
	}
	return len(b), nil
}

func TestScanAllocatesNothing(t *testing.T) {
	b := generate(bigList{symbols: 10_000, modules: 5, bpf: 100})
	allocs := testing.AllocsPerRun(3, func() {
		s := NewScanner(bytes.NewReader(b), Options{})
		n := 0
		for s.Scan() {
			n += len(s.Line().Name)
		}
		qt.Assert(t, qt.IsNil(s.Err()))
	})
	qt.Assert(t, qt.IsTrue(allocs <= 10), qt.Commentf("%v", allocs))
}

func TestHex(t *testing.T) {
	for c := range 256 {
		for k := range 8 {
			digits := []byte("0123abcD")
			digits[k] = byte(c)
			x := uint64(0)
			for i, d := range digits {
				x |= uint64(d) << (8 * i)
			}
			qt.Assert(t, qt.Equals(hexBad(x), !isHex(byte(c))), qt.Commentf("%q", digits))
			if !hexBad(x) {
				want, n := parseAddr(digits)
				qt.Assert(t, qt.Equals(n, 8))
				qt.Assert(t, qt.Equals(hex8(x), want))
			}
		}
	}
}

func TestWordEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		b := make([]byte, r.IntN(100))
		for i := range b {
			b[i] = byte(0x1e + r.IntN(200)*r.IntN(2) + r.IntN(8))
		}
		for i := 0; i <= len(b); i += 1 + r.IntN(20) {
			want := i
			for want < len(b) && b[want] > ' ' {
				want++
			}
			qt.Assert(t, qt.Equals(wordEnd(b, i), want), qt.Commentf("%q from %d", b, i))
		}
	}
}
