package btfscan

import (
	"debug/elf"
	"fmt"
	"io"
)

// FromELF returns the BTF of an ELF file: vmlinux, a module, a BPF object. base
// is for modules with split BTF and may be nil.
//
// A module that brings its own distilled base (.BTF.base, Linux 6.11) gets that
// one whatever base is; the result is marked, see [BTF.Distilled]. FromELF fails
// with [ErrNoBTF] in the chain for files without BTF.
func FromELF(r io.ReaderAt, base *BTF) (*BTF, error) {
	data, baseData, err := btfSections(r)
	if err != nil {
		return nil, fmt.Errorf("read ELF: %w", err)
	}
	if data == nil {
		return nil, fmt.Errorf("read ELF: %w: built without debug info, or stripped", ErrNoBTF)
	}
	if baseData == nil {
		return Parse(data, base)
	}
	if base, err = Parse(baseData, nil); err != nil {
		return nil, fmt.Errorf("section .BTF.base: %w", err)
	}
	base.distilled = true
	b, err := Parse(data, base)
	if err != nil {
		return nil, err
	}
	b.distilled = true
	return b, nil
}

// btfSections reads .BTF and .BTF.base; nil is for missing ones.
func btfSections(r io.ReaderAt) (data, base []byte, err error) {
	// debug/elf does not promise to withstand every file.
	defer func() {
		if p := recover(); p != nil {
			data, base, err = nil, nil, fmt.Errorf("malformed ELF file: %v", p)
		}
	}()
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if data, err = sectionBytes(f, ".BTF"); err != nil {
		return nil, nil, err
	}
	if base, err = sectionBytes(f, ".BTF.base"); err != nil {
		return nil, nil, err
	}
	return data, base, nil
}

func sectionBytes(f *elf.File, name string) ([]byte, error) {
	s := f.Section(name)
	switch {
	case s == nil || s.Type == elf.SHT_NOBITS:
		return nil, nil
	case s.ReaderAt == nil || s.Flags&elf.SHF_COMPRESSED != 0:
		return nil, fmt.Errorf("section %s at byte %d is compressed; decompress it with objcopy --decompress-debug-sections", name, s.Offset)
	case s.FileSize > maxSize:
		return nil, fmt.Errorf("section %s at byte %d: %d bytes, at most %d are read", name, s.Offset, s.FileSize, maxSize)
	}
	data, err := readSection(s, int64(s.FileSize))
	if err != nil {
		return nil, fmt.Errorf("section %s at byte %d: %w", name, s.Offset, err)
	}
	return data, nil
}

// readSection makes sure that the last byte is there before it allocates.
func readSection(r io.ReaderAt, size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	if _, err := r.ReadAt(make([]byte, 1), size-1); err != nil {
		return nil, fmt.Errorf("%d bytes, but the file is cut: %w", size, err)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), data); err != nil {
		return nil, err
	}
	return data, nil
}
