package kcore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/kallsyms"
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// base is where the memory of a core begins.
const base = 0xffffffff81000000

// core is a core file that is being made: one piece of memory and its notes.
type core struct {
	order byteOrder
	mem   []byte
	notes strings.Builder
}

func newCore(order byteOrder) *core {
	c := &core{order: order, mem: make([]byte, 64)}
	c.notes.WriteString("OSRELEASE=6.12.0-test\n")
	return c
}

// put appends data to the memory, aligned, and returns its address.
func (c *core) put(data []byte) uint64 {
	c.mem = append(c.mem, make([]byte, -len(c.mem)&7)...)
	addr := base + uint64(len(c.mem))
	c.mem = append(c.mem, data...)
	return addr
}

func (c *core) words(words ...uint64) uint64 {
	var b []byte
	for _, w := range words {
		b = c.order.AppendUint64(b, w)
	}
	return c.put(b)
}

// set writes a number into memory that has been put.
func (c *core) set(addr, value uint64) { c.order.PutUint64(c.mem[addr-base:], value) }

// note adds the address of a variable, as the kernel writes it.
func (c *core) note(name string, addr uint64) { fmt.Fprintf(&c.notes, "SYMBOL(%s)=%x\n", name, addr) }

// bytes returns the file: header, two program headers, notes, memory, which ends
// with a page as the kernel's does.
func (c *core) bytes() []byte {
	c.mem = append(c.mem, make([]byte, -len(c.mem)&(pageSize-1))...)
	const headers = 64 + 2*56
	notes := c.notes.String()
	b := append([]byte("\x7fELF\x02"), 1, 1)
	if c.order.Uint16([]byte{0, 1}) == 1 {
		b[5] = 2
	}
	b = append(b, make([]byte, 9)...)
	b = c.order.AppendUint16(b, 4)                    // ET_CORE
	b = c.order.AppendUint16(b, 62)                   // EM_X86_64
	b = c.order.AppendUint32(b, 1)                    // version
	b = append(b, make([]byte, 8)...)                 // entry
	b = c.order.AppendUint64(b, 64)                   // program headers
	b = append(b, make([]byte, 8+4)...)               // section headers, flags
	for _, v := range []uint16{64, 56, 2, 64, 0, 0} { // sizes and numbers
		b = c.order.AppendUint16(b, v)
	}
	segment := func(typ uint32, addr, offset, size uint64) {
		b = c.order.AppendUint32(b, typ)
		b = c.order.AppendUint32(b, 7)
		for _, v := range []uint64{offset, addr, 0, size, size, 0} {
			b = c.order.AppendUint64(b, v)
		}
	}
	segment(4, 0, headers, uint64(len(notes)))
	segment(1, base, headers+uint64(len(notes)), uint64(len(c.mem)))
	return append(append(b, notes...), c.mem...)
}

func (c *core) memory(tb testing.TB) *Memory {
	tb.Helper()
	m, err := newMemory(bytes.NewReader(c.bytes()))
	qt.Assert(tb, qt.IsNil(err))
	return m
}

// An addressForm is how a kernel keeps the addresses of its symbols.
type addressForm string

const (
	fromPlace  addressForm = "from place"  // v7.0 and later
	fromBase   addressForm = "from base"   // before
	withPercpu addressForm = "with percpu" // x86 before v6.15
)

// putSymbols makes the kernel's symbol table and notes where it is.
func (c *core) putSymbols(symbols []kallsyms.Symbol, form addressForm) {
	var names, tokens, index, offsets []byte
	for i := range 256 { // each letter is a token
		index = c.order.AppendUint16(index, uint16(len(tokens)))
		if i > ' ' && i < 0x7f {
			tokens = append(tokens, byte(i))
		}
		tokens = append(tokens, 0)
	}
	for _, s := range symbols {
		names = append(append(append(names, byte(1+len(s.Name))), s.Type), s.Name...)
	}
	place := base + uint64(len(c.mem)+7)&^7 // of the offsets, which come first
	for i, s := range symbols {
		offset := s.Addr - base
		switch {
		case form == fromPlace:
			offset = s.Addr - place - 4*uint64(i)
		case form == withPercpu && s.Addr < base:
			offset = s.Addr
		case form == withPercpu:
			offset = base - 1 - s.Addr
		}
		offsets = c.order.AppendUint32(offsets, uint32(offset))
	}
	c.note("kallsyms_offsets", c.put(offsets))
	if form != fromPlace {
		c.note("kallsyms_relative_base", c.words(base))
	}
	c.note("kallsyms_num_syms", c.put(c.order.AppendUint32(nil, uint32(len(symbols)))))
	c.note("kallsyms_names", c.put(names))
	c.note("kallsyms_token_table", c.put(tokens))
	c.note("kallsyms_token_index", c.put(index))
	for _, s := range symbols {
		if s.Name == "_stext" {
			c.note("_stext", s.Addr)
		}
	}
}

