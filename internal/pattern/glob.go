package pattern

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// glob is a compiled glob: segments between stars. Only the first is bound to the start and
// only the last to the end, and each has a fixed number of characters, so taking every other
// one at its leftmost place is right and never has to be undone.
type glob struct {
	prefix string // what every match begins with; all of it when exact
	min    int    // bytes that a match has at least
	exact  bool   // matches prefix and nothing else
	head   segment
	middle []segment
	tail   *segment // nil: no star, head is all

	hasItems bool // head or tail has other wildcards than stars
}

// segment is a run without stars: lit, or items where it has other wildcards.
type segment struct {
	lit   string
	items []item
}

type itemOp uint8

const (
	opLiteral itemOp = iota
	opAny
	opStar
	opClass
)

// item is one element of a glob.
type item struct {
	op     itemOp
	r      rune        // opLiteral
	not    bool        // opClass
	ranges []runeRange // opClass
	ascii  [2]uint64   // which characters below 128 match; set by newSegment
}

type runeRange struct{ lo, hi rune }

// compileGlob returns the matcher of a glob.
func compileGlob(p piece) (*glob, *SyntaxError) {
	items, err := globItems(p)
	if err != nil {
		return nil, err
	}
	return newGlob(items), nil
}

func globItems(p piece) ([]item, *SyntaxError) {
	var items []item
	for i := 0; i < len(p.s); {
		it, n, err := nextItem(p, i)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
		i += n
	}
	return items, nil
}

