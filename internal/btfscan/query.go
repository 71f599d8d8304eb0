package btfscan

import (
	"fmt"
	"strings"
)

// TypeQuery is a type as the user writes it, ready to be compared with many.
// It is not safe for concurrent use.
//
// A type matches if it is spelled like the query, if it is once const, volatile,
// restrict and tags are dropped on both sides, or if one of its typedefs stands
// for it: "u32" and "unsigned int" both match a u32, and "unsigned long" is the
// same as "long unsigned int".
type TypeQuery struct {
	text string
	// For a name with stars, by far the most frequent query, tag is "struct",
	// "union", "enum" or "", name the rest. Else stars is -1 and whole compared.
	tag, name string
	stars     int
	whole     string
	memo      map[*BTF][]verdict
}

type verdict uint8

const (
	unasked verdict = iota
	differs
	matches
)

// NewTypeQuery prepares a C type such as "struct sk_buff *" or
// "int (*)(void *)".
func NewTypeQuery(text string) (*TypeQuery, error) {
	words, err := typeWords(text)
	if err != nil {
		return nil, fmt.Errorf("type %q: %w", text, err)
	}
	q := &TypeQuery{text: text, stars: -1, whole: strings.Join(words, " "), memo: make(map[*BTF][]verdict)}
	name := words
	for len(name) > 0 && name[len(name)-1] == "*" {
		name = name[:len(name)-1]
	}
	switch {
	case len(name) == 0:
		return nil, fmt.Errorf("type %q: no type name, write it as in C: \"struct file *\"", text)
	case len(name) == 1 && isWord(name[0]):
		q.name, q.stars = name[0], len(words)-1
		if isTag(q.name) {
			return nil, fmt.Errorf("type %q: %s of what name?", text, q.name)
		}
	case len(name) == 2 && isTag(name[0]) && isWord(name[1]):
		q.tag, q.name, q.stars = name[0], name[1], len(words)-2
	}
	return q, nil
}

// String returns the query as it was written.
func (q *TypeQuery) String() string { return q.text }

// MatchType is [TypeQuery.Match] for a single comparison.
func (b *BTF) MatchType(id uint32, want string) (bool, error) {
	q, err := NewTypeQuery(want)
	if err != nil {
		return false, err
	}
	return q.Match(b, id)
}

// Match says whether the type with this id in b is the one asked for. Answers
// are kept, one byte a type.
func (q *TypeQuery) Match(b *BTF, id uint32) (bool, error) {
	if id == 0 {
		return q.isVoid(q.stars), nil
	}
	owner := b.owner(id)
	if owner == nil {
		return false, &RefError{Ref: id, Reason: fmt.Sprintf("no such type, ids go up to %d", b.end()-1)}
	}
	memo := q.memo[owner]
	if memo == nil {
		memo = make([]verdict, owner.n)
		q.memo[owner] = memo
	}
	known := &memo[id-owner.first]
	if *known == unasked {
		ok, err := q.compare(owner, id)
		if err != nil {
			return false, err
		}
		*known = differs
		if ok {
			*known = matches
		}
	}
	return *known == matches, nil
}

// FindParam returns the index of the first parameter of a prototype that
// matches, or -1.
func (q *TypeQuery) FindParam(b *BTF, proto uint32) (int, error) {
	r, err := b.protoRecord(proto)
	if err != nil {
		return -1, err
	}
	n, _ := r.params()
	for i := range n {
		ok, err := q.Match(b, r.paramType(i))
		if err != nil {
			return -1, fmt.Errorf("parameter %d of prototype %d: %w", i, proto, err)
		}
		if ok {
			return i, nil
		}
	}
	return -1, nil
}

// MatchReturn says whether a prototype returns the type asked for.
func (q *TypeQuery) MatchReturn(b *BTF, proto uint32) (bool, error) {
	r, err := b.protoRecord(proto)
	if err != nil {
		return false, err
	}
	return q.Match(b, r.ref)
}

func (q *TypeQuery) compare(b *BTF, id uint32) (bool, error) {
	if q.stars >= 0 {
		return q.walk(b, id)
	}
	for _, style := range []declStyle{noQualifiers, noQualifiers | noTypedefs} {
		s, err := b.declaration(id, style)
		if err != nil {
			return false, err
		}
		words, err := typeWords(s)
		if err != nil {
			return false, nil // a name no query can spell
		}
		if strings.Join(words, " ") == q.whole {
			return true, nil
		}
	}
	return false, nil
}

// walk compares without spelling: one star for each pointer, then the name, or
// that of a typedef on the way.
func (q *TypeQuery) walk(b *BTF, id uint32) (bool, error) {
	from, stars := id, q.stars
	for range maxDepth {
		if id == 0 {
			return q.isVoid(stars), nil
		}
		r, err := b.record(id)
		if err != nil {
			return false, err
		}
		switch kind := r.kind(); {
		case isQualifier(kind):
		case kind == kindTypedef:
			if stars == 0 && q.tag == "" && q.name == r.name() {
				return true, nil
			}
		case kind == kindPtr:
			if stars == 0 {
				return false, nil
			}
			stars--
		default:
			return stars == 0 && q.sameName(&r), nil
		}
		id = r.ref
	}
	return false, cycleError(from)
}

// isVoid says whether void fits where this many stars are left.
func (q *TypeQuery) isVoid(stars int) bool {
	return stars == 0 && q.tag == "" && q.name == "void"
}

// sameName compares with the end of a walk.
func (q *TypeQuery) sameName(r *record) bool {
	switch r.kind() {
	case kindInt, kindFloat:
		return q.tag == "" && q.name == integerName(r.name())
	case kindStruct, kindUnion, kindEnum, kindEnum64, kindFwd:
		name := r.name()
		if name == "" {
			name = anonymous
		}
		return q.tag == r.tag() && q.name == name
	}
	return false
}
