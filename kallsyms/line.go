package kallsyms

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080

	eightFs = 0x6666666666666666 // "ffffffff"
	addrEnd = 16                 // the kernel pads with zeros to the width of a pointer
	nameOff = addrEnd + 3        // blank, type, blank
)

// words is where the parts of a line stand in the buffer. Numbers instead of
// slices spare the garbage collector's write barriers on every line.
type words struct {
	addr              uint64
	typ               byte
	name, nameEnd     int
	module, moduleEnd int // equal for vmlinux
}

// fast takes the next line if it is in the buffer as a whole and has the form
// that a 64-bit kernel prints: 16 digits, blank, type, blank, name, and for a
// module a tab and its name in brackets. Otherwise it takes nothing and
// returns false. It works on eight bytes at a time; slow is its equal.
func (s *Scanner) fast() bool {
	b := s.buf[s.pos:s.end]
	if len(b) < nameOff+2 || !s.sniffed {
		return false
	}
	addr := uint64(0xffffffff) << 32 // nearly every kernel address
	hi, lo := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if hi != eightFs {
		if hexBad(hi) {
			return false
		}
		addr = hex8(hi) << 32
	}
	if hexBad(lo) || b[addrEnd] != ' ' || b[addrEnd+2] != ' ' || !isType(b[addrEnd+1]) {
		return false
	}
	name := wordEnd(b, nameOff)
	end := name
	if name >= len(b) || name == nameOff {
		return false
	}
	w := &s.word
	w.module, w.moduleEnd = 0, 0
	if b[name] != '\n' {
		if end = moduleEnd(b, name); end < 0 {
			return false
		}
		w.module, w.moduleEnd = s.pos+name+2, s.pos+end-1
	}
	if end > s.max {
		return false
	}
	w.addr, w.typ = addr|hex8(lo), b[addrEnd+1]
	w.name, w.nameEnd = s.pos+nameOff, s.pos+name
	s.pos += end + 1
	s.number++
	return true
}

// moduleEnd returns where the line ends whose name ends at i, if a tab and a
// module in brackets follow and nothing else; otherwise -1.
func moduleEnd(b []byte, i int) int {
	end := wordEnd(b, i+1)
	if b[i] == '\t' && end < len(b) && b[end] == '\n' && isModule(b[i+1:end]) {
		return end
	}
	return -1
}

// hex8 returns the value of the eight hexadecimal digits in x, the first one
// in the lowest byte.
func hex8(x uint64) uint64 {
	x = x&(0x0f*ones) + 9*(x>>6&ones) // letters have bit 6 and count from 1
	x = (x<<4 | x>>8) & 0x00ff00ff00ff00ff
	x = (x<<8 | x>>16) & 0x0000ffff0000ffff
	return (x<<16 | x>>32) & 0xffffffff
}

// hexBad returns whether a byte of x is no hexadecimal digit.
func hexBad(x uint64) bool {
	y := x &^ highs
	lower := y | 0x20*ones
	digit := (y + (0x80-'0')*ones) &^ (y + (0x80-'9'-1)*ones)
	letter := (lower + (0x80-'a')*ones) &^ (lower + (0x80-'f'-1)*ones)
	return (digit|letter)&^x&highs != highs
}

// wordEnd returns the index of the first byte from i on that is a blank or a
// control character, or len(b). It looks at 32 bytes at once, because most
// names are shorter: stopping at the right group of eight is a branch that the
// processor guesses wrong on every other line.
func wordEnd(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		c := b[i : i+32 : i+32]
		m := blanks(binary.LittleEndian.Uint64(c)) |
			blanks(binary.LittleEndian.Uint64(c[8:]))<<8 |
			blanks(binary.LittleEndian.Uint64(c[16:]))<<16 |
			blanks(binary.LittleEndian.Uint64(c[24:]))<<24
		if m != 0 {
			return i + bits.TrailingZeros64(m)
		}
	}
	for i < len(b) && b[i] > ' ' {
		i++
	}
	return i
}

// blanks returns a bit for each byte of x up to ' ', exact for the lowest one:
// nothing below it borrows.
func blanks(x uint64) uint64 {
	x = (x - 0x21*ones) &^ x & highs
	return x >> 7 * 0x0102040810204080 >> 56
}

// isType returns whether c may be a type. Besides letters the kernel prints
// '?' for what it cannot tell (elf_type() in kernel/module/kallsyms.c).
func isType(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '?'
}