// putPages makes a list of ftrace pages and returns the address of its head.
// Structs are those of kernelTypes.
func (c *core) putPages(groups ...[]uint64) (head uint64, pages []uint64) {
	head = c.words(0)
	last := head
	for _, sites := range groups {
		var records []uint64
		for _, ip := range sites {
			records = append(records, 0xf1a6, ip)
		}
		page := c.words(0, c.words(records...), uint64(len(sites)), 0)
		c.order.PutUint32(c.mem[page+16-base:], uint32(len(sites)))
		c.set(last, page)
		last = page
		pages = append(pages, page)
	}
	return head, pages
}

// A testModule is a module to make.
type testModule struct {
	name    string
	state   uint32
	symbols []kallsyms.Symbol
}

// putModules makes the list of modules and returns the address of its head, and
// those of struct module.
func (c *core) putModules(modules ...testModule) (head uint64, nodes []uint64) {
	head = c.words(0, 0)
	last := head
	for _, mod := range modules {
		var symtab, typetab []byte
		strtab := []byte{0}
		for _, s := range mod.symbols {
			symtab = c.order.AppendUint32(symtab, uint32(len(strtab)))
			symtab = append(symtab, 0, 0, 0, 0)
			symtab = c.order.AppendUint64(symtab, s.Addr)
			symtab = c.order.AppendUint64(symtab, 16)
			typetab = append(typetab, s.Type)
			strtab = append(append(strtab, s.Name...), 0)
		}
		tables := c.words(c.put(symtab), uint64(len(mod.symbols)), c.put(strtab), c.put(typetab))
		c.order.PutUint32(c.mem[tables+8-base:], uint32(len(mod.symbols)))
		b := c.order.AppendUint32(nil, mod.state)
		b = append(b, make([]byte, 4+16)...) // list
		b = append(b, mod.name...)
		b = append(b, make([]byte, 24+moduleNameLen-len(b))...)
		node := c.put(c.order.AppendUint64(b, tables))
		c.set(last, node+8)
		last = node + 8
		nodes = append(nodes, node)
	}
	c.set(last, head)
	return head, nodes
}

// kernelTypes has the structs that are read, with the offsets of this file.
func kernelTypes(tb testing.TB) *btfscan.BTF {
	tb.Helper()
	long := &btf.Int{Name: "unsigned long", Size: 8}
	word := &btf.Int{Name: "unsigned int", Size: 4}
	ptr := &btf.Pointer{Target: &btf.Void{}}
	list := &btf.Struct{Name: "list_head", Size: 16}
	name := &btf.Array{Index: word, Type: &btf.Int{Name: "char", Size: 1}, Nelems: moduleNameLen}
	at := func(name string, t btf.Type, offset uint32) btf.Member {
		return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * offset)}
	}
	return parseTypes(tb,
		&btf.Struct{Name: "ftrace_page", Size: 32, Members: []btf.Member{at("next", ptr, 0), at("records", ptr, 8), at("index", word, 16)}},
		&btf.Struct{Name: "dyn_ftrace", Size: 16, Members: []btf.Member{at("flags", long, 0), at("ip", long, 8)}},
		&btf.Struct{Name: "module", Size: 88, Members: []btf.Member{
			at("state", word, 0), at("list", list, 8), at("name", name, 24), at("kallsyms", ptr, 24+moduleNameLen),
		}},
		&btf.Struct{Name: "mod_kallsyms", Size: 32, Members: []btf.Member{
			at("symtab", ptr, 0), at("num_symtab", word, 8), at("strtab", ptr, 16), at("typetab", ptr, 24),
		}},
	)
}

func parseTypes(tb testing.TB, types ...btf.Type) *btfscan.BTF {
	tb.Helper()
	b, err := btf.NewBuilder(types, nil)
	qt.Assert(tb, qt.IsNil(err))
	blob, err := b.Marshal(nil, nil)
	qt.Assert(tb, qt.IsNil(err))
	parsed, err := btfscan.Parse(blob, nil)
	qt.Assert(tb, qt.IsNil(err))
	return parsed
}
