package btfscan

import "strings"

// name returns the string at off, which continues the base's. It is "" for
// offsets outside, which [Parse] has refused for names of types.
func (b *BTF) name(off uint32) string {
	s, _ := b.lookup(off)
	return s
}

// lookup returns the string at off, without copying.
func (b *BTF) lookup(off uint32) (string, bool) {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	off -= b.strOff
	if uint64(off) >= uint64(len(b.str)) {
		return "", off == 0
	}
	s := b.str[off:]
	// Parse has seen the NUL at the end of the section.
	return s[:strings.IndexByte(s, 0)], true
}

// hasName says whether the string at off is name, without looking for its end.
func (b *BTF) hasName(off uint32, name string) bool {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	off -= b.strOff
	if uint64(off)+uint64(len(name)) >= uint64(len(b.str)) {
		return false
	}
	s := b.str[off:]
	return s[:len(name)] == name && s[len(name)] == 0
}
