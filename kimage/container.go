package kimage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/kallscope/kallscope/internal/inflate"
)

// maxImage bounds what a kernel may have unpacked. vmlinux without debug
// information has some 60 MB.
const maxImage = 512 << 20

// errNotKernel is wrapped with what was found instead.
var errNotKernel = errors.New("not a Linux kernel")

// kernelFile is what was found in a file.
type kernelFile struct {
	format  string // such as "bzImage (zstd)"
	arch    string
	release string // when the container says it
	space   *space
	elf     *elfFile // nil for bare images
}

// headerSize is as much as all containers need to be recognised.
const headerSize = 0x260

// openKernel recognises what b is and unpacks it, as often as depth says.
func openKernel(b blob, depth int) (*kernelFile, error) {
	h, err := b.start(headerSize)
	if err != nil {
		return nil, err
	}
	format := inflate.Detect(h)
	switch {
	case bytes.HasPrefix(h, []byte("\x7fELF")):
		return openVmlinux(b)
	case depth == 0:
		return nil, fmt.Errorf("%w: packed too often", errNotKernel)
	case isBzImage(h):
		return openBzImage(b, h, depth)
	case isZboot(h):
		return openZboot(b, h, depth)
	case isBare(h):
		return openBare(b)
	case format != "":
		return openPacked(b, inflate.Options{Format: format, Max: maxImage}, depth)
	}
	return nil, fmt.Errorf("%w: it begins with % x", errNotKernel, h[:min(8, len(h))])
}

func openVmlinux(b blob) (*kernelFile, error) {
	f, err := openELF(b)
	if err != nil {
		return nil, err
	}
	s, err := f.space()
	if err != nil {
		return nil, err
	}
	return &kernelFile{format: "vmlinux", arch: f.arch(), space: s, elf: f}, nil
}

// openPacked unpacks all of b and opens what comes out.
func openPacked(b blob, o inflate.Options, depth int) (*kernelFile, error) {
	if b.size > maxImage {
		return nil, fmt.Errorf("%d bytes, at most %d are read", b.size, maxImage)
	}
	packed, err := b.bytes(0, uint64(b.size))
	if err != nil {
		return nil, err
	}
	raw, err := inflate.All(packed, o)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	k, err := openKernel(memBlob(raw), depth-1)
	if err != nil {
		return nil, fmt.Errorf("unpacked: %w", err)
	}
	k.format = fmt.Sprintf("%s (%s)", k.format, o.Format)
	return k, nil
}

// The header of an x86 image, Documentation/arch/x86/boot.rst.
const (
	x86SetupSects = 0x1f1 // u8
	x86Magic      = 0x202 // "HdrS"
	x86Version    = 0x206 // u16
	x86Release    = 0x20e // u16, where uname -r begins, minus 0x200
	x86Payload    = 0x248 // u32, from the end of the setup code; since 2.08
	x86PayloadLen = 0x24c // u32
)

func isBzImage(h []byte) bool {
	return len(h) >= headerSize && string(h[x86Magic:x86Magic+4]) == "HdrS" && binary.LittleEndian.Uint16(h[x86Version:]) >= 0x208
}

func openBzImage(b blob, h []byte, depth int) (*kernelFile, error) {
	le := binary.LittleEndian
	setup := uint64(h[x86SetupSects])
	if setup == 0 {
		setup = 4 // by definition
	}
	off := (setup+1)*512 + uint64(le.Uint32(h[x86Payload:]))
	payload, err := b.part(off, uint64(le.Uint32(h[x86PayloadLen:])))
	if err != nil {
		return nil, fmt.Errorf("bzImage: payload: %w; is the file cut short?", err)
	}
	o, payload, err := sized(payload)
	if err != nil {
		return nil, fmt.Errorf("bzImage: %w", err)
	}
	k, err := openPacked(payload, o, depth)
	if err != nil {
		return nil, fmt.Errorf("bzImage: %w", err)
	}
	k.format = strings.Replace(k.format, "vmlinux", "bzImage", 1)
	k.release = x86ReleaseOf(b, h)
	return k, nil
}

// sized takes the size off that the kernel's build appends to all compressed
// files but those of gzip (scripts/Makefile.lib: size_append).
func sized(b blob) (inflate.Options, blob, error) {
	h, err := b.start(8)
	if err != nil {
		return inflate.Options{}, blob{}, err
	}
	o := inflate.Options{Format: inflate.Detect(h), Max: maxImage}
	switch {
	case o.Format == "":
		return o, b, fmt.Errorf("payload of no known compression, it begins with % x", h)
	case o.Format == inflate.Gzip || b.size < 8:
		return o, b, nil
	}
	tail, err := b.bytes(uint64(b.size-4), 4)
	if err != nil {
		return o, b, err
	}
	o.Size = int64(binary.LittleEndian.Uint32(tail))
	b, err = b.part(0, uint64(b.size-4))
	return o, b, err
}

// x86ReleaseOf returns the first word of the version string, or "".
func x86ReleaseOf(b blob, h []byte) string {
	at := uint64(binary.LittleEndian.Uint16(h[x86Release:])) + 0x200
	if at == 0x200 || at >= uint64(b.size) {
		return ""
	}
	text, err := b.bytes(at, min(maxRelease, uint64(b.size)-at))
	if err != nil {
		return ""
	}
	release, _, _ := strings.Cut(string(text), " ")
	if !isRelease(release) {
		return ""
	}
	return release
}

// An EFI zboot image (drivers/firmware/efi/libstub/zboot-header.S): "MZ", "zimg"
// at 4, offset and size of the payload u32 each at 8, its compression as text at
// 24.
func isZboot(h []byte) bool {
	return len(h) >= 56 && string(h[:2]) == "MZ" && string(h[4:8]) == "zimg"
}

func openZboot(b blob, h []byte, depth int) (*kernelFile, error) {
	off, size := binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	payload, err := b.part(uint64(off), uint64(size))
	if err != nil {
		return nil, fmt.Errorf("EFI zboot image: payload: %w; is the file cut short?", err)
	}
	start, err := payload.start(8)
	if err != nil {
		return nil, err
	}
	o := inflate.Options{Format: inflate.Detect(start), Max: maxImage}
	if o.Format == "" {
		return nil, fmt.Errorf("EFI zboot image: payload of no known compression, it says %.8q", h[24:32])
	}
	k, err := openPacked(payload, o, depth)
	if err != nil {
		return nil, fmt.Errorf("EFI zboot image: %w", err)
	}
	k.format += " in EFI zboot"
	return k, nil
}

// isBare looks for the header of arm64's Image, "ARM\x64" at 56
// (Documentation/arch/arm64/booting.rst).
func isBare(h []byte) bool {
	return len(h) >= 64 && string(h[56:60]) == "ARM\x64"
}

func openBare(b blob) (*kernelFile, error) {
	if b.size > maxImage {
		return nil, fmt.Errorf("%d bytes, at most %d are read", b.size, maxImage)
	}
	raw, err := b.bytes(0, uint64(b.size))
	if err != nil {
		return nil, err
	}
	return &kernelFile{format: "arm64 Image", arch: "arm64", space: newBareSpace(raw)}, nil
}
