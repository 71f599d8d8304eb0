package kimage

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
)

// elfFile is what is needed of an ELF file.
type elfFile struct {
	*elf.File
	blob blob
}

// openELF reads the headers. debug/elf does not promise to withstand every
// file, hence the recover.
func openELF(b blob) (f *elfFile, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("malformed ELF file: %v", p)
		}
	}()
	file, err := elf.NewFile(io.NewSectionReader(b.r, 0, b.size))
	if err != nil {
		return nil, fmt.Errorf("malformed ELF file: %w", err)
	}
	if file.Class != elf.ELFCLASS64 {
		return nil, errors.New("a 32-bit ELF file: only 64-bit kernels are read")
	}
	return &elfFile{file, b}, nil
}

// machines are the architectures by Go's names.
var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_RISCV: "riscv64",
	elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64",
}

func (f *elfFile) arch() string {
	switch {
	case f.Machine == elf.EM_PPC64 && f.Data == elf.ELFDATA2LSB:
		return "ppc64le"
	case f.Machine == elf.EM_PPC64:
		return "ppc64"
	case machines[f.Machine] != "":
		return machines[f.Machine]
	}
	return f.Machine.String()
}

// bytes returns the content of a section.
func (f *elfFile) bytes(s *elf.Section) ([]byte, error) {
	switch {
	case s.Type == elf.SHT_NOBITS:
		return nil, fmt.Errorf("section %s: the file does not have its content", s.Name)
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return nil, fmt.Errorf("section %s is compressed; decompress it with objcopy --decompress-debug-sections", s.Name)
	}
	b, err := f.blob.bytes(s.Offset, s.FileSize)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	return b, nil
}

// named returns the content of the section with a name, nil if there is none.
func (f *elfFile) named(name string) ([]byte, error) {
	s := f.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	return f.bytes(s)
}

// space returns what the kernel has in memory, and how it relocates itself.
func (f *elfFile) space() (*space, error) {
	var parts []part
	var relocs []reloc
	total := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
			continue
		}
		if total += s.FileSize; s.FileSize > uint64(f.blob.size) || total > uint64(f.blob.size) {
			return nil, fmt.Errorf("section %s: the sections have more bytes than the file, %#x", s.Name, f.blob.size)
		}
		parts = append(parts, part{name: s.Name, addr: s.Addr, off: s.Offset, size: s.FileSize})
		if s.Type != elf.SHT_RELA {
			continue
		}
		more, err := f.relocs(s)
		if err != nil {
			return nil, err
		}
		relocs = append(relocs, more...)
	}
	sp := newSpace(f.blob, f.ByteOrder, parts)
	slices.SortFunc(relocs, func(a, b reloc) int { return compare(a.place, b.place) })
	sp.relocs = relocs
	return sp, nil
}

// relativeTypes are the R_*_RELATIVE of each architecture: the value is the
// addend. Kernels that can be loaded anywhere (CONFIG_RELOCATABLE) have hardly
// any others.
var relativeTypes = map[elf.Machine]uint32{
	elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE),
	elf.EM_RISCV: uint32(elf.R_RISCV_RELATIVE), elf.EM_S390: uint32(elf.R_390_RELATIVE),
	elf.EM_PPC64: uint32(elf.R_PPC64_RELATIVE), elf.EM_LOONGARCH: uint32(elf.R_LARCH_RELATIVE),
}

// Elf64_Rela: place u64, type u32 and symbol u32 in one u64, addend i64.
const relaSize = 24

func (f *elfFile) relocs(s *elf.Section) ([]reloc, error) {
	b, err := f.bytes(s)
	if err != nil {
		return nil, err
	}
	want := relativeTypes[f.Machine]
	list := make([]reloc, 0, len(b)/relaSize)
	for ; len(b) >= relaSize; b = b[relaSize:] {
		if uint32(f.ByteOrder.Uint64(b[8:])) == want {
			list = append(list, reloc{f.ByteOrder.Uint64(b), f.ByteOrder.Uint64(b[16:])})
		}
	}
	return list, nil
}
