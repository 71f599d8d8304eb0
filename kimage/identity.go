package kimage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kallscope/kallscope/internal/inflate"
)

// maxRelease is more than the 65 bytes that uname has (__NEW_UTS_LEN).
const maxRelease = 128

// isRelease says whether s could be what uname -r prints.
func isRelease(s string) bool {
	if s == "" || len(s) >= maxRelease || s[0] < '0' || s[0] > '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Release returns what uname -r would print, from the header of the file or the
// kernel's banner.
func (im *Image) Release() (string, error) { return im.release() }

func (im *Image) readRelease() (string, error) {
	if im.file.release != "" {
		return im.file.release, nil
	}
	s := im.file.space
	for _, p := range s.searchOrder() {
		b, err := s.content(p)
		if err != nil {
			return "", fmt.Errorf("release: %w", err)
		}
		if release := bannerRelease(b); release != "" {
			return release, nil
		}
	}
	return "", fmt.Errorf("release: %w: it has no banner", ErrAbsent)
}

// bannerRelease returns the release in the first linux_banner of b, or "".
func bannerRelease(b []byte) string {
	const banner = "Linux version "
	for {
		at := bytes.Index(b, []byte(banner))
		if at < 0 {
			return ""
		}
		b = b[at+len(banner):]
		release, _, found := bytes.Cut(b[:min(maxRelease, len(b))], []byte(" "))
		if found && isRelease(string(release)) {
			return string(release)
		}
	}
}

// BuildID returns the GNU build id in hexadecimal, as /sys/kernel/notes has it.
func (im *Image) BuildID() (string, error) {
	notes, err := im.notes()
	if err != nil {
		return "", fmt.Errorf("build id: %w", err)
	}
	if id := buildID(notes, im.file.space.order); id != "" {
		return id, nil
	}
	return "", fmt.Errorf("build id: %w", ErrAbsent)
}

// notes returns the kernel's own notes: a bare image has others too, those of
// the vDSOs, which only the symbols tell apart.
func (im *Image) notes() ([]byte, error) {
	if f := im.file.elf; f != nil {
		return f.notes()
	}
	marks, err := im.marks()
	if err != nil {
		return nil, err
	}
	from, to, ok := marks.bounds("__start_notes", "__stop_notes")
	if !ok {
		return nil, fmt.Errorf("symbols __start_notes, __stop_notes: %w", ErrAbsent)
	}
	return im.file.space.bytes(from, to)
}

// notes returns the content of the first section of notes with a build id,
// empty without one.
func (f *elfFile) notes() ([]byte, error) {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		b, err := f.bytes(s)
		if err != nil {
			return nil, err
		}
		if buildID(b, f.ByteOrder) != "" {
			return b, nil
		}
	}
	return nil, nil
}

// buildID returns the GNU build id of ELF notes, or "". A note is the lengths of
// name and content, a type, the name and the content, each at a multiple of 4.
func buildID(notes []byte, order binary.ByteOrder) string {
	const typeBuildID = 3 // NT_GNU_BUILD_ID, include/linux/elfnote.h
	for len(notes) >= 12 {
		name, desc := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:]))
		descAt := 12 + (name+3)&^3
		end := descAt + desc
		if end > uint64(len(notes)) {
			return ""
		}
		if order.Uint32(notes[8:]) == typeBuildID && string(notes[12:12+name]) == "GNU\x00" {
			return hex.EncodeToString(notes[descAt:end])
		}
		notes = notes[min((end+3)&^3, uint64(len(notes))):]
	}
	return ""
}

// config unpacks the configuration that lies between two marks in .rodata
// (kernel/configs.c).
func (s *space) config() ([]byte, error) {
	for _, p := range s.searchOrder() {
		b, err := s.content(p)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		_, b, found := bytes.Cut(b, []byte("IKCFG_ST"))
		b, _, closed := bytes.Cut(b, []byte("IKCFG_ED"))
		if !found || !closed || inflate.Detect(b) != inflate.Gzip {
			continue
		}
		config, err := inflate.All(b, inflate.Options{Format: inflate.Gzip, Max: maxConfig})
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		return config, nil
	}
	return nil, fmt.Errorf("configuration: %w (CONFIG_IKCONFIG is off)", ErrAbsent)
}
