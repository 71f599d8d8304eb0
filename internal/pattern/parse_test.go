package pattern

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

var update = flag.Bool("update", false, "rewrite the results in the golden files")

// TestParse compares with testdata/TestParse: a quoted pattern and a tab before what Parse
// makes of it on each line.
func TestParse(t *testing.T) {
	for _, tc := range []struct {
		file string
		ok   bool
	}{
		{"testdata/TestParse/valid.golden", true},
		{"testdata/TestParse/wrong.golden", false},
	} {
		data, err := os.ReadFile(tc.file)
		qt.Assert(t, qt.IsNil(err))
		var got strings.Builder
		for line := range strings.Lines(string(data)) {
			text := quotedText(t, line)
			p, err := Parse(text)
			qt.Check(t, qt.Equals(err == nil, tc.ok), qt.Commentf("%q: %v", text, err))
			fmt.Fprintf(&got, "%q\t%s\n", text, describe(p, err))
		}
		if *update {
			qt.Assert(t, qt.IsNil(os.WriteFile(tc.file, []byte(got.String()), 0o644)))
			continue
		}
		qt.Check(t, qt.Equals(got.String(), string(data)))
	}
}

func quotedText(t *testing.T, line string) string {
	t.Helper()
	quoted, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
	text, err := strconv.Unquote(quoted)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", line))
	return text
}

// describe writes what is set in the pattern.
func describe(p Pattern, err error) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString(p.Kind.String())
	if p.Exclude {
		b.WriteString(" exclude")
	}
	if p.Module != "" {
		fmt.Fprintf(&b, " module=%s", p.Module)
	}
	if p.Name != "" {
		fmt.Fprintf(&b, " name=%s", p.Name)
	}
	if name, ok := p.Exact(); ok {
		fmt.Fprintf(&b, " exact=%s", name)
	}
	if p.HasOffset {
		fmt.Fprintf(&b, " offset=%d", p.Offset)
	}
	if p.Kind == BTFID {
		fmt.Fprintf(&b, " object=%s id=%d", p.Object, p.ID)
	}
	if p.Kind == Addr {
		fmt.Fprintf(&b, " addr=%#x", p.Addr)
	}
	return b.String()
}

func TestSyntaxErrorParts(t *testing.T) {
	_, err := Parse("!kvm:tcp_[a-")
	var serr *SyntaxError
	qt.Assert(t, qt.IsTrue(errors.As(err, &serr)))
	qt.Assert(t, qt.Equals(*serr, SyntaxError{
		Pattern: "!kvm:tcp_[a-",
		Column:  10,
		Msg:     "unclosed [",
		Hint:    `close the class with ], or type \[ for the character itself`,
	}))
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"testdata/TestParse/valid.golden", "testdata/TestParse/wrong.golden"} {
		data, err := os.ReadFile(file)
		qt.Assert(f, qt.IsNil(err))
		for line := range strings.Lines(string(data)) {
			quoted, _, _ := strings.Cut(line, "\t")
			text, err := strconv.Unquote(quoted)
			qt.Assert(f, qt.IsNil(err))
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		checkPattern(t, text, &p)
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	var serr *SyntaxError
	qt.Assert(t, qt.IsTrue(errors.As(err, &serr)))
	qt.Assert(t, qt.Equals(serr.Pattern, text))
	qt.Assert(t, qt.IsTrue(1 <= serr.Column && serr.Column <= len(text)+1), qt.Commentf("%v", err))
	qt.Assert(t, qt.Not(qt.Equals(serr.Msg, "")))
	qt.Assert(t, qt.Not(qt.Equals(serr.Hint, "")))
}

func checkPattern(t *testing.T, text string, p *Pattern) {
	t.Helper()
	qt.Assert(t, qt.Equals(p.String(), text))
	again, err := Parse(p.String())
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(describe(again, nil), describe(*p, nil)))
	if name, ok := p.Exact(); ok {
		qt.Assert(t, qt.IsTrue(p.MatchName(name)))
		qt.Assert(t, qt.IsFalse(p.MatchName(name+"x")))
	}
	qt.Assert(t, qt.IsTrue(!p.VmlinuxOnly() || p.MatchModule("") && !p.MatchModule("kvm")))
	_, err = NewSet([]Pattern{*p}, SetOptions{})
	qt.Assert(t, qt.IsNil(err))
}
