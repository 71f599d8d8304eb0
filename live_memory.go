package kallscope

import (
	"errors"
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/kcore"
	"github.com/kallscope/kallscope/kallsyms"
)

// manyModules is from how many loaded modules on their symbols are read from
// memory. /proc/kallsyms walks the module list for each symbol of a module, so
// its cost grows with the square: 30 ms more for 100 modules, 24 s for 1,472
// on 6.12 under emulation.
const manyModules = 50

// memory is what reading the kernel's memory needs: the file, and where the
// variables and the fields of structs are.
type memory struct {
	*kcore.Memory
	btf   *btfscan.BTF
	table *kallsyms.Table
}

// openMemory fails unless the kernel shows its addresses to this process:
// memory must not be a way around kptr_restrict.
func (l *live) openMemory() (*memory, error) {
	table := l.read.Load()
	if table == nil {
		var err error
		if table, err = l.vmlinux(); err != nil {
			return nil, err
		}
	}
	if table.State() != kallsyms.Visible {
		return nil, errors.New("addresses are hidden")
	}
	b, err := l.vmlinuxBTF()
	if err != nil {
		return nil, err
	}
	mem, err := kcore.Open(l.path("proc/kcore"))
	if err != nil {
		return nil, err
	}
	return &memory{mem, b, table}, nil
}

// variable returns the address of a variable of vmlinux, whatever its letter
// (see isText). One look-up is no reason to build the table's index by name.
func (m *memory) variable(name string) (uint64, error) {
	for i := range m.table.InModule("") {
		if m.table.Name(i) == name {
			return m.table.Addr(i), nil
		}
	}
	return 0, fmt.Errorf("the kernel's symbols do not show the variable %s", name)
}

// sitesFromMemory reads the ftrace records where the kernel keeps them.
func (l *live) sitesFromMemory() (*siteList, error) {
	m, err := l.openMemory()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	head, err := m.variable("ftrace_pages_start")
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

// symbolsFromMemory returns the symbols of vmlinux from kallsyms and those of
// modules from memory. The pseudo-modules, which come last in kallsyms, are not
// among them.
func (l *live) symbolsFromMemory() (*kallsyms.Table, error) {
	m, err := l.openMemory()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if m.table, err = l.vmlinux(); err != nil {
		return nil, err
	}
	head, err := m.variable("modules")
	if err != nil {
		return nil, err
	}
	modules, err := m.Modules(head, m.btf)
	if err != nil {
		return nil, err
	}
	return m.table.Append(modules, kallsyms.Options{})
}
