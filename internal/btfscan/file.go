package btfscan

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is the BTF of a file, perhaps mapped.
type File struct {
	*BTF
	close func() error
}

// Open reads the BTF in a file: raw, as below /sys/kernel/btf, or in an ELF
// file. base is as in [Parse] and [FromELF].
//
// Files of sysfs are mapped where the kernel allows it (vmlinux since 6.16) and
// else read. Other files are always read: a map of a file that somebody cuts
// would end the program.
func Open(path string, base *BTF) (_ *File, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open BTF: %w", err)
	}
	defer f.Close()

	if isELF(f) {
		b, err := FromELF(f, base)
		if err != nil {
			return nil, fmt.Errorf("BTF of %s: %w", path, err)
		}
		return &File{BTF: b}, nil
	}

	data, unmap, err := contents(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	b, err := Parse(data, base)
	if err != nil {
		if unmap != nil {
			err = errors.Join(err, unmap())
		}
		return nil, fmt.Errorf("BTF of %s: %w", path, err)
	}
	return newFile(b, unmap), nil
}

func newFile(b *BTF, unmap func() error) *File {
	f := &File{BTF: b}
	if unmap != nil {
		f.close = sync.OnceValue(unmap)
	}
	return f
}

// Close releases a mapped file. The BTF, split BTF on top of it and all its
// strings are unusable afterwards. Closing again does nothing.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// Mapped says whether [File.Close] takes the memory away.
func (f *File) Mapped() bool { return f.close != nil }

func isELF(r io.ReaderAt) bool {
	start := make([]byte, len(elf.ELFMAG))
	_, err := r.ReadAt(start, 0)
	return err == nil && bytes.Equal(start, []byte(elf.ELFMAG))
}

// contents maps or reads f. unmap is nil for what was read.
func contents(f *os.File) (data []byte, unmap func() error, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	if size > maxSize {
		return nil, nil, fmt.Errorf("%d bytes, at most %d are read", size, maxSize)
	}
	if data, unmap := mapSysfs(f, size); unmap != nil {
		return data, unmap, nil
	}
	data, err = readSized(f, size)
	return data, nil, err
}

// readSized reads all of r. size is what to expect, not a limit.
func readSized(r io.Reader, size int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := buf.ReadFrom(io.LimitReader(r, maxSize+1))
	return buf.Bytes(), err
}
