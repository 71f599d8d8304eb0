package kallscope

import "github.com/kallscope/kallscope/kallsyms"

// VmlinuxSymbolsFromMemory returns the symbols of vmlinux that its memory has.
func VmlinuxSymbolsFromMemory() (*kallsyms.Table, error) { return newLive("/").vmlinuxFromMemory() }

// ModuleSymbolsFromMemory returns the symbols of all modules, as lines.
func ModuleSymbolsFromMemory() ([]string, error) {
	table, err := newLive("/").symbolsFromMemory()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range table.All() {
		if s.Module != "" {
			lines = append(lines, s.String())
		}
	}
	return lines, nil
}

// LiveNarrow returns the running kernel; from many modules on those out of reach
// are left out.
func LiveNarrow(many int) *Kernel {
	l := newLive("/")
	l.many = many
	return newKernel(Identity{}, l)
}
