package btfscan

import (
	"fmt"
	"strconv"
)

// TypeName returns the C spelling of a type: "struct sk_buff *", "const char *",
// "int (*)(struct foo *, int)". Typedefs keep their names, structs without a
// name are "struct {...}", type tags are left out.
//
// It fails for ids that are no type and for types nested deeper than 32 levels,
// which [ErrCycle] stands for.
func (b *BTF) TypeName(id uint32) (string, error) {
	return b.declaration(id, 0)
}

// Prototype returns the C prototype of f with the names of its arguments:
// "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)".
func (b *BTF) Prototype(f Func) (string, error) {
	s, err := b.AppendPrototype(nil, f)
	return string(s), err
}

// AppendPrototype appends what [BTF.Prototype] returns to dst, for those who
// want many. After an error it returns dst as it was.
func (b *BTF) AppendPrototype(dst []byte, f Func) ([]byte, error) {
	_, err := b.protoRecord(f.Proto)
	out := dst
	if err == nil {
		out, err = b.appendDeclaration(dst, f.Proto, f.Name, paramNames)
	}
	if err != nil {
		return dst, fmt.Errorf("prototype of %s (BTF type %d): %w", f.Name, f.ID, err)
	}
	return out, nil
}

func (b *BTF) declaration(id uint32, style declStyle) (string, error) {
	s, err := b.appendDeclaration(nil, id, "", style)
	return string(s), err
}

func (b *BTF) appendDeclaration(dst []byte, id uint32, name string, style declStyle) ([]byte, error) {
	d := declarator{b: b, out: dst, start: len(dst), style: style}
	d.declare(id, name, 0)
	if d.err != nil {
		return nil, d.err
	}
	return d.out, nil
}

// declStyle changes what a declarator writes.
type declStyle uint8

const (
	// paramNames writes the names of the outermost parameters.
	paramNames declStyle = 1 << iota
	// noQualifiers leaves out const, volatile and restrict.
	noQualifiers
	// noTypedefs writes what typedefs stand for.
	noTypedefs
)

// declarator writes C declarations. As in C, a type has a part before the name
// and one behind it. The first error stays.
type declarator struct {
	b     *BTF
	out   []byte
	start int // of the declaration in out
	err   error
	steps int
	style declStyle
	// twoParts is set when a type has a part behind the name.
	twoParts bool
}

// maxSteps bounds the work for one declaration: prototypes that take prototypes
// grow exponentially with depth.
const maxSteps = 1 << 14

// next returns the type with this id, or false after an error.
func (d *declarator) next(id uint32, depth int) (record, bool) {
	if d.err != nil {
		return record{}, false
	}
	d.steps++
	switch {
	case depth > maxDepth:
		d.err = cycleError(id)
		return record{}, false
	case d.steps > maxSteps:
		d.err = &RefError{Ref: id, Reason: "declaration too long to spell"}
		return record{}, false
	}
	if id == 0 {
		return record{}, true
	}
	r, err := d.b.record(id)
	d.err = err
	return r, err == nil
}

func (d *declarator) declare(id uint32, name string, depth int) {
	outer := d.twoParts
	d.twoParts = false
	d.before(id, depth)
	if name != "" || d.twoParts && d.plainKind(id, depth) == kindFuncProto {
		d.space()
		d.out = append(d.out, name...)
	}
	if d.twoParts {
		d.behind(id, depth)
	}
	d.twoParts = outer
}

// before writes what stands before the name.
func (d *declarator) before(id uint32, depth int) {
	r, ok := d.next(id, depth)
	if !ok {
		return
	}
	switch kind := r.kind(); kind {
	case kindUnknown:
		d.word("void")
	case kindInt, kindFloat:
		d.word(r.name())
	case kindStruct, kindUnion, kindEnum, kindEnum64, kindFwd:
		d.tagged(&r)
	case kindTypedef:
		if d.style&noTypedefs != 0 {
			d.before(r.ref, depth+1)
			return
		}
		d.word(r.name())
	case kindPtr:
		d.before(r.ref, depth+1)
		d.space()
		if d.parenthesised(r.ref, depth+1) {
			d.out = append(d.out, '(')
		}
		d.out = append(d.out, '*')
	case kindConst, kindVolatile, kindRestrict, kindTypeTag:
		d.qualified(&r, depth)
	case kindArray:
		d.twoParts = true
		d.before(r.word(0), depth+1)
	case kindFuncProto:
		d.twoParts = true
		d.before(r.ref, depth+1)
	default:
		d.err = &RefError{Ref: id, Reason: "kind " + kindName(kind) + ", not a data type"}
	}
}

