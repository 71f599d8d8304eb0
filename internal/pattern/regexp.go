package pattern

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// expression is a regular expression behind literals that every match must have; most names
// are turned away by those.
type expression struct {
	re     *regexp.Regexp
	prefix string   // every match begins with it
	parts  []string // every match contains one of them; nil: nothing is known
	whole  bool     // containing one of parts is enough
}

// compileRegexp returns the matcher of a regular expression, given without its slashes.
func compileRegexp(p piece) (*expression, *SyntaxError) {
	re, err := regexp.Compile(p.s)
	if err != nil {
		return nil, regexpError(p, err)
	}
	x := &expression{re: re}
	if tree, err := syntax.Parse(p.s, syntax.Perl); err == nil {
		tree = tree.Simplify()
		x.prefix = requiredPrefix(tree)
		x.parts = requiredParts(tree)
		_, x.whole = literalOf(tree)
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

// requiredPrefix returns the text at the start of every name that matches.
func requiredPrefix(re *syntax.Regexp) string {
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	lit, _ := literalOf(re.Sub[1])
	return lit
}

// requiredParts returns texts one of which is in every name that matches, or nil.
func requiredParts(re *syntax.Regexp) []string {
	if lit, ok := literalOf(re); ok {
		return []string{lit}
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return requiredParts(re.Sub[0])
	case syntax.OpConcat:
		return bestParts(re.Sub)
	case syntax.OpAlternate:
		return allParts(re.Sub)
	}
	return nil
}

// bestParts returns the parts of the one that turns away most names: the one whose shortest
// text is the longest.
func bestParts(subs []*syntax.Regexp) []string {
	var best []string
	for _, sub := range subs {
		if parts := requiredParts(sub); shortest(parts) > shortest(best) {
			best = parts
		}
	}
	return best
}

func shortest(parts []string) int {
	n := 0
	for i, part := range parts {
		if i == 0 || len(part) < n {
			n = len(part)
		}
	}
	return n
}

// maxParts is how many searches still pay against running the expression.
const maxParts = 8

// allParts returns the parts of all alternatives together.
func allParts(subs []*syntax.Regexp) []string {
	var all []string
	for _, sub := range subs {
		parts := requiredParts(sub)
		if parts == nil || len(all)+len(parts) > maxParts {
			return nil
		}
		all = append(all, parts...)
	}
	return all
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
	if slices.Contains(re.Rune, utf8.RuneError) {
		return "", false
	}
	return string(re.Rune), true
}

func (x *expression) literalPrefix() string { return x.prefix }

func (x *expression) match(name string) bool {
	if !strings.HasPrefix(name, x.prefix) || !x.hasPart(name) {
		return false
	}
	return x.whole || x.re.MatchString(name)
}

func (x *expression) hasPart(name string) bool {
	for _, part := range x.parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return x.parts == nil
}
