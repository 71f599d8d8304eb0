package kallscope

import (
	"fmt"

	"github.com/kallscope/kallscope/kallsyms"
)

// TracingID returns the BTF id by which the kernel attaches to exactly this
// function: an id of one of the names of its address, whose first symbol is
// this one.
//
// The kernel looks the name of an id up and takes the first symbol that has
// it, function or not: kallsyms_lookup_name() for vmlinux, and for a module
// find_kallsyms_symbol_value() in the module's own table (since v6.3,
// 31bf1dbccfb0; before that kallsyms_lookup_name() as well, vmlinux first). Any
// other symbol of the name is out of reach: then the error is an [ErrAmbiguous].
// Without an id it is an [ErrNotFound].
//
// It needs the symbol table and the BTF of the module, which are read once.
// Where addresses are hidden only a name that is there once is sure.
func (k *Kernel) TracingID(f Func) (BTFID, error) {
	table, err := k.anySymbols(scopeOf(f.Module))
	if err != nil {
		return BTFID{}, err
	}
	b, err := k.openBTF(f.Module)
	if err != nil {
		return BTFID{}, err
	}
	var other error
	for name := range k.namesFrom(table, f) {
		for i := range b.Indexes(name) {
			if other = firstHit(table, f, name); other == nil {
				return BTFID{f.Module, b.Func(i).ID}, nil
			}
			break // all ids of a name are looked up alike
		}
	}
	if other != nil {
		return BTFID{}, other
	}
	return BTFID{}, fmt.Errorf("no function of this name in the BTF of %s: %w", f.Module, ErrNotFound)
}

// namesFrom yields the name of a function and then the other ones of its
// address.
func (k *Kernel) namesFrom(t *kallsyms.Table, f Func) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(f.Name) || f.Addr == 0 {
			return
		}
		for _, i := range t.At(f.Addr) {
			if t.Name(i) != f.Name && moduleName(t.Module(i)) == f.Module && !yield(t.Name(i)) {
				return
			}
		}
	}
}

// firstHit returns nil when the kernel's look-up of a name ends at f.
func firstHit(t *kallsyms.Table, f Func, name string) error {
	var in []int
	for _, i := range t.ByName(name) {
		if moduleName(t.Module(i)) == f.Module {
			in = append(in, i)
		}
	}
	switch {
	case len(in) == 0:
		return fmt.Errorf("no symbol %s in %s: %w", name, f.Module, ErrNotFound)
	case len(in) > 1 && f.Addr == 0:
		return fmt.Errorf("%d symbols in %s are named %s and addresses are hidden: %w", len(in), f.Module, name, ErrAmbiguous)
	case len(in) == 1 && t.Addr(in[0]) != f.Addr && f.Addr != 0:
		return fmt.Errorf("symbol %s of %s is at %#x, not at %#x: %w", name, f.Module, t.Addr(in[0]), f.Addr, ErrNotFound)
	case t.Addr(in[0]) != f.Addr:
		return fmt.Errorf("%d symbols in %s are named %s, and by BTF the kernel takes the first, at %#x: %w", len(in), f.Module, name, t.Addr(in[0]), ErrAmbiguous)
	}
	return nil
}
