package pattern

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-quicktest/qt"
)

func TestParseFile(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"lines", "tcp_*\n!tcp_x\nkvm:vmx_*\n", []string{"tcp_*", "!tcp_x", "kvm:vmx_*"}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"blank lines", "\n \n\t\na\n\n", []string{"a"}},
		{"blanks around", "  a\t\n", []string{"a"}},
		{"CRLF", "a\r\n\r\nb\r\n", []string{"a", "b"}},
		{"byte order mark", "\ufeffa\nb\n", []string{"a", "b"}},
		{"byte order mark before comment", "\ufeff# c\na\n", []string{"a"}},
		{"comments", "# c\n#c\n#\n##1\n  # c\n#!x\n", nil},
		{"BTF ids", "#12\n  #13\nnf_tables#14\n", []string{"#12", "#13", "nf_tables#14"}},
		{"comment after a pattern", "a # c\nb\t#c\n#12 # c\nc #\n", []string{"a", "b", "#12", "c"}},
		{"hash in an expression", "/a#b/\n", []string{"/a#b/"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps, err := ParseFile(strings.NewReader(tc.in), "f")
			qt.Assert(t, qt.IsNil(err))
			var got []string
			for _, p := range ps {
				got = append(got, p.String())
			}
			qt.Assert(t, qt.DeepEquals(got, tc.want))
		})
	}
}

func TestParseFileErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"one", "a\n\ntcp_[\n", `f:3: parse pattern "tcp_[": column 5: unclosed [; close the class with ], or type \[ for the character itself`},
		{"two", "!!x\na\n#0\n", `f:1: parse pattern "!!x": column 2: second !; type one ! to exclude, none to include
f:3: parse pattern "#0": column 2: BTF id 0 is void; type the id of a function in decimal, as in #1234`},
		{"two on a line", "a b\n", `f:1: parse pattern "a b": column 2: blank in a pattern; give each pattern as its own argument, or on its own line of a file`},
		{"comment that begins with a digit", "#2 things\n", `f:1: parse pattern "#2 things": column 3: blank after a BTF id; type #1234 alone; a comment in a file has a blank after its #`},
		{"byte order mark later", "a\n\ufeffb\n", `f:2: parse pattern "\ufeffb": column 1: unprintable character U+FEFF; remove it`},
		{"long line", "a\n" + strings.Repeat("x", maxLine+1), "f:2: line is longer than 65536 bytes: bufio.Scanner: token too long; give one pattern on each line"},
		{"binary", "\x7fELF\x00\x00", `f:1: parse pattern "\x7fELF\x00\x00": column 1: control character '\x7f'; remove it`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps, err := ParseFile(strings.NewReader(tc.in), "f")
			qt.Check(t, qt.IsNil(ps))
			qt.Assert(t, qt.IsNotNil(err))
			qt.Assert(t, qt.Equals(err.Error(), tc.want))
		})
	}
}

func TestParseFileManyErrors(t *testing.T) {
	_, err := ParseFile(strings.NewReader(strings.Repeat("[\n", 100)), "f")
	qt.Assert(t, qt.IsNotNil(err))
	lines := strings.Split(err.Error(), "\n")
	qt.Assert(t, qt.HasLen(lines, maxFileErrors+1))
	qt.Assert(t, qt.Equals(lines[maxFileErrors], "f: more than 10 wrong lines; give a file with one pattern on each line"))
	var serr *SyntaxError
	qt.Assert(t, qt.IsTrue(errors.As(err, &serr)))
}

func TestParseFileReadError(t *testing.T) {
	r := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	_, err := ParseFile(r, "f")
	qt.Assert(t, qt.ErrorIs(err, io.ErrUnexpectedEOF))
	qt.Assert(t, qt.ErrorMatches(err, "f:2: read patterns: unexpected EOF"))
}

func FuzzParseFile(f *testing.F) {
	f.Add("\ufeff# c\r\ntcp_* # c\r\n#12\n!x\n")
	f.Add("#2 x\n[\n")
	f.Fuzz(func(t *testing.T, in string) {
		ps, err := ParseFile(strings.NewReader(in), "f")
		if err != nil {
			return
		}
		var b strings.Builder
		for _, p := range ps {
			b.WriteString(p.String() + "\n")
		}
		again, err := ParseFile(strings.NewReader(b.String()), "f")
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(again, len(ps)))
	})
}
