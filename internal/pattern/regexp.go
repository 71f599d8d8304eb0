package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// expression is a regular expression behind literals that every match must have; most names
// are turned away by those.
type expression struct {
	re     *regexp.Regexp
	prefix string // every match begins with it
	part   string // every match contains it
	whole  bool   // containing part is enough
}

// compileRegexp returns the matcher of a regular expression, given without its slashes.
func compileRegexp(p piece) (*expression, *SyntaxError) {
	re, err := regexp.Compile(p.s)
	if err != nil {
		return nil, regexpError(p, err)
	}
	x := &expression{re: re}
	tree, err := syntax.Parse(p.s, syntax.Perl)
	if err == nil {
		x.require(tree.Simplify())
	}
	return x, nil
}

func regexpError(p piece, err error) *SyntaxError {
	hint := "type the syntax of Go's regexp package: https://pkg.go.dev/regexp/syntax"
	var serr *syntax.Error
	if !errors.As(err, &serr) {
		return p.fail(0, err.Error(), hint)
	}
	if serr.Code == syntax.ErrInvalidPerlOp {
		hint = "type what must not match as an exclusion of its own, as in !/_bh$/"
	}
	at := max(strings.Index(p.s, serr.Expr), 0)
	return p.fail(at, "regular expression: "+serr.Code.String(), hint)
}

// require notes the literals without which the expression cannot match.
func (x *expression) require(re *syntax.Regexp) {
	if lit, ok := literalOf(re); ok {
		x.part, x.whole = lit, true
		return
	}
	if re.Op != syntax.OpConcat {
		return
	}
	for i, sub := range re.Sub {
		lit, ok := literalOf(sub)
		if ok && i == 1 && re.Sub[0].Op == syntax.OpBeginText {
			x.prefix = lit
		}
		if ok && len(lit) > len(x.part) {
			x.part = lit
		}
	}
}

// literalOf returns the text that alone matches. U+FFFD is none: it also stands for bytes
// that are no UTF-8.
func literalOf(re *syntax.Regexp) (string, bool) {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 {
		return "", false
	}
	lit := string(re.Rune)
	return lit, !strings.ContainsRune(lit, utf8.RuneError)
}

func (x *expression) literalPrefix() string { return x.prefix }

func (x *expression) match(name string) bool {
	if !strings.HasPrefix(name, x.prefix) || !strings.Contains(name, x.part) {
		return false
	}
	return x.whole || x.re.MatchString(name)
}
