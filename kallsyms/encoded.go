package kallsyms

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Encoded is the kernel's own symbol table: the variables kallsyms_* as they
// lie in its memory or its image (scripts/kallsyms.c writes them, kernel/kallsyms.c
// reads them). It has vmlinux only.
type Encoded struct {
	// Count is kallsyms_num_syms.
	Count int
	// Order is the byte order of the kernel.
	Order binary.ByteOrder
	// Names is kallsyms_names: for each symbol the number of its tokens, one
	// byte or from v6.1 on two, and the tokens, one byte each. It may be longer.
	Names []byte
	// TokenTable is kallsyms_token_table, strings that end in zero; it may be
	// longer.
	TokenTable []byte
	// TokenIndex is kallsyms_token_index: where each of the 256 tokens begins
	// in TokenTable, two bytes each.
	TokenIndex []byte
	// Addr returns the address of symbol i. How the kernel keeps it differs too
	// much to be part of this.
	Addr func(i int) uint64
}

// maxEncodedName is KSYM_NAME_LEN (include/linux/kallsyms.h, v6.1 and later),
// the type letter included.
const maxEncodedName = 512

// errNoTable is wrapped with what is wrong.
var errNoTable = errors.New("not a symbol table of the kernel")

// Table decodes all symbols, in about a third of the time that reading them as
// text from a file takes. What it returns equals what [Read] makes of
// /proc/kallsyms up to the first module.
func (e *Encoded) Table() (*Table, error) {
	if e.Count == 0 {
		return nil, fmt.Errorf("%w: it has no symbols", errNoTable)
	}
	d := decoder{names: e.Names}
	if err := d.loadTokens(e); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTable, err)
	}
	b, mapping := newBuilder(), 0
	for i := range e.Count {
		end, err := d.next()
		if err != nil {
			return nil, fmt.Errorf("%w: symbol %d of %d: %w", errNoTable, i, e.Count, err)
		}
		if isMapping(d.text[1:end]) {
			mapping++
			continue
		}
		b.add(d.text[:], &words{addr: e.Addr(i), typ: d.text[0], name: 1, nameEnd: end})
	}
	t := b.finish()
	t.lines, t.mapping = e.Count, mapping
	return t, nil
}

// decoder takes one symbol after the other from the names.
type decoder struct {
	names  []byte
	length [256]uint16 // of each token
	short  [256]uint64 // its first bytes, the first in the lowest byte
	long   [256][]byte // all of it
	text   [2 * maxEncodedName]byte
}

// tokenRoom is how many bytes of a token are copied whatever its length. Nearly
// all are shorter: that costs less than deciding how many to copy.
const tokenRoom = 8

func (d *decoder) loadTokens(e *Encoded) error {
	if len(e.TokenIndex) != 2*len(d.long) {
		return fmt.Errorf("the token index has %d bytes, not %d", len(e.TokenIndex), 2*len(d.long))
	}
	for i := range d.long {
		at := int(e.Order.Uint16(e.TokenIndex[2*i:]))
		if at > len(e.TokenTable) {
			return fmt.Errorf("token %d is outside of the token table", i)
		}
		n := bytes.IndexByte(e.TokenTable[at:], 0)
		if n < 0 || n > maxEncodedName {
			return fmt.Errorf("token %d does not end", i)
		}
		text := e.TokenTable[at : at+n]
		if wordEnd(text, 0) != n {
			return fmt.Errorf("token %d is not text", i)
		}
		var room [tokenRoom]byte
		copy(room[:], text)
		d.length[i], d.short[i], d.long[i] = uint16(n), binary.LittleEndian.Uint64(room[:]), text
	}
	return nil
}

// next expands the next symbol into text and returns where it ends there.
func (d *decoder) next() (end int, err error) {
	codes, err := d.codes()
	if err != nil {
		return 0, err
	}
	for _, c := range codes {
		n := int(d.length[c])
		if end > maxEncodedName {
			break
		}
		binary.LittleEndian.PutUint64(d.text[end:], d.short[c])
		if n > tokenRoom {
			copy(d.text[end:], d.long[c])
		}
		end += n
	}
	switch {
	case end > maxEncodedName:
		return 0, fmt.Errorf("the name is longer than %d bytes", maxEncodedName)
	case end < 2, !isType(d.text[0]):
		return 0, fmt.Errorf("no type and name: %q", clip(d.text[:end]))
	}
	return end, nil
}

// codes cuts the tokens of one symbol off the names. From v6.1 on a length
// above 127 takes two bytes, the low seven bits first.
func (d *decoder) codes() ([]byte, error) {
	from, n := 1, 0
	if len(d.names) > 0 {
		n = int(d.names[0])
	}
	if n&0x80 != 0 && len(d.names) > 1 {
		from, n = 2, n&0x7f|int(d.names[1])<<7
	}
	if n == 0 || from+n > len(d.names) {
		return nil, errors.New("the names end here")
	}
	codes := d.names[from : from+n]
	d.names = d.names[from+n:]
	return codes, nil
}
