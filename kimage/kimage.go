// Package kimage reads the facts about a Linux kernel from its files, without
// running it: what /proc/kallsyms, /sys/kernel/btf/vmlinux and the lists of
// ftrace and kprobes would show, apart from where KASLR puts it.
//
//	im, err := kimage.Open("linux-image-6.12.deb")
//	defer im.Close()
//	symbols, err := im.Symbols() // 154,686 of them, in a tenth of a second
//
// It reads vmlinux; bzImage (vmlinuz of x86) with gzip, xz, lzma, bzip2, lz4 and
// zstd; arm64's Image, Image.gz and EFI zboot images; and all of these in Debian
// packages, whose modules it reads too. Nothing is assumed from a version: what
// is in an image is recognised by what it must look like.
//
// All addresses are those that the image is linked for. A running kernel adds
// one number to all of them, the difference between its _text and [Image.Text];
// per-CPU symbols of x86-64 before v6.15, which lie below 1 MiB, stay.
//
// Files may be damaged or made to do harm: every length is checked before it is
// believed, what is unpacked is bounded, and what does not fit is an error.
package kimage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/kallsyms"
)

// ErrAbsent says that an image does not have a fact: the kernel was built
// without it, or it is nowhere to be found. Other errors mean damage.
var ErrAbsent = errors.New("not in this image")

// Image is a kernel in a file. Each fact is read when it is first asked for, and
// once. An Image is safe for concurrent use, apart from Close.
type Image struct {
	file     *kernelFile
	packages *packages // nil without
	closers  []io.Closer

	symbols func() (*kallsyms.Table, error)
	marks   func() (landmarks, error)
	sites   func() (Sites, error)
	btf     func() (BTF, error)
	parsed  func() (*btfscan.BTF, error)
	release func() (string, error)
}

// Open opens a kernel: a kernel file, or one or several Debian packages of one
// kernel, of which one has the kernel itself and any have modules (from 7.3 on
// they are two packages). A package is unpacked as far as the kernel in it.
func Open(path string, more ...string) (_ *Image, err error) {
	im := &Image{}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.Close())
		}
	}()
	var files []namedBlob
	for _, p := range append([]string{path}, more...) {
		f, err := os.Open(p)
		if err != nil {
			return nil, err // names the operation and the path itself
		}
		im.closers = append(im.closers, f)
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", p)
		}
		files = append(files, namedBlob{p, blob{r: f, size: info.Size()}})
	}
	return im, im.open(files)
}

// New opens a kernel file or package of size bytes, which must not change while
// the image is in use.
func New(r io.ReaderAt, size int64) (*Image, error) {
	im := &Image{}
	if err := im.open([]namedBlob{{"image", blob{r: r, size: size}}}); err != nil {
		return nil, errors.Join(err, im.Close())
	}
	return im, nil
}

type namedBlob struct {
	name string
	blob blob
}

// maxPacking is how often a file is unpacked to get at the kernel: a bzImage in
// a .gz is two.
const maxPacking = 3

func (im *Image) open(files []namedBlob) error {
	var plain []namedBlob
	var debs []namedBlob
	for _, f := range files {
		if f.blob.isPackage() {
			debs = append(debs, f)
		} else {
			plain = append(plain, f)
		}
	}
	if len(plain) > 1 {
		return fmt.Errorf("%s and %s: two kernels, only one can be opened", plain[0].name, plain[1].name)
	}
	kernel := namedBlob{}
	if len(debs) > 0 {
		im.packages = &packages{files: debs}
		im.closers = append(im.closers, im.packages)
	}
	if len(plain) == 1 {
		kernel = plain[0]
	} else {
		var err error
		if kernel, err = im.packages.kernel(); err != nil {
			return err
		}
	}
	file, err := openKernel(kernel.blob, maxPacking)
	if err != nil {
		return fmt.Errorf("%s: %w", kernel.name, err)
	}
	im.file = file
	im.lazy()
	return nil
}

func (im *Image) lazy() {
	im.symbols = sync.OnceValues(im.file.space.readSymbols)
	im.marks = sync.OnceValues(im.readMarks)
	im.sites = sync.OnceValues(im.readSites)
	im.btf = sync.OnceValues(im.readBTF)
	im.parsed = sync.OnceValues(func() (*btfscan.BTF, error) {
		b, err := im.btf()
		if err != nil {
			return nil, err
		}
		return btfscan.Parse(b.Data, nil)
	})
	im.release = sync.OnceValues(im.readRelease)
}

// Close closes the files and forgets what was unpacked. Facts that were read
// stay valid; others cannot be read any more.
func (im *Image) Close() error {
	var errs []error
	for _, c := range slices.Backward(im.closers) {
		errs = append(errs, c.Close())
	}
	im.closers = nil
	if im.file != nil {
		im.file.space.blob.forget()
	}
	return errors.Join(errs...)
}

// Format says what the kernel file is, such as "bzImage (zstd)".
func (im *Image) Format() string { return im.file.format }

// Arch returns the architecture as Go names it (GOARCH), or the name of the ELF
// machine where Go has none.
func (im *Image) Arch() string { return im.file.arch }

// Symbols returns the symbols of vmlinux as /proc/kallsyms would list them. It
// fails with [ErrAbsent] if the image has no such table (CONFIG_KALLSYMS=n).
func (im *Image) Symbols() (*kallsyms.Table, error) { return im.symbols() }

// ELFSymbols returns the symbols of the file's own ELF symbol table, in its
// order. Only vmlinux has one, where it was not stripped; else it fails with
// [ErrAbsent].
func (im *Image) ELFSymbols() ([]Symbol, error) {
	if im.file.elf == nil {
		return nil, fmt.Errorf("ELF symbols: %w: the file is no vmlinux", ErrAbsent)
	}
	return im.file.elf.symbols()
}

// Text returns the address of _text that the image is linked for. A running
// kernel's _text, in its /proc/kallsyms, minus this is what to add to every
// other address.
func (im *Image) Text() (uint64, error) {
	marks, err := im.marks()
	if err != nil {
		return 0, err
	}
	text, ok := marks["_text"]
	if !ok {
		return 0, fmt.Errorf("symbol _text: %w", ErrAbsent)
	}
	return text, nil
}

func (im *Image) readMarks() (landmarks, error) {
	table, err := im.symbols()
	if err != nil {
		return nil, err
	}
	return landmarksOf(table), nil
}
