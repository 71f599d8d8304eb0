package pattern

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Parse returns the pattern that the text stands for, or a [*SyntaxError].
func Parse(text string) (Pattern, error) {
	var p Pattern
	if err := p.parse(piece{text, 0}); err != nil {
		err.Pattern = text
		return Pattern{}, err
	}
	return p, nil
}

func (p *Pattern) parse(t piece) *SyntaxError {
	if err := checkText(t); err != nil {
		return err
	}
	if strings.HasPrefix(t.s, "!") {
		p.Exclude = true
		t = t.from(1)
	}
	p.Text = t.s
	switch {
	case t.s == "":
		return t.fail(0, "empty pattern", "type a name or a glob, as in tcp_*")
	case t.s[0] == '!':
		return t.fail(0, "second !", "type one ! to exclude, none to include")
	case t.s[0] == '/':
		return p.parseRegexp(t)
	case hasHexPrefix(t.s):
		return p.parseAddr(t)
	}
	switch i := indexOutside(t.s, ":#"); {
	case i < 0:
		return p.parseGlob(t)
	case t.s[i] == '#':
		return p.parseBTFID(t.to(i), t.from(i+1))
	default:
		return p.parseQualified(t.to(i), t.from(i+1))
	}
}

// parseQualified reads what has a word before a colon: a module, or syscall.
func (p *Pattern) parseQualified(mod, name piece) *SyntaxError {
	switch {
	case mod.s == "syscall":
		return p.parseSyscall(name)
	case mod.s == "":
		return mod.fail(0, "no module before the colon", "type *:"+cmp.Or(name.s, "*")+" for any module")
	case name.s == "":
		return name.fail(0, "no name after the colon", "type "+mod.s+":* for all of the module")
	}
	if err := checkForeign(mod, name.s); err != nil {
		return err
	}
	if err := p.parseModule(mod); err != nil {
		return err
	}
	switch {
	case name.s[0] == '/':
		return p.parseRegexp(name)
	case name.s[0] == '#':
		return name.fail(0, "BTF id after a colon", "type "+mod.s+name.s)
	case name.s[0] == '!':
		return name.fail(0, "! after the module", "type !"+mod.s+":"+name.s[1:])
	case hasHexPrefix(name.s):
		return name.fail(0, "address with a module", "type "+name.s)
	case strings.HasPrefix(name.s, "syscall:"):
		return name.fail(0, "system call with a module", "type "+name.s)
	}
	return p.parseGlob(name)
}

func (p *Pattern) parseModule(mod piece) *SyntaxError {
	if file, ok := strings.CutSuffix(mod.s, ".ko"); ok {
		return mod.fail(len(file), "file name of a module", "type the module's name: "+file)
	}
	g, err := compileModule(mod)
	if err != nil {
		return err
	}
	p.Module, p.module = canonicalModuleGlob(mod.s), g
	return nil
}

// parseGlob reads a name or a glob, and the offset after a name.
func (p *Pattern) parseGlob(t piece) *SyntaxError {
	name, offset, hasOffset := t, piece{}, false
	if i := indexOutside(t.s, "+"); i >= 0 {
		name, offset, hasOffset = t.to(i), t.from(i+1), true
	}
	if err := checkName(name); err != nil {
		return err
	}
	g, err := compileGlob(name)
	if err != nil {
		return err
	}
	p.Kind, p.Name, p.name = Glob, name.s, g
	if hasOffset {
		return p.parseOffset(name, offset)
	}
	return nil
}

// checkName refuses numbers where a name should stand.
func checkName(t piece) *SyntaxError {
	switch {
	case t.s == "":
		return t.fail(0, "no name before the offset", "type a function and an offset, as in vfs_read+0x10")
	case strings.Trim(t.s, "0123456789") == "":
		return t.fail(0, "a number is no function name", "type #"+t.s+" for a BTF id, "+inHex(t.s)+" for an address")
	case len(t.s) == 16 && strings.HasPrefix(t.s, "ffff") && strings.Trim(t.s, "0123456789abcdef") == "":
		return t.fail(0, "address without 0x", "type 0x"+t.s)
	}
	return nil
}

func (p *Pattern) parseOffset(name, t piece) *SyntaxError {
	_, exact := p.Exact()
	switch {
	case !exact:
		return t.fail(-1, "offset after a glob", "type one name with an offset, as in vfs_read+0x10")
	case p.Exclude:
		return t.fail(-1, "offset in an exclusion", "type !"+strings.TrimSuffix(p.Text, "+"+t.s)+" to exclude the function")
	}
	// Stack traces print name+offset/size.
	if i := strings.IndexByte(t.s, '/'); i > 0 {
		return t.fail(i, "size after an offset", "type "+name.s+"+"+t.s[:i])
	}
	n, err := parseNumber(t, 64, "type a number, as in vfs_read+16 or vfs_read+0x10")
	if err != nil {
		return err
	}
	p.Offset, p.HasOffset = n, true
	return nil
}

