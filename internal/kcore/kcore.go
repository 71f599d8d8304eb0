// Package kcore reads the running kernel's memory through /proc/kcore.
//
// It is the way past lists that the kernel writes slowly: a list of 40,000
// lines costs 200 to 400 ms to format under emulation and grows with the square
// of the number of modules, the memory behind it is half a megabyte. The symbols
// of vmlinux, of modules and the ftrace records are read like this. Reading
// takes root with CAP_SYS_RAWIO and no lockdown=confidentiality
// (fs/proc/kcore.c: open_kcore()), so there is always a list to fall back to.
package kcore

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// ErrUnmapped means that no part of /proc/kcore holds an address.
var ErrUnmapped = errors.New("address is not in kernel memory")

// Memory is the memory of the running kernel. It is safe for concurrent use.
type Memory struct {
	file     io.ReaderAt
	closer   io.Closer
	order    binary.ByteOrder
	segments []segment // by address
	notes    []byte
}

type segment struct{ addr, size, offset uint64 }

// maxNotes bounds the notes that are read: registers and a page of text.
const maxNotes = 1 << 16

// Open opens the file, usually /proc/kcore. It reads the headers and notes only.
func Open(path string) (*Memory, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m.closer = f
	return m, nil
}

func newMemory(f io.ReaderAt) (*Memory, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	if e.Class != elf.ELFCLASS64 || e.Type != elf.ET_CORE {
		return nil, errors.New("not a 64-bit core file")
	}
	m := &Memory{file: f, order: e.ByteOrder}
	for _, p := range e.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			m.segments = append(m.segments, segment{p.Vaddr, p.Filesz, p.Off})
		case elf.PT_NOTE:
			m.notes = make([]byte, min(p.Filesz, maxNotes))
			if _, err := p.ReadAt(m.notes, 0); err != nil {
				return nil, fmt.Errorf("notes: %w", err)
			}
		}
	}
	slices.SortFunc(m.segments, func(a, b segment) int { return cmp.Compare(a.addr, b.addr) })
	return m, nil
}

// Close closes the file.
func (m *Memory) Close() error { return m.closer.Close() }

// Read fills p with the memory at addr. It fails with [ErrUnmapped] when a part
// of it is not there.
func (m *Memory) Read(addr uint64, p []byte) error {
	s, err := m.find(addr, uint64(len(p)))
	if err != nil {
		return err
	}
	n, err := m.file.ReadAt(p, int64(s.offset+addr-s.addr))
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, err)
}

// find returns the segment that has n bytes at addr.
func (m *Memory) find(addr, n uint64) (segment, error) {
	i, found := slices.BinarySearchFunc(m.segments, addr, func(s segment, a uint64) int { return cmp.Compare(s.addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr-m.segments[i].addr > m.segments[i].size || n > m.segments[i].size-(addr-m.segments[i].addr) {
		return segment{}, fmt.Errorf("read %d bytes at %#x: %w", n, addr, ErrUnmapped)
	}
	return m.segments[i], nil
}

// take returns n bytes of memory, and allocates nothing where they are not there.
func (m *Memory) take(addr, n uint64) ([]byte, error) {
	if err := m.has(addr, n); err != nil {
		return nil, err
	}
	p := make([]byte, n)
	return p, m.Read(addr, p)
}

// has fails unless n bytes are at addr. Of many it reads the last one: a file may
// be shorter than its headers say.
func (m *Memory) has(addr, n uint64) error {
	if _, err := m.find(addr, n); err != nil || n < 1<<20 {
		return err
	}
	return m.Read(addr+n-1, make([]byte, 1))
}

// Uint64 reads one number.
func (m *Memory) Uint64(addr uint64) (uint64, error) {
	var b [8]byte
	err := m.Read(addr, b[:])
	return m.order.Uint64(b[:]), err
}

// maxIDSet is more than any set of BTF ids has.
const maxIDSet = 1 << 16

// IDSet reads a struct btf_id_set (include/linux/btf_ids.h): a number of type
// ids, and the ids, four bytes each.
func (m *Memory) IDSet(addr uint64) ([]uint32, error) {
	var head [4]byte
	if err := m.Read(addr, head[:]); err != nil {
		return nil, err
	}
	n := m.order.Uint32(head[:])
	if n > maxIDSet {
		return nil, fmt.Errorf("%d ids: not believable", n)
	}
	data, err := m.take(addr+4, 4*uint64(n))
	if err != nil {
		return nil, err
	}
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = m.order.Uint32(data[4*i:])
	}
	return ids, nil
}

// ByteOrder returns the byte order of the kernel.
func (m *Memory) ByteOrder() binary.ByteOrder { return m.order }