// isModule returns whether word is a name in brackets.
func isModule(word []byte) bool {
	return len(word) > 2 && word[0] == '[' && word[len(word)-1] == ']'
}

// isMapping returns whether name is an ELF mapping symbol, by the rule of
// is_mapping_symbol() in include/linux/module_symbol.h. A '$' further inside
// is part of a real name.
func isMapping[S ~string | ~[]byte](name S) bool {
	switch name[0] {
	case '$':
		return true
	case '.':
		return len(name) > 1 && name[1] == 'L'
	case 'L':
		return len(name) > 1 && name[1] == '0'
	}
	return false
}

// What is wrong with a line.
const (
	badAddress = "no address"
	badType    = "no type letter after the address"
	badName    = "no name after the type"
	badModule  = "what follows the name is no [module]"
)

// parseStrict takes line apart by the kernel's format string
// "%px %c %s\t[%s]\n" and returns what is wrong, or nothing.
func parseStrict(line []byte, l *Line) string {
	addr, n := parseAddr(line)
	if n == 0 {
		return badAddress
	}
	rest := line[n:]
	if len(rest) < 3 || rest[0] != ' ' || !isType(rest[1]) || rest[2] != ' ' {
		return badType
	}
	name := rest[3:]
	end := wordEnd(name, 0)
	if end == 0 {
		return badName
	}
	l.Addr, l.Type, l.Name, l.Module = addr, rest[1], name[:end], nil
	if end == len(name) {
		return ""
	}
	module := name[end+1:]
	if name[end] != '\t' || wordEnd(module, 0) != len(module) || !isModule(module) {
		return badModule
	}
	l.Module = module[1 : len(module)-1]
	return ""
}

// parseLenient takes line apart at any blanks and tabs. The line has none at
// its ends.
func parseLenient(line []byte, l *Line) string {
	if line[0] == '#' {
		return "a comment"
	}
	addr, n := parseAddr(line)
	word, rest := cutWord(line)
	if n == 0 || n != len(word) {
		return badAddress
	}
	typ, rest := cutWord(rest)
	if len(typ) != 1 || !isType(typ[0]) {
		return badType
	}
	name, module := cutWord(rest)
	if len(name) == 0 || wordEnd(name, 0) != len(name) {
		return badName
	}
	l.Addr, l.Type, l.Name, l.Module = addr, typ[0], name, nil
	if len(module) == 0 {
		return ""
	}
	if wordEnd(module, 0) != len(module) || !isModule(module) {
		return badModule
	}
	l.Module = module[1 : len(module)-1]
	return ""
}

// cutWord returns what stands before the first blank or tab, and what follows
// after as many of them as there are.
func cutWord(b []byte) (word, rest []byte) {
	i := bytes.IndexAny(b, " \t")
	if i < 0 {
		return b, nil
	}
	return b[:i], bytes.TrimLeft(b[i:], " \t")
}

// parseAddr returns the address at the beginning of line and how many bytes
// it takes; zero bytes if there is none. Kernels of the 4.15 era print a zero
// pointer as "(null)", padded with blanks on the left to the usual width.
func parseAddr(line []byte) (uint64, int) {
	var addr uint64
	n := 0
	for n < len(line) && n <= 16 && isHex(line[n]) {
		addr = addr<<4 | uint64(line[n]&0x0f+9*(line[n]>>6))
		n++
	}
	if n > 16 {
		return 0, 0
	}
	if n > 0 {
		return addr, n
	}
	word := bytes.TrimLeft(line, " ")
	if bytes.HasPrefix(word, []byte("(null)")) {
		return 0, len(line) - len(word) + len("(null)")
	}
	return 0, 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// incomplete returns whether line is the beginning of a symbol: an address,
// perhaps a type, but no name; or a module without its closing bracket.
func incomplete(line []byte) bool {
	line = bytes.Trim(line, " \t\r")
	_, n := parseAddr(line)
	word, rest := cutWord(line)
	if n == 0 || n != len(word) {
		return false
	}
	typ, rest := cutWord(rest)
	if len(typ) == 0 {
		return true
	}
	name, module := cutWord(rest)
	switch {
	case len(typ) != 1 || !isType(typ[0]):
		return false
	case len(name) == 0:
		return true
	}
	return len(module) > 0 && module[0] == '[' && module[len(module)-1] != ']' || bytes.Equal(module, []byte("[]"))
}