// parseRegexp reads /expression/.
func (p *Pattern) parseRegexp(t piece) *SyntaxError {
	end := strings.LastIndexByte(t.s, '/')
	switch tail := t.s[end+1:]; {
	case end == 0 || tail == "" && escaped(t.s, end):
		return t.fail(0, "unclosed regular expression", "end it with /")
	case strings.HasPrefix(tail, "+"):
		return t.fail(end+1, "offset after a regular expression", "type one name with an offset, as in vfs_read+0x10")
	case tail == "i":
		return t.fail(end+1, "flag after the closing /", "type (?i) at the start of the regular expression")
	case tail != "":
		return t.fail(end+1, "text after the closing /", "end the regular expression with /; patterns from a file are given with -f FILE")
	case end == 1:
		return t.fail(1, "empty regular expression", "type * for every function")
	}
	src := t.to(end).from(1)
	x, err := compileRegexp(src)
	if err != nil {
		return err
	}
	p.Kind, p.Name, p.name = Regexp, src.s, x
	return nil
}

// escaped reports whether an odd number of backslashes stands before byte i.
func escaped(s string, i int) bool {
	head := s[:i]
	return (len(head)-len(strings.TrimRight(head, `\`)))%2 == 1
}

func (p *Pattern) parseSyscall(t piece) *SyntaxError {
	rest, prefixed := withoutSyscallPrefix(t.s)
	switch {
	case t.s == "":
		return t.fail(0, "no system call after the colon", "type syscall:openat, or syscall:* for all")
	case t.s[0] == '/':
		return t.fail(0, "regular expression over system calls", "type a glob, as in syscall:open*, or the expression alone, over whole names")
	case prefixed:
		return t.fail(0, "system call with its prefix", "type syscall:"+rest+", or "+t.s+" alone")
	}
	if i := indexOutside(t.s, "+"); i >= 0 {
		return t.fail(i, "offset after a system call", "type the whole name, as in __x64_sys_openat+0x10")
	}
	items, err := globItems(t)
	if err != nil {
		return err
	}
	p.Kind, p.Name, p.name = Syscall, t.s, syscallGlobs(items, allSyscallPrefixes)
	p.module = literalGlob(vmlinux)
	return nil
}

const idHint = "type the id of a function in decimal, as in #1234"

// parseBTFID reads what stands before and after the #.
func (p *Pattern) parseBTFID(object, number piece) *SyntaxError {
	obj, err := parseObject(object)
	if err != nil {
		return err
	}
	if i := strings.IndexByte(number.s, '+'); i >= 0 {
		return number.fail(i, "offset after a BTF id", "type one name with an offset, as in vfs_read+0x10")
	}
	if hasHexPrefix(number.s) {
		return number.fail(0, "BTF id in hex", idHint)
	}
	id, err := parseNumber(number, 32, idHint)
	if err != nil {
		return err
	}
	if id == 0 {
		return number.fail(0, "BTF id 0 is void", idHint)
	}
	p.Kind, p.Object, p.ID = BTFID, obj, uint32(id)
	p.module = literalGlob(obj)
	return nil
}

// parseObject returns the name of a BTF object, vmlinux when none is given.
func parseObject(t piece) (string, *SyntaxError) {
	if t.s == "" {
		return vmlinux, nil
	}
	g, err := compileModule(t)
	if err != nil {
		return "", err
	}
	if !g.exact {
		return "", t.fail(0, "glob before a BTF id", "type one module, as in nf_tables#77")
	}
	return g.prefix, nil
}

const addrHint = "type one address, as in 0xffffffff81000000"

func (p *Pattern) parseAddr(t piece) *SyntaxError {
	i := strings.IndexByte(t.s, '+')
	if i >= 0 {
		return addrOffset(t, i)
	}
	addr, err := parseNumber(t, 64, addrHint)
	if err != nil {
		return err
	}
	if addr == 0 {
		return t.fail(0, "address 0 is no function's", "type the name; where the kernel shows only zeros it hides addresses (kernel.kptr_restrict)")
	}
	p.Kind, p.Addr = Addr, addr
	return nil
}

// addrOffset says which address to type where address and offset were given.
func addrOffset(t piece, i int) *SyntaxError {
	hint := addrHint
	addr, err := parseNumber(t.to(i), 64, hint)
	off, err2 := parseNumber(t.from(i+1), 64, hint)
	sum, carry := bits.Add64(addr, off, 0)
	if err == nil && err2 == nil && carry == 0 {
		hint = fmt.Sprintf("type 0x%x", sum)
	}
	return t.fail(i, "offset after an address", hint)
}

func hasHexPrefix(s string) bool {
	return len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x'
}

// inHex returns digits as an address is typed: too many for 32 bits are a decimal
// number, few may be one whose 0x is missing.
func inHex(digits string) string {
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > math.MaxUint32 {
		return "0x" + strconv.FormatUint(n, 16)
	}
	return "0x" + digits
}

// parseNumber reads a decimal number, or a hexadecimal one after 0x. What to type where it is
// none, hint says.
func parseNumber(t piece, bitSize int, hint string) (uint64, *SyntaxError) {
	digits, base, set := t, 10, "0123456789"
	if hasHexPrefix(t.s) {
		digits, base, set = t.from(2), 16, "0123456789abcdefABCDEF"
	}
	if digits.s == "" {
		return 0, digits.fail(0, "no digits", hint)
	}
	if bad := strings.TrimLeft(digits.s, set); bad != "" {
		return 0, digits.fail(len(digits.s)-len(bad), "not a digit", hint)
	}
	n, err := strconv.ParseUint(digits.s, base, bitSize)
	if errors.Is(err, strconv.ErrRange) {
		return 0, t.fail(0, fmt.Sprintf("number does not fit in %d bits", bitSize), hint)
	}
	return n, nil
}
