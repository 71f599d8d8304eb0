package vm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/kallscope/kallscope/internal/vm/cpio"
	"github.com/kallscope/kallscope/internal/vm/kmod"
	"github.com/kallscope/kallscope/internal/vm/wire"
)

// transport are the modules that the virtio port needs where they are not
// built in (see package guest); a kernel has some of them only.
var transport = []string{"virtio_pci", "virtio_console"}

// etc are the few files that programs look up. Files of the same name win.
var etc = map[string]string{
	"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"/etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	"/etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
}

// guestModules are the modules for one guest.
type guestModules struct {
	transport, wanted []kmod.Module
}

func (c *Cmd) modules() (guestModules, error) {
	if c.Kernel.ModulesDir == "" {
		if len(c.Modules) > 0 {
			return guestModules{}, fmt.Errorf("load modules %v: kernel %s has no modules folder", c.Modules, c.Kernel.Release)
		}
		return guestModules{}, nil
	}
	set, err := kmod.Open(c.Kernel.ModulesDir, kmod.Options{Cache: c.Kernel.ModuleCache})
	if err != nil {
		return guestModules{}, err
	}
	need := slices.DeleteFunc(slices.Clone(transport), func(name string) bool { return !set.Has(name) })
	var m guestModules
	if m.transport, err = set.Resolve(need...); err != nil {
		return m, err
	}
	if m.wanted, err = set.Resolve(c.Modules...); err != nil {
		return m, err
	}
	m.wanted = slices.DeleteFunc(m.wanted, func(w kmod.Module) bool {
		return slices.ContainsFunc(m.transport, func(t kmod.Module) bool { return t.Name == w.Name })
	})
	return m, nil
}

// guestPath is where a module is in the guest.
func (k Kernel) guestPath(m kmod.Module) string {
	return path.Join("/lib/modules", k.Release, m.Path)
}

func (k Kernel) guestPaths(mods []kmod.Module) []string {
	var paths []string
	for _, m := range mods {
		paths = append(paths, k.guestPath(m))
	}
	return paths
}

// config is what init is told.
func (c *Cmd) config(m guestModules) wire.Config {
	cfg := wire.Config{
		Path:      c.Path,
		Args:      c.Args,
		Env:       c.Env,
		Dir:       c.Dir,
		UID:       c.UID,
		NoMount:   c.NoMount,
		Transport: c.Kernel.guestPaths(m.transport),
		Modules:   c.Kernel.guestPaths(m.wanted),
		Lenient:   slices.Contains(c.Modules, kmod.All),
		Sysctl:    c.Sysctl,
		Fetch:     c.fetchRoots(),
		Stdin:     c.Stdin != nil,
	}
	if len(cfg.Args) == 0 {
		cfg.Args = []string{c.Path}
	}
	if cfg.Env == nil {
		cfg.Env = DefaultEnv(c.UID)
	}
	if cfg.Dir == "" {
		cfg.Dir = "/"
	}
	return cfg
}

// DefaultEnv is the environment of a program for which none is given.
func DefaultEnv(uid int) []string {
	if uid != 0 {
		return []string{"PATH=" + DefaultPath, "HOME=/tmp"}
	}
	return []string{"PATH=" + DefaultPath, "HOME=/root", "USER=root"}
}

// writeInitramfs writes the guest's first file system and returns its size.
func (c *Cmd) writeInitramfs(file string) (int64, error) {
	mods, err := c.modules()
	if err != nil {
		return 0, err
	}
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<20)
	a := archive{Writer: cpio.NewWriter(b), seen: map[string]bool{}}
	if err := c.fill(a, mods); err != nil {
		return 0, err
	}
	if err := errors.Join(a.Close(), b.Flush()); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}

func (c *Cmd) fill(a archive, mods guestModules) error {
	if err := a.base(); err != nil {
		return err
	}
	for _, dir := range c.folders() {
		if err := a.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	init, err := c.initProgram()
	if err != nil {
		return err
	}
	if err := a.copy("/init", init); err != nil {
		return err
	}
	cfg, err := json.Marshal(c.config(mods))
	if err != nil {
		return err
	}
	if err := a.WriteFile(wire.ConfigPath, 0o644, cfg); err != nil {
		return err
	}
	for _, m := range slices.Concat(mods.transport, mods.wanted) {
		if err := a.WriteFile(c.Kernel.guestPath(m), 0o644, m.Data); err != nil {
			return err
		}
	}
	return c.fillFiles(a)
}

// folders are those that the program may expect: where it runs, and where it
// is to leave files.
func (c *Cmd) folders() []string {
	dirs := []string{path.Join("/", c.Dir)}
	for _, guest := range c.fetchRoots() {
		dirs = append(dirs, path.Dir(path.Join("/", guest)))
	}
	slices.Sort(dirs)
	return dirs
}

func (c *Cmd) fetchRoots() []string {
	roots := slices.AppendSeq(slices.Collect(maps.Keys(c.Fetch)), maps.Keys(c.FetchOptional))
	slices.Sort(roots)
	return slices.Compact(roots)
}

func (c *Cmd) fillFiles(a archive) error {
	files := maps.Clone(c.Files)
	if files == nil {
		files = map[string]string{}
	}
	if _, ok := files[c.Path]; !ok {
		files[c.Path] = c.Path
	}
	if err := checkStatic(files[c.Path]); err != nil {
		return err
	}
	for _, guest := range slices.Sorted(maps.Keys(files)) {
		if err := a.copy(guest, files[guest]); err != nil {
			return fmt.Errorf("copy %s: %w", files[guest], err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(etc)) {
		if !a.seen[name] {
			if err := a.WriteFile(name, 0o644, []byte(etc[name])); err != nil {
				return err
			}
		}
	}
	return nil
}

// archive is a cpio archive to which trees of the host are added.
type archive struct {
	*cpio.Writer
	seen map[string]bool
}

// base makes what has to be there before init runs, /dev/console foremost,
// without which it would have no standard error.
func (a archive) base() error {
	for _, d := range []string{"/dev", "/proc", "/sys", "/run", "/etc", "/root"} {
		if err := a.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{"/tmp", "/var/tmp"} {
		if err := a.Mkdir(d, 0o1777); err != nil {
			return err
		}
	}
	return a.Device("/dev/console", 0o600, 5, 1)
}

// copy adds a file or a folder of the host, links as what they point to.
func (a archive) copy(guest, host string) error {
	host, err := filepath.EvalSymlinks(host)
	if err != nil {
		return err
	}
	return filepath.WalkDir(host, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(host, p)
		if err != nil {
			return err
		}
		return a.add(path.Join("/", guest, filepath.ToSlash(rel)), p)
	})
}

func (a archive) add(guest, host string) error {
	info, err := os.Stat(host)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a dangling link in a copied folder
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return a.Mkdir(guest, uint32(info.Mode().Perm()))
	}
	if !info.Mode().IsRegular() || a.seen[guest] {
		return nil
	}
	a.seen[guest] = true
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.CopyFile(guest, uint32(info.Mode().Perm()), info.Size(), f)
}
