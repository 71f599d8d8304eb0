// Package cpio writes and reads archives in the "newc" form, the one the
// Linux kernel unpacks as initial RAM file system.
//
//	w := cpio.NewWriter(f)
//	w.WriteFile("init", 0o755, data)
//	w.Close()
//
// The form is described in the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst: a 110 byte
// ASCII header, the name and the data, each padded to four bytes.
//
// The reader is there for tests and for looking at what was written; it does
// not promise anything about hostile archives beyond not panicking.
package cpio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	magic     = "070701"
	headerLen = 110
	trailer   = "TRAILER!!!"

	// maxName is PATH_MAX: init/initramfs.c ignores entries with longer names.
	maxName = 4096
	// maxSize keeps sizes within the eight hexadecimal digits of the header.
	maxSize = 1<<32 - 1
)

// File types, the S_IFMT bits of [Header].Mode.
const (
	TypeMask    = 0o170000
	TypeRegular = 0o100000
	TypeDir     = 0o040000
	TypeSymlink = 0o120000
	TypeChar    = 0o020000
)

// ErrFormat is wrapped by every error about an archive that is not valid.
var ErrFormat = errors.New("not a valid newc archive")

// Header describes one entry of an archive.
type Header struct {
	// Name has no leading slash.
	Name string
	// Mode is type and permission as in struct stat.
	Mode uint32
	// Size is the number of data bytes; for a symbolic link, of the target.
	Size int64
	// Major and Minor number a device; zero for everything else.
	Major, Minor uint32
}

// Writer writes an archive. Not safe for concurrent use.
type Writer struct {
	w    io.Writer
	ino  uint32
	dirs map[string]bool
	err  error
}

// NewWriter returns a Writer that writes to w. It does not buffer.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, dirs: map[string]bool{"": true, ".": true}}
}

// WriteFile adds a regular file, and the folders above it that are missing.
func (w *Writer) WriteFile(name string, perm uint32, data []byte) error {
	return w.entry(Header{Name: name, Mode: TypeRegular | perm&0o7777, Size: int64(len(data))}, bytes.NewReader(data))
}

// CopyFile adds a regular file of exactly size bytes read from r.
func (w *Writer) CopyFile(name string, perm uint32, size int64, r io.Reader) error {
	return w.entry(Header{Name: name, Mode: TypeRegular | perm&0o7777, Size: size}, r)
}

// Mkdir adds a folder and those above it. Folders already there are skipped.
func (w *Writer) Mkdir(name string, perm uint32) error {
	name = clean(name)
	if w.dirs[name] {
		return w.err
	}
	if err := w.parents(name); err != nil {
		return err
	}
	w.dirs[name] = true
	return w.raw(Header{Name: name, Mode: TypeDir | perm&0o7777}, nil)
}

// Symlink adds a symbolic link called name that points to target.
func (w *Writer) Symlink(name, target string) error {
	return w.entry(Header{Name: name, Mode: TypeSymlink | 0o777, Size: int64(len(target))}, strings.NewReader(target))
}

// Device adds a character device node.
func (w *Writer) Device(name string, perm, major, minor uint32) error {
	return w.entry(Header{Name: name, Mode: TypeChar | perm&0o7777, Major: major, Minor: minor}, nil)
}

// Close writes the trailer. It does not close the underlying writer.
func (w *Writer) Close() error {
	return w.raw(Header{Name: trailer}, nil)
}

func (w *Writer) entry(h Header, data io.Reader) error {
	h.Name = clean(h.Name)
	if err := w.parents(h.Name); err != nil {
		return err
	}
	return w.raw(h, data)
}

func (w *Writer) parents(name string) error {
	for i, c := range name {
		if c != '/' || w.dirs[name[:i]] {
			continue
		}
		w.dirs[name[:i]] = true
		if err := w.raw(Header{Name: name[:i], Mode: TypeDir | 0o755}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) raw(h Header, data io.Reader) error {
	if w.err != nil {
		return w.err
	}
	if w.err = w.put(h, data); w.err != nil {
		w.err = fmt.Errorf("write cpio entry %q: %w", h.Name, w.err)
	}
	return w.err
}

func (w *Writer) put(h Header, data io.Reader) error {
	if err := h.check(); err != nil {
		return err
	}
	w.ino++
	if _, err := io.WriteString(w.w, h.encode(w.ino)); err != nil {
		return err
	}
	if data == nil {
		return nil
	}
	if _, err := io.CopyN(w.w, data, h.Size); err != nil {
		return err
	}
	_, err := io.WriteString(w.w, padding(h.Size))
	return err
}

func (h *Header) check() error {
	switch {
	case h.Name == "" || len(h.Name) >= maxName:
		return fmt.Errorf("name of %d bytes, want 1 to %d", len(h.Name), maxName-1)
	case h.Size < 0 || h.Size > maxSize:
		return fmt.Errorf("size %d does not fit the header", h.Size)
	}
	return nil
}

// encode returns header and padded name. Owner, times and links are always
// zero or one, so equal input gives equal archives.
func (h *Header) encode(ino uint32) string {
	nlink := 1
	if h.Mode&TypeMask == TypeDir {
		nlink = 2
	}
	s := fmt.Sprintf("%s%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", magic,
		ino, h.Mode, 0, 0, nlink, 0, h.Size, 0, 0, h.Major, h.Minor, len(h.Name)+1, 0, h.Name)
	return s + padding(int64(len(s)))
}

func padding(n int64) string {
	return "\x00\x00\x00"[:(4-n%4)%4]
}

func clean(name string) string {
	return strings.Trim(name, "/")
}