// nextItem reads the item at byte i and returns how many bytes it takes.
func nextItem(p piece, i int) (item, int, *SyntaxError) {
	switch p.s[i] {
	case '*':
		return item{op: opStar}, 1, nil
	case '?':
		return item{op: opAny}, 1, nil
	case '[':
		return classItem(p, i)
	case '\\':
		if i+1 == len(p.s) {
			return item{}, 0, p.fail(i, `nothing after \`, `type \\ for the character itself`)
		}
		r, n := utf8.DecodeRuneInString(p.s[i+1:])
		return item{r: r}, 1 + n, nil
	}
	if err := checkLiteral(p, i); err != nil {
		return item{}, 0, err
	}
	r, n := utf8.DecodeRuneInString(p.s[i:])
	return item{r: r}, n, nil
}

// classItem reads the class whose bracket is at byte i.
func classItem(p piece, i int) (item, int, *SyntaxError) {
	end := classEnd(p.s, i)
	if end < 0 {
		return item{}, 0, p.fail(i, "unclosed [", `close the class with ], or type \[ for the character itself`)
	}
	it := item{op: opClass}
	j := i + 1
	if p.s[j] == '!' || p.s[j] == '^' {
		it.not = true
		j++
	}
	if k := strings.Index(p.s[j:end], "[:"); k >= 0 {
		return item{}, 0, p.fail(j+k, "named classes do not exist", "type the characters, as in [a-z0-9_]")
	}
	for j < end {
		rr, n, err := classRange(p.to(end), j)
		if err != nil {
			return item{}, 0, err
		}
		it.ranges = append(it.ranges, rr)
		j += n
	}
	return it, end + 1 - i, nil
}

// classRange reads the member or range at byte j of a class that ends with the piece.
func classRange(p piece, j int) (runeRange, int, *SyntaxError) {
	lo, n := classMember(p.s[j:])
	rest := p.s[j+n:]
	if len(rest) < 2 || rest[0] != '-' {
		return runeRange{lo, lo}, n, nil
	}
	hi, m := classMember(rest[1:])
	if hi < lo {
		return runeRange{}, 0, p.fail(j, fmt.Sprintf("range %c-%c is backwards", lo, hi), fmt.Sprintf("type %c-%c", hi, lo))
	}
	return runeRange{lo, hi}, n + 1 + m, nil
}

// classMember reads one character of a class, escaped or not.
func classMember(s string) (rune, int) {
	if s[0] != '\\' {
		return utf8.DecodeRuneInString(s)
	}
	r, n := utf8.DecodeRuneInString(s[1:])
	return r, 1 + n
}

// classEnd returns where the class that opens at byte i closes, or -1.
func classEnd(s string, i int) int {
	j := i + 1
	if j < len(s) && (s[j] == '!' || s[j] == '^') {
		j++
	}
	if j < len(s) && s[j] == ']' {
		j++
	}
	for ; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case ']':
			return j
		}
	}
	return -1
}

// indexOutside returns the first byte that is one of chars and neither escaped nor in a
// class, or -1.
func indexOutside(s, chars string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			end := classEnd(s, i)
			if end < 0 {
				return -1
			}
			i = end
		case strings.IndexByte(chars, c) >= 0:
			return i
		}
	}
	return -1
}

// newGlob cuts the items at the stars. Stars side by side are one.
func newGlob(items []item) *glob {
	g := &glob{prefix: literal(items)}
	for _, it := range items {
		g.min += it.size()
	}
	first := nextStar(items)
	g.head = newSegment(items[:first])
	if first == len(items) {
		g.exact = g.head.items == nil
		return g
	}
	items = items[first+1:]
	for {
		n := nextStar(items)
		seg := newSegment(items[:n])
		if n == len(items) {
			g.tail = &seg
			g.hasItems = g.head.items != nil || seg.items != nil
			return g
		}
		if n > 0 {
			g.middle = append(g.middle, seg)
		}
		items = items[n+1:]
	}
}

// nextStar returns the index of the first star, or how many items there are.
func nextStar(items []item) int {
	for i, it := range items {
		if it.op == opStar {
			return i
		}
	}
	return len(items)
}

// literal returns the literal characters that the items begin with.
func literal(items []item) string {
	var b strings.Builder
	for _, it := range items {
		if it.op != opLiteral {
			break
		}
		b.WriteRune(it.r)
	}
	return b.String()
}

// literalItems is the inverse of literal.
func literalItems(s string) []item {
	items := make([]item, 0, len(s))
	for _, r := range s {
		items = append(items, item{r: r})
	}
	return items
}

// literalGlob matches s alone.
func literalGlob(s string) *glob { return newGlob(literalItems(s)) }

func newSegment(items []item) segment {
	lit := literal(items)
	if utf8.RuneCountInString(lit) == len(items) {
		return segment{lit: lit}
	}
	for i := range items {
		for c := range rune(utf8.RuneSelf) {
			if items[i].match(c) {
				items[i].ascii[c/64] |= 1 << (c % 64)
			}
		}
	}
	return segment{items: items}
}

// size returns how many bytes the item takes at least. A wildcard may be a stray byte.
func (it *item) size() int {
	switch it.op {
	case opStar:
		return 0
	case opLiteral:
		return utf8.RuneLen(it.r)
	}
	return 1
}

func (it *item) match(r rune) bool {
	switch it.op {
	case opLiteral:
		return it.r == r
	case opAny:
		return true
	}
	for _, rr := range it.ranges {
		if rr.lo <= r && r <= rr.hi {
			return !it.not
		}
	}
	return it.not
}

func (g *glob) literalPrefix() string { return g.prefix }

// matchesAll reports whether the glob is nothing but stars.
func (g *glob) matchesAll() bool {
	return g.min == 0 && g.tail != nil
}

// match takes time in proportion to the name and the glob multiplied, at worst.
func (g *glob) match(s string) bool {
	switch {
	case len(s) < g.min || !strings.HasPrefix(s, g.prefix):
		return false
	case g.exact:
		return len(s) == len(g.prefix)
	case g.tail == nil:
		rest, ok := g.head.cutPrefix(s)
		return ok && rest == ""
	case g.hasItems:
		return g.matchItems(s)
	}
	end := len(s) - len(g.tail.lit)
	if s[end:] != g.tail.lit {
		return false
	}
	return g.matchMiddle(s[len(g.prefix):end])
}

// matchItems does it where head or tail has other wildcards.
func (g *glob) matchItems(s string) bool {
	s, ok := g.head.cutPrefix(s)
	if !ok {
		return false
	}
	s, ok = g.tail.cutSuffix(s)
	return ok && g.matchMiddle(s)
}

func (g *glob) matchMiddle(s string) bool {
	for i := range g.middle {
		rest, ok := g.middle[i].cutFirst(s)
		if !ok {
			return false
		}
		s = rest
	}
	return true
}

// cutPrefix returns what follows the segment at the start of s.
func (g *segment) cutPrefix(s string) (string, bool) {
	if g.items == nil {
		return strings.CutPrefix(s, g.lit)
	}
	i := 0
	for k := range g.items {
		it := &g.items[k]
		if i < len(s) && s[i] < utf8.RuneSelf {
			if !it.mayBegin(s[i]) {
				return s, false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if n == 0 || !it.match(r) {
			return s, false
		}
		i += n
	}
	return s[i:], true
}

// cutSuffix returns what precedes the segment at the end of s.
func (g *segment) cutSuffix(s string) (string, bool) {
	if g.items == nil {
		return strings.CutSuffix(s, g.lit)
	}
	for i := len(g.items) - 1; i >= 0; i-- {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 || !g.items[i].match(r) {
			return s, false
		}
		s = s[:len(s)-n]
	}
	return s, true
}

// cutFirst returns what follows the leftmost place of the segment in s.
func (g *segment) cutFirst(s string) (string, bool) {
	if g.items == nil {
		i := strings.Index(s, g.lit)
		if i < 0 {
			return s, false
		}
		return s[i+len(g.lit):], true
	}
	for s != "" {
		n := 1
		if s[0] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(s)
		}
		if g.items[0].mayBegin(s[0]) {
			if rest, ok := g.cutPrefix(s); ok {
				return rest, true
			}
		}
		s = s[n:]
	}
	return s, false
}

// mayBegin reports whether the item can match a character that begins with the byte.
func (it *item) mayBegin(c byte) bool {
	return c >= utf8.RuneSelf || it.ascii[c/64]>>(c%64)&1 != 0
}
