package kimage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// BTF is raw BTF, and how it was found.
type BTF struct {
	Data []byte
	// Base is the distilled base that an out-of-tree module brings along
	// (.BTF.base, v6.11); nil otherwise. With it, ids are not those of the
	// running kernel.
	Base []byte
	// From says where it was: a section, symbols around it, or, where there is
	// neither, that it was searched for by its header.
	From string
}

// BTF returns the BTF of vmlinux, byte for byte what /sys/kernel/btf/vmlinux
// would have. It fails with [ErrAbsent] for kernels without
// (CONFIG_DEBUG_INFO_BTF=n).
func (im *Image) BTF() (BTF, error) { return im.btf() }

func (im *Image) readBTF() (BTF, error) {
	if f := im.file.elf; f != nil {
		return f.btf()
	}
	if marks, err := im.marks(); err == nil {
		if from, to, ok := marks.bounds("__start_BTF", "__stop_BTF"); ok {
			data, err := im.file.space.bytes(from, to)
			return BTF{Data: bytes.Clone(data), From: "symbols __start_BTF and __stop_BTF"}, err
		}
	}
	s := im.file.space
	b, err := s.content(s.parts[0])
	if err != nil {
		return BTF{}, err
	}
	if data := searchBTF(b); data != nil {
		return BTF{Data: bytes.Clone(data), From: "searched for by its header"}, nil
	}
	return BTF{}, fmt.Errorf("BTF: %w: neither by symbols nor by its header", ErrAbsent)
}

// btf reads the sections of BTF. What it returns does not keep the file in
// memory.
func (f *elfFile) btf() (BTF, error) {
	data, err := f.named(".BTF")
	if err != nil {
		return BTF{}, err
	}
	if data == nil {
		return BTF{}, fmt.Errorf("section .BTF: %w", ErrAbsent)
	}
	base, err := f.named(".BTF.base")
	return BTF{Data: bytes.Clone(data), Base: bytes.Clone(base), From: "section .BTF"}, err
}

// searchBTF returns the largest of the first BTFs in a bare image that stand
// alone, or nil. There is the kernel's, and tiny ones of BPF programs that the
// kernel brings along.
func searchBTF(b []byte) []byte {
	const tries = 64
	var largest []byte
	for range tries {
		at := bytes.Index(b, []byte{0x9f, 0xeb, 1, 0})
		if at < 0 {
			break
		}
		data := btfAt(b[at:])
		if len(data) > len(largest) {
			largest = data
		}
		b = b[at+max(4, len(data)):]
	}
	return largest
}

// btfAt returns the BTF that b begins with, or nil. The header is that of
// version 1: its length at 4, offsets and lengths of types and strings from 8.
func btfAt(b []byte) []byte {
	if len(b) < 24 {
		return nil
	}
	u32 := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(b[at:])) }
	header, types, strings := u32(4), u32(12), u32(20)
	end := header + max(u32(8)+types, u32(16)+strings)
	if header < 24 || header > 64 || types == 0 || strings == 0 || end > uint64(len(b)) {
		return nil
	}
	data := b[:end:end]
	if _, err := btfscan.Parse(data, nil); err != nil {
		return nil
	}
	return data
}