// qualified writes a qualifier where it belongs: behind a pointer, before
// anything else.
func (d *declarator) qualified(r *record, depth int) {
	word := qualifier(r.kind())
	switch {
	case word == "" || d.style&noQualifiers != 0:
		d.before(r.ref, depth+1)
	case d.isPointer(r.ref, depth+1):
		d.before(r.ref, depth+1)
		d.space()
		d.out = append(d.out, word...)
	default:
		d.word(word)
		d.before(r.ref, depth+1)
	}
}

// qualifier returns the word for a kind, "" for type tags.
func qualifier(kind uint32) string {
	switch kind {
	case kindConst:
		return "const"
	case kindVolatile:
		return "volatile"
	case kindRestrict:
		return "restrict"
	}
	return ""
}

// behind writes what stands behind the name.
func (d *declarator) behind(id uint32, depth int) {
	r, ok := d.next(id, depth)
	if !ok {
		return
	}
	switch r.kind() {
	case kindTypedef:
		if d.style&noTypedefs != 0 {
			d.behind(r.ref, depth+1)
		}
	case kindConst, kindVolatile, kindRestrict, kindTypeTag:
		d.behind(r.ref, depth+1)
	case kindPtr:
		if d.parenthesised(r.ref, depth+1) {
			d.out = append(d.out, ')')
		}
		d.behind(r.ref, depth+1)
	case kindArray:
		d.out = append(d.out, '[')
		d.out = strconv.AppendUint(d.out, uint64(r.word(2)), 10)
		d.out = append(d.out, ']')
		d.behind(r.word(0), depth+1)
	case kindFuncProto:
		d.params(&r, depth)
		d.behind(r.ref, depth+1)
	}
}

func (d *declarator) params(r *record, depth int) {
	named := d.style&paramNames != 0
	d.style &^= paramNames
	n, variadic := r.params()
	d.out = append(d.out, '(')
	for i := 0; i < n && d.err == nil; i++ {
		if i > 0 {
			d.out = append(d.out, ", "...)
		}
		name := ""
		if named {
			name, d.err = r.paramName(i)
		}
		d.declare(r.paramType(i), name, depth+1)
	}
	switch {
	case variadic && n > 0:
		d.out = append(d.out, ", ...)"...)
	case variadic:
		d.out = append(d.out, "...)"...)
	case n == 0:
		d.out = append(d.out, "void)"...)
	default:
		d.out = append(d.out, ')')
	}
}

// tagged writes "struct name" and its likes.
func (d *declarator) tagged(r *record) {
	d.word(r.tag())
	name := r.name()
	if name == "" {
		name = anonymous
	}
	d.word(name)
}

// tag returns the keyword before the name of a struct, union or enum.
func (r *record) tag() string {
	switch kind := r.kind(); {
	case kind == kindUnion, kind == kindFwd && infoFlag(r.info):
		return "union"
	case kind == kindEnum, kind == kindEnum64:
		return "enum"
	}
	return "struct"
}

// parenthesised says whether a pointer to this type needs brackets.
func (d *declarator) parenthesised(id uint32, depth int) bool {
	kind := d.plainKind(id, depth)
	return kind == kindArray || kind == kindFuncProto
}

func (d *declarator) isPointer(id uint32, depth int) bool {
	return d.plainKind(id, depth) == kindPtr
}

// plainKind returns the kind below qualifiers, and below typedefs if they are
// not written.
func (d *declarator) plainKind(id uint32, depth int) uint32 {
	for ; ; depth++ {
		r, ok := d.next(id, depth)
		if !ok {
			return kindUnknown
		}
		kind := r.kind()
		if !isQualifier(kind) && (kind != kindTypedef || d.style&noTypedefs == 0) {
			return kind
		}
		id = r.ref
	}
}

// word writes s, apart from what comes before.
func (d *declarator) word(s string) {
	if n := len(d.out); n > d.start && d.out[n-1] != '(' && d.out[n-1] != ' ' {
		d.out = append(d.out, ' ')
	}
	d.out = append(d.out, s...)
}

// space sets a name or a star apart from a word, but not from a star.
func (d *declarator) space() {
	if n := len(d.out); n > d.start && d.out[n-1] != '*' && d.out[n-1] != '(' && d.out[n-1] != ' ' {
		d.out = append(d.out, ' ')
	}
}
