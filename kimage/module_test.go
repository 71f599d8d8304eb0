package kimage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// symbolTable makes the content of a symbol table and its names.
func symbolTable(symbols []elf.Sym64, names []string) (table, strings []byte) {
	strings = []byte{0}
	var out bytes.Buffer
	for i, s := range append([]elf.Sym64{{}}, symbols...) {
		if i > 0 && names[i-1] != "" {
			s.Name = uint32(len(strings))
			strings = append(append(strings, names[i-1]...), 0)
		}
		if err := binary.Write(&out, binary.LittleEndian, s); err != nil {
			panic(err)
		}
	}
	return out.Bytes(), strings
}

// makeModule makes a module for makeKernel's kernel: a section symbol, three
// that are kept and two that are not, and two sites, in another order than their
// relocations.
func makeModule() []byte {
	info := func(bind elf.SymBind, typ elf.SymType) byte { return byte(bind)<<4 | byte(typ) }
	table, names := symbolTable([]elf.Sym64{
		{Info: info(elf.STB_LOCAL, elf.STT_SECTION), Shndx: 1},
		{Info: info(elf.STB_LOCAL, elf.STT_FUNC), Shndx: 1, Value: 0x10, Size: 8},
		{Info: info(elf.STB_WEAK, elf.STT_FUNC), Shndx: 1, Value: 0x20, Size: 8},
		{Info: info(elf.STB_GLOBAL, elf.STT_OBJECT), Shndx: 2, Value: 4, Size: 4},
		{Info: info(elf.STB_GLOBAL, elf.STT_NOTYPE), Shndx: 0},
		{Info: info(elf.STB_LOCAL, elf.STT_NOTYPE), Shndx: 5},
	}, []string{"", "mod_fn", "mod_weak", "mod_data", "printk", "in_modinfo"})
	rela := func(entries ...[3]uint64) (b []byte) {
		for _, e := range entries {
			b = binary.LittleEndian.AppendUint64(b, e[0])
			b = binary.LittleEndian.AppendUint64(b, e[1]<<32|uint64(elf.R_X86_64_64))
			b = binary.LittleEndian.AppendUint64(b, e[2])
		}
		return b
	}
	alloc := elf.SHF_ALLOC
	return writeELF(elf.ET_REL, binary.LittleEndian, []elfSection{
		{name: ".text", typ: elf.SHT_PROGBITS, flags: alloc | elf.SHF_EXECINSTR, data: make([]byte, 64)},
		{name: ".data", typ: elf.SHT_PROGBITS, flags: alloc | elf.SHF_WRITE, data: make([]byte, 8)},
		{name: "__mcount_loc", typ: elf.SHT_PROGBITS, flags: alloc, data: make([]byte, 16)},
		{name: ".rela__mcount_loc", typ: elf.SHT_RELA, data: rela([3]uint64{8, 2, 4}, [3]uint64{0, 1, 0x24}), link: 6, info: 3},
		{name: ".modinfo", typ: elf.SHT_PROGBITS, data: []byte("license=GPL\x00vermagic=6.12.0-made SMP mod_unload \x00")},
		{name: ".symtab", typ: elf.SHT_SYMTAB, data: table, link: 7},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: names},
		{name: ".note.gnu.build-id", typ: elf.SHT_NOTE, flags: alloc, data: []byte(buildIDNote)},
		{name: ".BTF", typ: elf.SHT_PROGBITS, data: splitBTF()},
	})
}

// splitBTF is BTF on top of that of makeKernel's kernel, which has three types:
// int mod_fn(void), by hand.
func splitBTF() []byte {
	le := binary.LittleEndian
	const proto, fn, name = 13 << 24, 12 << 24, "\x00mod_fn\x00"
	baseStrings := le.Uint32(makeBTF()[20:])
	types := []uint32{0, proto, 1, baseStrings + 1, fn, 4}
	b := []byte{0x9f, 0xeb, 1, 0}
	for _, v := range append([]uint32{24, 0, uint32(4 * len(types)), uint32(4 * len(types)), uint32(len(name))}, types...) {
		b = le.AppendUint32(b, v)
	}
	return append(b, name...)
}

func TestModule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nf-made.ko.xz")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, packXZ(makeModule()), 0o600)))
	m, err := OpenModule(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(m.Name(), "nf_made"))
	release, err := m.Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(release, "6.12.0-made"))
	id, err := m.BuildID()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(id, "cafebabe"))

	symbols, err := m.Symbols()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(symbols, []Symbol{
		{"mod_fn", 't', ".text", 0x10, 8},
		{"mod_weak", 'w', ".text", 0x20, 8},
		{"mod_data", 'd', ".data", 4, 4},
	}))
	sites, err := m.Sites()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(sites, []Location{{".text", 0x24}, {".text", 0x14}}))
}

// TestModuleBase: BTF that continues another kernel's does not fit.
func TestModuleBase(t *testing.T) {
	m := newModule("m.ko", makeModule())
	_, err := m.BTF() // unchecked
	qt.Assert(t, qt.IsNil(err))
	m.image = open(t, makeKernel(modern, x86Base).elf())
	_, err = m.BTF()
	qt.Assert(t, qt.IsNil(err))
	m.image = open(t, readCase(t, "elf_btf_base.elf"))
	_, err = m.BTF()
	qt.Check(t, qt.ErrorMatches(err, "module m: base BTF: .*"))
}

func TestModuleErrors(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "module m: malformed ELF file: .*"},
		{"text", "hello, world", "module m: malformed ELF file: .*"},
		{"lzo", "\x89LZO\x00\x0d\x0a\x1a\x0a", "module m: unpack: lzo: .*"},
		{"cut", string(packXZ(makeModule())[:300]), "module m: unpack: xz: .*"},
	} {
		m := newModule("m.ko", []byte(c.data))
		_, err := m.Symbols()
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf(c.name))
	}
	m := newModule("m.ko", makeKernel(modern, x86Base).elf())
	_, err := m.Symbols()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
	_, err = m.Release()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
	sites, err := m.Sites()
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(sites, 0))
}
