package kallscope

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/kcore"
	"github.com/kallscope/kallscope/kallsyms"
)

// The kernel's lists are slow: it formats /proc/kallsyms at 2,400 instructions
// a line and walks over the module list for each symbol of a module. The memory
// behind them is read in a small part of the time. Nothing is read there that
// the lists do not show to this process.

// readVmlinux reads the symbols of vmlinux.
func (l *live) readVmlinux() (*kallsyms.Table, error) {
	table, err := l.vmlinuxFromMemory()
	if err != nil {
		l.fallBack("symbols of vmlinux", err)
		return l.readSymbols(scopeVmlinux)
	}
	return table, nil
}

func (l *live) vmlinuxFromMemory() (*kallsyms.Table, error) {
	mem, err := kcore.Open(l.path("proc/kcore"))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	table, err := mem.Symbols()
	if err != nil {
		return nil, err
	}
	return table, l.compareFirstPage(table)
}

// compareFirstPage fails unless the first page of /proc/kallsyms shows the same
// symbols: memory must not be a way around kptr_restrict.
func (l *live) compareFirstPage(table *kallsyms.Table) error {
	f, err := os.Open(l.path("proc/kallsyms"))
	if err != nil {
		return err
	}
	defer f.Close()
	page := make([]byte, os.Getpagesize())
	n, err := f.Read(page)
	if err != nil {
		return err
	}
	page = page[:bytes.LastIndexByte(page[:n], '\n')+1]
	shown, err := kallsyms.Parse(page, kallsyms.Options{})
	if err != nil {
		return err
	}
	var any uint64 // x86 before v6.15 begins with real zeros
	for i, s := range shown.All() {
		if i >= table.Len() || table.Symbol(i) != s {
			return fmt.Errorf("symbol %d is not the one that /proc/kallsyms shows, %v", i, s)
		}
		any |= s.Addr
	}
	if any == 0 {
		return errors.New("/proc/kallsyms hides addresses")
	}
	return nil
}

// memory is what reading the kernel's memory needs: the file, and where the
// variables and the fields of structs are.
type memory struct {
	*kcore.Memory
	btf   *btfscan.BTF
	table *kallsyms.Table // of vmlinux
}

// openMemory fails unless the kernel shows its addresses to this process.
func (l *live) openMemory() (_ *memory, err error) {
	mem, err := kcore.Open(l.path("proc/kcore"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			mem.Close()
		}
	}()
	b, err := l.vmlinuxBTF()
	if err != nil {
		return nil, err
	}
	table, err := l.vmlinux()
	if err != nil {
		return nil, err
	}
	if table.State() != kallsyms.Visible {
		return nil, errors.New("addresses are hidden")
	}
	return &memory{mem, b, table}, nil
}

// variable returns the address of a variable of vmlinux, whatever its letter
// (see isText). One look-up is no reason to build the table's index by name.
func (m *memory) variable(name string) (uint64, error) {
	for i := range m.table.Len() {
		if m.table.Name(i) == name {
			return m.table.Addr(i), nil
		}
	}
	return 0, fmt.Errorf("the kernel's symbols do not show the variable %s", name)
}

// sitesVariable is where the ftrace records begin (kernel/trace/ftrace.c).
const sitesVariable = "ftrace_pages_start"

// sitesFromMemory reads the ftrace records where the kernel keeps them.
func (l *live) sitesFromMemory() (*siteList, error) {
	m, err := l.openMemory()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	head, err := m.variable(sitesVariable)
	if err != nil {
		return nil, err
	}
	addrs, err := m.Sites(head, m.btf)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, errors.New("no ftrace records")
	}
	return newSiteList(addrs, "/proc/kcore"), nil
}

// symbolsFromMemory returns the symbols of vmlinux and those of modules, the
// latter from memory.
func (l *live) symbolsFromMemory() (*kallsyms.Table, error) {
	return l.modulesFromMemory(func(*kcore.Module) (bool, error) { return true, nil })
}

// modulesFromMemory returns the symbols of vmlinux and of the modules to keep.
func (l *live) modulesFromMemory(keep func(*kcore.Module) (bool, error)) (*kallsyms.Table, error) {
	m, err := l.openMemory()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	head, err := m.variable("modules")
	if err != nil {
		return nil, err
	}
	modules, err := m.Modules(head, m.btf)
	if err != nil {
		return nil, err
	}
	modules.Keep = keep
	return m.table.Append(modules, kallsyms.Options{})
}

// manyModules is from how many loaded modules on those out of reach are left
// out: the symbols of one take half a millisecond or so.
const manyModules = 100

func (l *live) narrow() bool {
	modules, err := os.ReadFile(l.path("proc/modules"))
	return err == nil && bytes.Count(modules, []byte{'\n'}) >= l.many
}

func (l *live) symbolsWithin(r reach) (*kallsyms.Table, error) {
	return l.modulesFromMemory(func(m *kcore.Module) (bool, error) {
		names, err := m.Strings()
		return !m.Live || r.has(m.Name, names), err
	})
}

func (l *live) btfWithin(object string, r reach) bool {
	data, err := os.ReadFile(l.path(filepath.Join("sys/kernel/btf", object)))
	return err != nil || r.has(object, data)
}

// denyLists reads the verifier's sets of BTF ids (kernel/bpf/verifier.c), which
// no file shows. A kernel that shows its variables and not a set has no such set.
func (l *live) denyLists() (d denyLists, err error) {
	m, err := l.openMemory()
	if err != nil {
		return d, fmt.Errorf("the verifier's deny lists: %w", err)
	}
	defer m.Close()
	if _, err := m.variable(sitesVariable); err != nil {
		return d, fmt.Errorf("the verifier's deny lists: %w", err)
	}
	for name, to := range map[string]*[]uint32{"btf_id_deny": &d.Trampolines, "noreturn_deny": &d.Returns} {
		addr, err := m.variable(name)
		if err != nil {
			continue
		}
		if *to, err = m.IDSet(addr); err != nil {
			return denyLists{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return d, nil
}
