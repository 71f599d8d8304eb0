package pattern

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-quicktest/qt"
)

// globRegexp is the slow twin of compileGlob: the same glob as a regular expression. The
// glob has to be a valid one.
func globRegexp(glob string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); {
		i += writeRegexpItem(&b, glob[i:])
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

func writeRegexpItem(b *strings.Builder, s string) int {
	switch s[0] {
	case '*':
		b.WriteString(".*")
		return 1
	case '?':
		b.WriteString(".")
		return 1
	case '[':
		return writeRegexpClass(b, s)
	case '\\':
		_, n := utf8.DecodeRuneInString(s[1:])
		b.WriteString(regexp.QuoteMeta(s[1 : 1+n]))
		return 1 + n
	}
	_, n := utf8.DecodeRuneInString(s)
	b.WriteString(regexp.QuoteMeta(s[:n]))
	return n
}

// writeRegexpClass keeps the dashes that stand between two members and quotes all else.
func writeRegexpClass(b *strings.Builder, s string) int {
	i := 1
	b.WriteString("[")
	if s[i] == '!' || s[i] == '^' {
		b.WriteString("^")
		i++
	}
	for first := true; first || s[i] != ']'; first = false {
		i += writeRegexpMember(b, s[i:])
		if s[i] == '-' && s[i+1] != ']' {
			b.WriteString("-")
			i++
			i += writeRegexpMember(b, s[i:])
		}
	}
	b.WriteString("]")
	return i + 1
}

func writeRegexpMember(b *strings.Builder, s string) int {
	skip := 0
	if s[0] == '\\' {
		skip = 1
	}
	r, n := utf8.DecodeRuneInString(s[skip:])
	if strings.ContainsRune(`\]^-[`, r) {
		b.WriteString(`\`)
	}
	b.WriteRune(r)
	return skip + n
}

func FuzzGlobEqualsRegexp(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", "tcp_sendmsg"},
		{"tcp_*", "tcp_sendmsg"},
		{"*a*a*a*b", "aaaaaaaaaaaaaaaab"},
		{"aba*ba", "aba"},
		{"*[a-c]?[!x]*", "vfs_read"},
		{"[]a-]x*", "]xyz"},
		{`[!\]-\a]*\*`, "z*"},
		{"*é?", "aé\xff"},
		{"*??*?", "\xe4\xb8\xad"},
		{"?[!é]*", "\xe4\xb8x\xff"},
		{"*.[a-z]*.?", "foo.isra.0"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if checkText(piece{s: glob}) != nil {
			t.Skip()
		}
		g, serr := compileGlob(piece{s: glob})
		if serr != nil {
			t.Skip()
		}
		want := globRegexp(glob).MatchString(name)
		qt.Assert(t, qt.Equals(g.match(name), want), qt.Commentf("%q on %q", glob, name))
	})
}

func TestGlobManyStars(t *testing.T) {
	name := strings.Repeat("a", 1<<16)
	for _, glob := range []string{
		strings.Repeat("*a", 1000) + "*b",
		strings.Repeat("*[a-b]", 1000) + "*b",
		strings.Repeat("*?", 1000) + "*b",
		"*" + strings.Repeat("?", 1000) + "*b",
	} {
		p := mustParse(t, glob)
		qt.Check(t, qt.IsFalse(p.MatchName(name)))
	}
}

func FuzzRegexpEqualsPlain(f *testing.F) {
	for _, seed := range [][2]string{
		{"^tcp_(send|recv)msg$", "tcp_sendmsg"},
		{"sendmsg", "tcp_sendmsg"},
		{"(send)(?i)MSG", "sendmsg"},
		{"(?m)^a", "b\na"},
		{"^(?:ab)c+d", "abccd"},
		{"a\\x{FFFD}b", "a\xffb"},
		{"(?:abc)?d", "d"},
		{"^ab|cd", "xcd"},
		{"a{2,3}bc*", "aab"},
		{`\Aab(?:c|d)ef\z`, "abcef"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, src, name string) {
		x, serr := compileRegexp(piece{s: src})
		re, err := regexp.Compile(src)
		qt.Assert(t, qt.Equals(serr == nil, err == nil))
		if err != nil {
			return
		}
		qt.Assert(t, qt.Equals(x.match(name), re.MatchString(name)), qt.Commentf("%q on %q", src, name))
	})
}

func TestRegexpLiterals(t *testing.T) {
	for _, tc := range []struct {
		src, prefix string
		parts       []string
		whole       bool
	}{
		{"^tcp_(send|recv)msg$", "tcp_", []string{"tcp_"}, false},
		{"^tcp_", "tcp_", []string{"tcp_"}, false},
		{"(send|recv)msg", "", []string{"send", "recv"}, false},
		{"sendmsg", "", []string{"sendmsg"}, true},
		{"(sendmsg)", "", []string{"sendmsg"}, true},
		{"(?i)sendmsg", "", nil, false},
		{"(?m)^tcp", "", []string{"tcp"}, false},
		{"tcp_x.*|.*udp_y", "", []string{"tcp_x", "udp_y"}, false},
		{"(abc)+x?", "", []string{"abc"}, false},
		{"(abc){2,}", "", []string{"abc"}, false},
		{"(abc)?", "", nil, false},
		{"foo|", "", nil, false},
		{"a|b", "", nil, false},
		{"q0|w1|e2|r3|t4|y5|u6|i7|o8", "", nil, false},
		{"a\\x{FFFD}", "", nil, false},
		{".*", "", nil, false},
	} {
		x, serr := compileRegexp(piece{s: tc.src})
		qt.Assert(t, qt.IsTrue(serr == nil))
		qt.Check(t, qt.Equals(x.prefix, tc.prefix), qt.Commentf("%s", tc.src))
		qt.Check(t, qt.DeepEquals(x.parts, tc.parts), qt.Commentf("%s", tc.src))
		qt.Check(t, qt.Equals(x.whole, tc.whole), qt.Commentf("%s", tc.src))
	}
}
