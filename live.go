package kallscope

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/tracefs"
	"github.com/kallscope/kallscope/kallsyms"
)

// LiveOptions say where the facts of the running kernel are read. The zero
// value is right outside of tests.
type LiveOptions struct {
	// Root is the folder that has proc and sys; empty means "/".
	Root string
}

// Live returns the running kernel. It reads the release and the build id; all
// else is read when a query first needs it. It fails where there is no Linux
// kernel to ask.
func Live(o LiveOptions) (*Kernel, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	release, err := os.ReadFile(filepath.Join(o.Root, "proc/sys/kernel/osrelease"))
	if err != nil {
		return nil, fmt.Errorf("no running Linux kernel: %w", err)
	}
	id := Identity{Release: string(bytes.TrimSpace(release)), Arch: runtime.GOARCH}
	if notes, err := os.ReadFile(filepath.Join(o.Root, "sys/kernel/notes")); err == nil {
		id.BuildID = buildID(notes)
	}
	return newKernel(id, newLive(o.Root)), nil
}

// buildID returns the GNU build id of ELF notes in this machine's byte order,
// or "".
func buildID(notes []byte) string {
	const typeBuildID = 3 // NT_GNU_BUILD_ID, include/linux/elfnote.h
	order := binary.NativeEndian
	for len(notes) >= 12 {
		name, desc := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:]))
		typ := order.Uint32(notes[8:])
		descAt := 12 + (name+3)&^3
		end := descAt + (desc+3)&^3
		if end > uint64(len(notes)) {
			return ""
		}
		if typ == typeBuildID && bytes.Equal(notes[12:12+name], []byte("GNU\x00")) {
			return hex.EncodeToString(notes[descAt : descAt+desc])
		}
		notes = notes[end:]
	}
	return ""
}

// live is the source that reads the running kernel.
type live struct {
	root       string
	vmlinux    func() (*kallsyms.Table, error)
	vmlinuxBTF func() (*btfscan.BTF, error)
	many       int // modules, see manyModules

	mu   sync.Mutex
	slow []string // what was read in a slower way, and why
}

func newLive(root string) *live {
	l := &live{root: root, many: manyModules}
	l.vmlinux = sync.OnceValues(l.readVmlinux)
	l.vmlinuxBTF = sync.OnceValues(func() (*btfscan.BTF, error) { return l.readBTF(Vmlinux, nil) })
	return l
}

func (l *live) path(name string) string { return filepath.Join(l.root, name) }

func (l *live) symbols(s scope) (*kallsyms.Table, error) {
	switch s {
	case scopeVmlinux:
		return l.vmlinux()
	case scopeModules:
		table, err := l.symbolsFromMemory()
		if err == nil {
			return table, nil
		}
		l.fallBack("symbols of modules", err)
	}
	return l.readSymbols(s)
}

// fallBack notes that facts are read from the kernel's lists.
func (l *live) fallBack(what string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = append(l.slow, fmt.Sprintf("%s not read from memory: %v", what, why))
}

func (l *live) fallbacks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.slow)
}

func (l *live) readSymbols(s scope) (*kallsyms.Table, error) {
	path := l.path("proc/kallsyms")
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("kernel symbols: %w%s", err, l.permissionHint(err))
	}
	defer f.Close()
	var o kallsyms.Options
	if s == scopeVmlinux {
		o.Visit = func(line *kallsyms.Line) kallsyms.Action {
			if len(line.Module) > 0 {
				return kallsyms.Stop
			}
			return kallsyms.Keep
		}
	}
	table, err := kallsyms.Read(f, o)
	switch {
	case errors.Is(err, kallsyms.ErrEmpty):
		return nil, fmt.Errorf("%s: %w; the kernel was built without CONFIG_KALLSYMS, or something is mounted over the file", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}

// sites prefers memory, which is read in a twentieth of the time of the list
// and needs no tracefs.
func (l *live) sites(s scope) (*siteList, error) {
	list, err := l.sitesFromMemory()
	if err == nil {
		return list, nil
	}
	l.fallBack("sites", err)
	list, err = l.readSites(tracefs.SitesFile, s)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrRestricted) {
		return l.siteNames(s)
	}
	return list, err
}

func (l *live) siteNames(s scope) (*siteList, error) {
	return l.readSites(tracefs.SiteNamesFile, s)
}

