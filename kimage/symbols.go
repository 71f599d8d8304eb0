package kimage

import (
	"bytes"
	"debug/elf"
	"fmt"
	"sort"
)

// Symbol is a symbol of an ELF symbol table.
type Symbol struct {
	Name string
	// Type is the letter that the kernel's kallsyms would show, always small:
	// 't' for code.
	Type byte
	// Section is where it is defined.
	Section string
	// Value is the address in vmlinux, and the offset in Section in modules.
	Value, Size uint64
}

// Elf64_Sym: name u32, info u8, other u8, section u16, value u64, size u64.
const symSize = 24

// symbols returns the defined, named symbols of sections that the kernel has in
// memory.
func (f *elfFile) symbols() ([]Symbol, error) {
	table, names, err := f.symtab()
	if err != nil {
		return nil, err
	}
	list := make([]Symbol, 0, len(table)/symSize)
	for i := 0; i+symSize <= len(table); i += symSize {
		sym := f.symbol(table[i : i+symSize])
		s := f.sectionOf(sym)
		if s == nil || s.Flags&elf.SHF_ALLOC == 0 || elf.ST_TYPE(sym.Info) == elf.STT_SECTION || elf.ST_TYPE(sym.Info) == elf.STT_FILE {
			continue
		}
		name, err := stringAt(names, sym.Name)
		if err != nil {
			return nil, fmt.Errorf("symbol %d: %w", i/symSize, err)
		}
		if name != "" {
			list = append(list, Symbol{name, typeOf(sym, s), s.Name, sym.Value, sym.Size})
		}
	}
	return list, nil
}

// symtab returns the symbol table and its names.
func (f *elfFile) symtab() (table, names []byte, err error) {
	s := f.SectionByType(elf.SHT_SYMTAB)
	if s == nil {
		return nil, nil, fmt.Errorf("ELF symbols: %w: the file was stripped", ErrAbsent)
	}
	if int(s.Link) >= len(f.Sections) {
		return nil, nil, fmt.Errorf("section %s: its names are in section %d, which is not there", s.Name, s.Link)
	}
	if table, err = f.bytes(s); err != nil {
		return nil, nil, err
	}
	names, err = f.bytes(f.Sections[s.Link])
	return table, names, err
}

func (f *elfFile) symbol(b []byte) elf.Sym64 {
	return elf.Sym64{
		Name: f.ByteOrder.Uint32(b), Info: b[4], Other: b[5], Shndx: f.ByteOrder.Uint16(b[6:]),
		Value: f.ByteOrder.Uint64(b[8:]), Size: f.ByteOrder.Uint64(b[16:]),
	}
}

// sectionOf returns the section that a symbol is defined in, or nil.
func (f *elfFile) sectionOf(sym elf.Sym64) *elf.Section {
	if sym.Shndx == uint16(elf.SHN_UNDEF) || int(sym.Shndx) >= len(f.Sections) {
		return nil
	}
	return f.Sections[sym.Shndx]
}

func stringAt(names []byte, at uint32) (string, error) {
	if int64(at) >= int64(len(names)) {
		return "", fmt.Errorf("its name at %d is outside of the names", at)
	}
	n := bytes.IndexByte(names[at:], 0)
	if n < 0 {
		return "", fmt.Errorf("its name at %d does not end", at)
	}
	return string(names[at : int(at)+n]), nil
}

// typeOf is elf_type() in kernel/module/kallsyms.c, for sections in memory.
func typeOf(sym elf.Sym64, s *elf.Section) byte {
	weak := elf.ST_BIND(sym.Info) == elf.STB_WEAK
	switch {
	case weak && elf.ST_TYPE(sym.Info) == elf.STT_OBJECT:
		return 'v'
	case weak:
		return 'w'
	case s.Name == ".data..percpu":
		return 'a'
	case s.Flags&elf.SHF_EXECINSTR != 0:
		return 't'
	case s.Type == elf.SHT_NOBITS:
		return 'b'
	case s.Flags&elf.SHF_WRITE == 0:
		return 'r'
	}
	return 'd'
}

// Location is a place in a section of a module, which lies wherever the running
// kernel put it: /sys/module/NAME/sections/SECTION.
type Location struct {
	Section string
	Offset  uint64
}

// pointers returns what the 64-bit words of a section of a relocatable file will
// point to, in the order of the words.
func (f *elfFile) pointers(name string) ([]Location, error) {
	rela := f.Section(".rela" + name)
	if rela == nil || rela.Type != elf.SHT_RELA {
		return nil, nil
	}
	b, err := f.bytes(rela)
	if err != nil {
		return nil, err
	}
	table, _, err := f.symtab()
	if err != nil {
		return nil, err
	}
	type pointer struct {
		place uint64
		to    Location
	}
	list := make([]pointer, 0, len(b)/relaSize)
	for ; len(b) >= relaSize; b = b[relaSize:] {
		index := f.ByteOrder.Uint64(b[8:]) >> 32
		if index >= uint64(len(table)/symSize) {
			return nil, fmt.Errorf("section %s: there is no symbol %d", rela.Name, index)
		}
		sym := f.symbol(table[index*symSize:])
		s := f.sectionOf(sym)
		if s == nil {
			return nil, fmt.Errorf("section %s: symbol %d is not defined in the file", rela.Name, index)
		}
		list = append(list, pointer{f.ByteOrder.Uint64(b), Location{s.Name, sym.Value + f.ByteOrder.Uint64(b[16:])}})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].place < list[j].place })
	locations := make([]Location, len(list))
	for i := range list {
		locations[i] = list[i].to
	}
	return locations, nil
}
