package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError says where and why a text is no pattern.
type SyntaxError struct {
	Pattern string // as typed, with the exclusion mark
	Column  int    // where, in bytes, from 1
	Msg     string // what is wrong
	Hint    string // what to type instead
}

// Error returns the pattern, the column, what is wrong and what to type.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("parse pattern %s: column %d: %s; %s", quote(e.Pattern), e.Column, e.Msg, e.Hint)
}

// quote keeps the text as typed, so that columns fit, unless it would disturb a terminal.
func quote(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return `"` + s + `"`
}

// piece is a part of the typed text that remembers where it stood.
type piece struct {
	s  string
	at int
}

func (p piece) from(i int) piece { return piece{p.s[i:], p.at + i} }
func (p piece) to(i int) piece   { return piece{p.s[:i], p.at} }

// fail returns an error at byte i of the piece. Parse adds the whole pattern.
func (p piece) fail(i int, msg, hint string) *SyntaxError {
	return &SyntaxError{Column: p.at + i + 1, Msg: msg, Hint: hint}
}

// checkText refuses what stands in no name and no pattern: blanks, unprintable characters
// and bytes that are not UTF-8.
func checkText(t piece) *SyntaxError {
	for i, r := range t.s {
		switch {
		case r == utf8.RuneError:
			return t.fail(i, "invalid UTF-8", "type the name as kallsyms prints it")
		case r == ' ' || r == '\t':
			return t.blank(i)
		case unicode.IsControl(r):
			return t.fail(i, fmt.Sprintf("control character %q", r), "remove it")
		case !unicode.IsPrint(r):
			return t.fail(i, fmt.Sprintf("unprintable character %U", r), "remove it")
		}
	}
	return nil
}

// blank explains a blank. After a name it may be how kallsyms and stack traces print modules.
func (p piece) blank(i int) *SyntaxError {
	if strings.HasPrefix(p.s, "#") {
		return p.fail(i, "blank after a BTF id", "type #1234 alone; a comment in a file has a blank after its #")
	}
	if mod, ok := strings.CutPrefix(p.s[i:], " ["); ok && strings.HasSuffix(mod, "]") {
		name, _, _ := strings.Cut(p.s[:i], "/")
		return p.fail(i, "module after a name", "type "+strings.TrimSuffix(mod, "]")+":"+name)
	}
	return p.fail(i, "blank in a pattern", "give each pattern as its own argument, or on its own line of a file")
}

// checkLiteral refuses an unescaped character that stands in no kernel function name and
// shows that something else was meant.
func checkLiteral(p piece, i int) *SyntaxError {
	c := p.s[i]
	var hint string
	switch c {
	case '(', ')':
		hint = parenHint(p.s)
	case '^', '|', '{', '}':
		hint = fmt.Sprintf("type a regular expression between slashes: /%s/", p.s)
	case ',', ';':
		hint = "give each pattern as its own argument, or on its own line of a file"
	case '\'', '"', '`':
		hint = "type the name without quotes"
	case '/':
		hint = "type a regular expression with a slash before and after it, as in /^tcp_/"
	case '!':
		hint = "type an exclusion with the ! first, and in a class as in [!a-z]"
	case ']':
		hint = `open the class with [, or type \] for the character itself`
	case '%':
		hint = fmt.Sprintf("type %s; returns are chosen by --mechanism", p.s[:i])
	case ':':
		return secondColon(p, i)
	case '#':
		hint = "type a BTF id as #1234 or nf_tables#77"
	case '+':
		hint = "type one offset, as in vfs_read+0x10"
	default:
		return nil
	}
	return p.fail(i, fmt.Sprintf("%q stands in no function name", c), hint)
}

func parenHint(s string) string {
	if name, ok := strings.CutSuffix(s, "()"); ok && name != "" {
		return "type " + name
	}
	return fmt.Sprintf("type a regular expression between slashes: /%s/", s)
}

func secondColon(p piece, i int) *SyntaxError {
	if strings.Contains(p.s, "::") {
		return p.fail(i, `"::" stands in no function name`, "type the mangled name as kallsyms prints it, or parts of it, as in *core*fmt*")
	}
	return p.fail(i, "second colon", "type one module and one name, as in kvm:vmx_*")
}
