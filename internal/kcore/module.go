package kcore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// Bounds of what is believed while walking over memory that may change.
const (
	maxSymbols   = 1 << 22 // of one module
	maxStrings   = 1 << 28
	maxSymbolLen = 1 << 10 // KSYM_NAME_LEN is 512
)

// errCycle ends a walk over a list that changed meanwhile.
var errCycle = errors.New("the list does not end")

// MODULE_STATE_LIVE and MODULE_STATE_UNFORMED in include/linux/module.h:
// /proc/kallsyms leaves the latter out (module_get_kallsym() in
// kernel/module/kallsyms.c).
const (
	stateLive     = 0
	stateUnformed = 3
)

// A Module is the symbol table of one loaded module.
type Module struct {
	Name string
	// Live is false while it is loaded or unloaded. Names may then share their
	// ends in the string table; later each has its own (add_kallsyms() in
	// kernel/module/kallsyms.c).
	Live bool

	order   binary.ByteOrder
	symtab  []byte
	strtab  []byte
	typetab []byte
	load    func() error
}

// Modules returns a reader over the loaded modules. head is the address of the
// variable modules (kernel/module/main.c), b the BTF of vmlinux.
func (m *Memory) Modules(head uint64, b *btfscan.BTF) (*Modules, error) {
	layout, err := moduleLayoutOf(b)
	if err != nil {
		return nil, err
	}
	node, err := m.Uint64(head)
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	return &Modules{
		Keep: func(*Module) (bool, error) { return true, nil },
		mem:  m, head: head, node: node, layout: layout, seen: make(map[uint64]bool),
	}, nil
}

// Modules walks over the loaded modules in the kernel's order.
type Modules struct {
	// Keep says which modules Read gives: all of them at first.
	Keep func(*Module) (bool, error)

	mem        *Memory
	head, node uint64
	layout     moduleLayout
	seen       map[uint64]bool // nodes
	text       []byte          // of the module that is being read
	rest       []byte
}

// Next returns the next module, or io.EOF behind the last. Its tables are not
// read yet.
func (w *Modules) Next() (*Module, error) {
	for w.node != w.head {
		if w.seen[w.node] {
			return nil, fmt.Errorf("modules: %w", errCycle)
		}
		w.seen[w.node] = true
		buf := make([]byte, w.layout.size)
		if err := w.mem.Read(w.node-uint64(w.layout.list), buf); err != nil {
			return nil, fmt.Errorf("modules: %w", err)
		}
		w.node = w.mem.order.Uint64(buf[w.layout.list:])
		if w.mem.order.Uint32(buf[w.layout.state:]) != stateUnformed {
			return w.mem.module(buf, w.layout), nil
		}
	}
	return nil, io.EOF
}

