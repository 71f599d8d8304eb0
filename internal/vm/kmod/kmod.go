// Package kmod finds kernel modules below a /lib/modules/RELEASE folder and
// puts them in the order in which they can be loaded.
//
//	set, err := kmod.Open("/lib/modules/6.12.1", kmod.Options{})
//	mods, err := set.Resolve("nf_tables", "veth")
//
// Debian's packages have no modules.dep: depmod writes it at installation, and
// these packages are only unpacked. So dependencies come from where depmod's
// own come from, the .modinfo section of each module ("depends=" by modpost,
// "softdep=pre:" by hand); a modules.dep is not needed and not read.
package kmod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// All stands for every module of the kernel in [Set.Resolve], except those
// that test the kernel while they load: they may take minutes (test_bpf, two
// of them) or are meant to do harm. They can still be named.
const All = "all"

// selfTests match the names of the modules that All leaves out.
var selfTests = []string{
	"test_*", "*_test", "*_tests", "*_selftest", "*kunit*", "*torture*", "*_benchmark",
	"dmatest", "tcrypt",
}

// ErrNotFound is wrapped when a kernel has no module of a name.
var ErrNotFound = errors.New("no such module")

// Options for [Open].
type Options struct {
	// Cache is a folder that keeps decompressed modules. Empty means none:
	// each use decompresses again, at some 40 MB/s with xz(1) and a tenth of
	// that without.
	Cache string
}

// Module is one module, ready to be loaded.
type Module struct {
	// Name is the kernel's name, with underscores: nf_tables.
	Name string
	// Path is relative to the modules folder, without the suffix of a
	// compressor: kernel/net/netfilter/nf_tables.ko.
	Path string
	// Data is the decompressed file.
	Data []byte
}

// Set is the modules of one kernel. Safe for concurrent use once opened.
type Set struct {
	dir     string
	files   map[string]string // name → path relative to dir
	builtin map[string]bool
	cache   string
}

// Open indexes the modules below dir by name without opening them, some 20 ms
// for 4,000. A folder without a single module is no error.
func Open(dir string, opts Options) (*Set, error) {
	s := &Set{dir: dir, files: map[string]string{}, cache: opts.Cache}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name, ok := moduleName(d.Name()); ok {
			rel, _ := filepath.Rel(dir, p)
			s.files[name] = filepath.ToSlash(rel)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("index modules: %w", err)
	}
	if s.builtin, err = readBuiltin(filepath.Join(dir, "modules.builtin")); err != nil {
		return nil, fmt.Errorf("index modules: %w", err)
	}
	return s, nil
}

// Names returns the names of all modules, sorted.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.files))
	for n := range s.files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Has says whether name is a loadable module of this kernel.
func (s *Set) Has(name string) bool {
	return s.files[normalize(name)] != ""
}

// Resolve returns the named modules and what they depend on, each once, every
// module after those it needs. [All] names nearly all. Modules built into the
// kernel are left out; a name the kernel does not have wraps [ErrNotFound].
// The order is the same for the same arguments.
func (s *Set) Resolve(names ...string) ([]Module, error) {
	if slices.Contains(names, All) {
		names = slices.DeleteFunc(s.Names(), isSelfTest)
		s.fill(names)
	}
	w := walk{set: s, seen: map[string]bool{}}
	for _, n := range names {
		if err := w.visit(normalize(n)); err != nil {
			return nil, fmt.Errorf("module %s: %w", n, err)
		}
	}
	return w.order, nil
}

func isSelfTest(name string) bool {
	return slices.ContainsFunc(selfTests, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// walk is one depth-first visit of the dependency graph.
type walk struct {
	set   *Set
	seen  map[string]bool
	order []Module
}

func (w *walk) visit(name string) error {
	if w.seen[name] || w.set.builtin[name] {
		return nil
	}
	w.seen[name] = true
	m, err := w.set.load(name)
	if err != nil {
		return err
	}
	needs, err := Depends(m.Data)
	if err != nil {
		return err
	}
	for _, d := range needs.Hard {
		if err := w.visit(d); err != nil {
			return fmt.Errorf("needs %s: %w", d, err)
		}
	}
	for _, d := range needs.Soft {
		// A soft dependency may be missing, see modprobe.d(5).
		if err := w.visit(d); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("wants %s: %w", d, err)
		}
	}
	w.order = append(w.order, m)
	return nil
}

func (s *Set) load(name string) (Module, error) {
	file, ok := s.files[name]
	if !ok {
		return Module{}, fmt.Errorf("%w in %s", ErrNotFound, s.dir)
	}
	data, err := s.read(name, file)
	if err != nil {
		return Module{}, err
	}
	rel := path.Join(path.Dir(file), trimCompression(path.Base(file)))
	return Module{Name: name, Path: rel, Data: data}, nil
}

// readBuiltin reads modules.builtin: one path of a module per line.
func readBuiltin(file string) (map[string]bool, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if name, ok := moduleName(path.Base(strings.TrimSpace(line))); ok {
			names[name] = true
		}
	}
	return names, nil
}

// moduleName returns the module's name for a file name, if it is one.
func moduleName(file string) (string, bool) {
	name, ok := strings.CutSuffix(trimCompression(file), ".ko")
	return normalize(name), ok
}

// normalize maps dashes to underscores, as the kernel names modules.
func normalize(name string) string {
	return strings.ReplaceAll(name, "-", "_")
}
