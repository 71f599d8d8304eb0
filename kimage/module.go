package kimage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/inflate"
)

// Module is a kernel module in a file, .ko, compressed or not. It is unpacked
// when it is first asked for more than its name, and kept so. A Module is safe
// for concurrent use.
type Module struct {
	name  string
	image *Image // nil for a file of its own
	file  func() (*elfFile, error)
}

// maxModule bounds what a module may have unpacked. amdgpu has 25 MB, and with
// debug information some 300.
const maxModule = 512 << 20

// OpenModule reads the module in a file. Whether its BTF fits a kernel, it
// cannot know.
func OpenModule(path string) (*Module, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err // names the operation and the path itself
	}
	return newModule(filepath.Base(path), content), nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxModule:
		return nil, fmt.Errorf("read %s: %d bytes, at most %d are read", path, info.Size(), maxModule)
	}
	return os.ReadFile(path)
}

func newModule(file string, packed []byte) *Module {
	m := &Module{name: moduleName(file)}
	m.file = sync.OnceValues(func() (*elfFile, error) {
		f, err := openModule(packed)
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.name, err)
		}
		return f, nil
	})
	return m
}

// moduleName is the kernel's name of the module in a file (scripts/Makefile.lib:
// name-fix).
func moduleName(file string) string {
	name, _, _ := strings.Cut(file, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func openModule(b []byte) (*elfFile, error) {
	if format := inflate.Detect(b); format != "" {
		var err error
		if b, err = inflate.All(b, inflate.Options{Format: format, Max: maxModule}); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	return openELF(memBlob(b))
}

// Name returns the name that the kernel has for the module, by its file's.
func (m *Module) Name() string { return m.name }

// Release returns the release of the kernel that the module was built for: the
// first word of its vermagic.
func (m *Module) Release() (string, error) {
	f, err := m.file()
	if err != nil {
		return "", err
	}
	info, err := f.named(".modinfo")
	if err != nil {
		return "", m.wrap(err)
	}
	for field := range bytes.SplitSeq(info, []byte{0}) {
		if magic, ok := bytes.CutPrefix(field, []byte("vermagic=")); ok {
			release, _, _ := bytes.Cut(magic, []byte{' '})
			return string(release), nil
		}
	}
	return "", m.wrap(fmt.Errorf("vermagic: %w", ErrAbsent))
}

// BuildID returns the GNU build id in hexadecimal, which
// /sys/module/NAME/notes/.note.gnu.build-id has for a loaded module.
func (m *Module) BuildID() (string, error) {
	f, err := m.file()
	if err != nil {
		return "", err
	}
	notes, err := f.notes()
	if err != nil {
		return "", m.wrap(err)
	}
	if id := buildID(notes, f.ByteOrder); id != "" {
		return id, nil
	}
	return "", m.wrap(fmt.Errorf("build id: %w", ErrAbsent))
}

// BTF returns the module's own BTF, whose ids and strings continue those of
// vmlinux; what /sys/kernel/btf/NAME would have. For a module of an [Image] it is
// checked against the BTF of that, and an error if it cannot be built on it. It
// fails with [ErrAbsent] for modules without.
func (m *Module) BTF() (BTF, error) {
	f, err := m.file()
	if err != nil {
		return BTF{}, err
	}
	b, err := f.btf()
	if err == nil {
		err = m.checkBTF(b)
	}
	if err != nil {
		return BTF{}, m.wrap(err)
	}
	return b, nil
}

func (m *Module) checkBTF(b BTF) error {
	var base *btfscan.BTF
	var err error
	switch {
	case b.Base != nil:
		base, err = btfscan.Parse(b.Base, nil)
	case m.image == nil:
		return nil
	default:
		base, err = m.image.parsed()
	}
	if err != nil {
		return fmt.Errorf("base BTF: %w", err)
	}
	if _, err := btfscan.Parse(b.Data, base); err != nil {
		return fmt.Errorf("BTF does not fit its base: %w", err)
	}
	return nil
}

// Symbols returns the symbols of the module, in its file's order. The kernel
// lists them in /proc/kallsyms with addresses, those of .init sections only
// while the module starts.
func (m *Module) Symbols() ([]Symbol, error) {
	f, err := m.file()
	if err != nil {
		return nil, err
	}
	list, err := f.symbols()
	if err != nil {
		return nil, m.wrap(err)
	}
	return list, nil
}

// siteSections are where the compiler notes the sites: by architecture, and by
// how it was told to leave room for them (FTRACE_CALLSITE_SECTION).
var siteSections = []string{"__mcount_loc", "__patchable_function_entries"}

// Sites returns the places that ftrace patches, as the compiler noted them, in
// its order: on arm64 they are in front of the instruction that
// available_filter_functions_addrs shows.
func (m *Module) Sites() ([]Location, error) {
	f, err := m.file()
	if err != nil {
		return nil, err
	}
	for _, name := range siteSections {
		sites, err := f.pointers(name)
		if err != nil {
			return nil, m.wrap(err)
		}
		if len(sites) > 0 {
			return sites, nil
		}
	}
	return nil, nil
}

func (m *Module) wrap(err error) error { return fmt.Errorf("module %s: %w", m.name, err) }