func (l *live) readSites(name string, s scope) (*siteList, error) {
	dir, err := tracefs.Mount(l.root)
	if err != nil {
		return nil, l.noTracefs(err)
	}
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, l.noTracefs(fmt.Errorf("%w: the kernel was built without CONFIG_DYNAMIC_FTRACE", err))
	case err != nil:
		return nil, fmt.Errorf("%w%s", err, l.permissionHint(err))
	}
	defer f.Close()
	list, err := readSites(f, name == tracefs.SitesFile, s)
	if err == nil {
		list.from = path
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case list.len() == 0:
		return nil, fmt.Errorf("%s is empty: ftrace is switched off (ftrace=off, or it was stopped after a fault; see dmesg)", path)
	}
	return list, nil
}

// noTracefs puts lockdown first when it is the cause: under confidentiality
// the files of tracefs are not there at all (security/lockdown,
// LOCKDOWN_TRACEFS in fs/tracefs/inode.c).
func (l *live) noTracefs(err error) error {
	if l.lockdown() == "confidentiality" {
		return fmt.Errorf("%w: kernel lockdown is %q, which hides tracefs", ErrRestricted, "confidentiality")
	}
	return err
}

func (l *live) openBTF(object string, base *btfscan.BTF) (*btfscan.BTF, error) {
	if object == Vmlinux {
		return l.vmlinuxBTF()
	}
	return l.readBTF(object, base)
}

func (l *live) readBTF(object string, base *btfscan.BTF) (*btfscan.BTF, error) {
	path := l.path(filepath.Join("sys/kernel/btf", object))
	f, err := btfscan.Open(path, base)
	switch {
	case errors.Is(err, fs.ErrNotExist) && object == Vmlinux:
		return nil, fmt.Errorf("%w; the kernel was built without CONFIG_DEBUG_INFO_BTF", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; the module is not loaded, or was built without BTF", err)
	case err != nil:
		return nil, err
	}
	return f.BTF, nil // mapped as long as the process lives
}

func (l *live) btfObjects() ([]string, error) {
	entries, err := os.ReadDir(l.path("sys/kernel/btf"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // who opens vmlinux's is told
	}
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, e := range entries {
		// vmlinux.inline and the like hold inline sites, no functions.
		if name := e.Name(); name != Vmlinux && !strings.Contains(name, ".") {
			objects = append(objects, name)
		}
	}
	return objects, nil
}

func (l *live) goingModules() (map[string]bool, error) {
	data, err := os.ReadFile(l.path("proc/modules"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // CONFIG_MODULES=n
	}
	if err != nil {
		return nil, err
	}
	var going map[string]bool
	for line := range strings.Lines(string(data)) {
		// name size refcount users state address
		if f := strings.Fields(line); len(f) >= 5 && f[4] != "Live" {
			if going == nil {
				going = make(map[string]bool)
			}
			going[f[0]] = true
		}
	}
	return going, nil
}

func (l *live) switches() Switches {
	s := Switches{
		Lockdown:     l.lockdown(),
		KptrRestrict: l.word("proc/sys/kernel/kptr_restrict"),
		Syslog:       l.hasCapability(capSyslog),
	}
	if dir, err := tracefs.Mount(l.root); err == nil {
		s.Tracefs = dir
	}
	return s
}

func (l *live) blacklist() ([]CodeRange, error) {
	path := l.path("sys/kernel/debug/kprobes/blacklist")
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("kprobe blacklist: %w%s", err, l.permissionHint(err))
	}
	defer f.Close()
	list, err := tracefs.ReadBlacklist(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ranges := make([]CodeRange, len(list))
	for i, r := range list {
		ranges[i] = CodeRange(r)
	}
	return ranges, nil
}

// lockdown returns none, integrity, confidentiality, or "" when not known.
func (l *live) lockdown() string {
	return parseLockdown(l.word("sys/kernel/security/lockdown"))
}

// parseLockdown returns the state in brackets of "none [integrity] ...".
func parseLockdown(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	if !ok {
		return ""
	}
	state, _, _ := strings.Cut(rest, "]")
	return state
}

func (l *live) word(name string) string {
	data, err := os.ReadFile(l.path(name))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

const capSyslog = 34 // include/uapi/linux/capability.h

func (l *live) hasCapability(bit uint) bool {
	status := l.word("proc/self/status")
	_, rest, ok := strings.Cut(status, "CapEff:")
	if !ok {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	caps, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil || len(caps) != 8 {
		return false
	}
	return binary.BigEndian.Uint64(caps)>>bit&1 == 1
}

// permissionHint ends an error with what to type, when it is about permission.
func (l *live) permissionHint(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	if l.lockdown() == "confidentiality" {
		return fmt.Sprintf("; kernel lockdown is %q", "confidentiality")
	}
	return "; run as root"
}