// Read gives the symbols of all modules as /proc/kallsyms prints them, except
// that exported symbols have a small letter too.
func (w *Modules) Read(p []byte) (int, error) {
	for len(w.rest) == 0 {
		mod, err := w.Next()
		if err != nil {
			return 0, err
		}
		keep, err := w.Keep(mod)
		if err != nil {
			return 0, err
		}
		if !keep {
			continue
		}
		if w.text, err = mod.AppendKallsyms(w.text[:0]); err != nil {
			return 0, err
		}
		w.rest = w.text
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// moduleLayout is where the fields of struct module and struct mod_kallsyms
// are, in bytes.
type moduleLayout struct {
	size                        uint32
	state, list, name, kallsyms uint32

	tables                         uint32 // size
	symtab, count, strtab, typetab uint32
}

// moduleNameLen is MODULE_NAME_LEN: 64 - sizeof(unsigned long).
const moduleNameLen = 56

func moduleLayoutOf(b *btfscan.BTF) (l moduleLayout, err error) {
	structs := b.Aggregates("module", "mod_kallsyms")
	module, tables := structs[0], structs[1]
	l.size, l.tables = module.Size(), tables.Size()
	return l, fields{
		{module, "state", 4, &l.state},
		{module, "list", 16, &l.list},
		{module, "name", moduleNameLen, &l.name},
		{module, "kallsyms", 8, &l.kallsyms},
		{tables, "symtab", 8, &l.symtab},
		{tables, "num_symtab", 4, &l.count},
		{tables, "strtab", 8, &l.strtab},
		{tables, "typetab", 8, &l.typetab},
	}.find()
}

func (m *Memory) module(buf []byte, l moduleLayout) *Module {
	name, _, _ := bytes.Cut(buf[l.name:][:moduleNameLen], []byte{0})
	mod := &Module{Name: string(name), Live: m.order.Uint32(buf[l.state:]) == stateLive, order: m.order}
	tables := m.order.Uint64(buf[l.kallsyms:])
	mod.load = func() error {
		if mod.strtab != nil {
			return nil
		}
		if err := m.loadTables(mod, tables, l); err != nil {
			return fmt.Errorf("module %s: %w", mod.Name, err)
		}
		return nil
	}
	return mod
}

// Elf64_Sym: name u32, info u8, other u8, shndx u16, value u64, size u64.
const (
	symSize  = 24
	symValue = 8
)

// loadTables reads the symbol, string and type tables of a module.
func (m *Memory) loadTables(mod *Module, addr uint64, l moduleLayout) error {
	buf := make([]byte, l.tables)
	if err := m.Read(addr, buf); err != nil {
		return err
	}
	count := m.order.Uint32(buf[l.count:])
	if count > maxSymbols {
		return fmt.Errorf("%d symbols: not believable", count)
	}
	var err error
	if mod.symtab, err = m.take(m.order.Uint64(buf[l.symtab:]), uint64(count)*symSize); err != nil {
		return err
	}
	if mod.typetab, err = m.take(m.order.Uint64(buf[l.typetab:]), uint64(count)); err != nil {
		return err
	}
	return m.loadStrings(mod, m.order.Uint64(buf[l.strtab:]))
}

// loadStrings reads the string table, whose size the kernel does not keep: it
// ends behind the string that begins last.
func (m *Memory) loadStrings(mod *Module, addr uint64) error {
	var last uint32
	for sym := mod.symtab; len(sym) > 0; sym = sym[symSize:] {
		last = max(last, m.order.Uint32(sym))
	}
	if last > maxStrings {
		return fmt.Errorf("string table of %d bytes: not believable", last)
	}
	if err := m.has(addr, uint64(last)+1); err != nil {
		return err
	}
	// What is not there reads as zeros or fails; the last string may end in
	// front of it. A further zero ends it in any case.
	strtab := make([]byte, last+maxSymbolLen+1)
	size := uint64(last) + maxSymbolLen
	for size > uint64(last) {
		err := m.Read(addr, strtab[:size])
		if err == nil {
			mod.strtab = strtab
			return nil
		}
		if edge := (addr + size - 1) &^ (pageSize - 1); edge > addr+uint64(last) {
			size = edge - addr
			continue
		}
		return err
	}
	return nil
}

const pageSize = 4096

// Strings returns the module's string table: its names, each behind a zero byte.
func (mod *Module) Strings() ([]byte, error) {
	err := mod.load()
	return mod.strtab, err
}

// AppendKallsyms appends the module's symbols to dst as /proc/kallsyms prints
// them, except that exported symbols have a small letter too.
func (mod *Module) AppendKallsyms(dst []byte) ([]byte, error) {
	if err := mod.load(); err != nil {
		return dst, err
	}
	for i, typ := range mod.typetab {
		sym := mod.symtab[i*symSize:]
		at := int(mod.order.Uint32(sym))
		if at >= len(mod.strtab) {
			return dst, fmt.Errorf("module %s: symbol %d: its name is outside of the string table", mod.Name, i)
		}
		name := mod.strtab[at:]
		name = name[:bytes.IndexByte(name, 0)]
		if len(name) == 0 {
			continue // as s_show() in kernel/kallsyms.c does
		}
		dst = appendHex(dst, mod.order.Uint64(sym[symValue:]))
		dst = append(dst, ' ', typ|0x20, ' ')
		dst = append(dst, name...)
		dst = append(append(append(dst, "\t["...), mod.Name...), "]\n"...)
	}
	return dst, nil
}

// appendHex appends 16 digits.
func appendHex(dst []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[v>>shift&15])
	}
	return dst
}
