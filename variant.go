package kallscope

import (
	"fmt"
	"slices"

	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

// VariantOf returns the name that the compiler made the function's name of:
// "finish" for finish.isra.0. It is empty for other names, and for what is no
// function of its own, such as finish.cold.
func (f Func) VariantOf() string { return variantOf(f.Name) }

func variantOf(name string) string {
	base := kallsyms.BaseName(name)
	if len(base) == len(name) || !kallsyms.Classify(name).IsFunction() {
		return ""
	}
	return base
}

// A nameSet is patterns, which perhaps stand for variants too.
type nameSet struct {
	names    *pattern.Set
	variants *pattern.Set // asked about base names; nil when there are none
}

func newNameSet(patterns []pattern.Pattern, o pattern.SetOptions, variants bool) (s nameSet, err error) {
	if s.names, err = pattern.NewSet(patterns, o); err != nil || !variants {
		return s, err
	}
	patterns = slices.Clone(patterns)
	for i := range patterns {
		if p := &patterns[i]; !standsForVariants(p) {
			exclude := p.Exclude
			*p = never()
			p.Exclude = exclude
		}
	}
	s.variants, err = pattern.NewSet(patterns, o)
	return s, err
}

func standsForVariants(p *pattern.Pattern) bool { return p.Kind == pattern.Glob && !p.HasOffset }

// match returns the first including pattern that a name matches, unless one
// excludes it.
func (s *nameSet) match(module, name string) (int, bool) {
	i, ok := s.names.Match(module, name)
	base := s.baseOf(name)
	if base == "" {
		return i, ok
	}
	j, made := s.variants.Match(module, base)
	switch {
	case !ok && !made, s.excludes(module, name):
		return 0, false
	case !made, ok && i < j:
		return i, true
	}
	return j, true
}

// excludes reports whether an excluding pattern matches a name.
func (s *nameSet) excludes(module, name string) bool {
	_, excluded := s.names.Excludes(module, name)
	if base := s.baseOf(name); !excluded && base != "" {
		_, excluded = s.variants.Excludes(module, base)
	}
	return excluded
}

// baseOf returns the name by which a variant is asked for too, or "".
func (s *nameSet) baseOf(name string) string {
	if s.variants == nil {
		return ""
	}
	return variantOf(name)
}

// BaseIDs returns the ids of the BTF functions from which the compiler made f,
// where f is the only function that can be meant: BTF does not have its name,
// and its module has no function of the base name and no other variant of it.
// BTF describes the source: the arguments may differ.
func (k *Kernel) BaseIDs(f Func) []BTFID { return k.AppendBaseIDs(nil, f) }

// AppendBaseIDs appends to dst what BaseIDs returns.
func (k *Kernel) AppendBaseIDs(dst []BTFID, f Func) []BTFID {
	base := f.VariantOf()
	if base == "" {
		return dst
	}
	b, err := k.openBTF(f.Module)
	if err != nil {
		return dst
	}
	for range b.Indexes(f.Name) {
		return dst
	}
	table, err := k.anySymbols(scopeOf(f.Module))
	if err != nil || !isOnlyVariant(table, f, base) {
		return dst
	}
	return k.AppendBTFIDs(dst, Func{Name: base, Module: f.Module})
}

// isOnlyVariant reports whether no other function of the module has the base
// name, or a name that is made of it.
func isOnlyVariant(t *kallsyms.Table, f Func, base string) bool {
	n := 0
	for _, i := range append(t.ByName(base), t.Variants(base)...) {
		name := t.Name(i)
		if moduleName(t.Module(i)) != f.Module || !kallsyms.IsText(t.Type(i)) || !kallsyms.Classify(name).IsFunction() {
			continue
		}
		if n++; t.Addr(i) != f.Addr || f.Addr == 0 && n > 1 {
			return false
		}
	}
	return true
}

// Prototype returns the C prototype of a BTF function: "ssize_t
// vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)". It fails
// without BTF, with [ErrNotFound] for an id that is no function, and for types
// that are malformed.
func (k *Kernel) Prototype(id BTFID) (string, error) {
	s, err := k.AppendPrototype(nil, id)
	return string(s), err
}

// AppendPrototype appends to dst what Prototype returns.
func (k *Kernel) AppendPrototype(dst []byte, id BTFID) ([]byte, error) {
	b, err := k.openBTF(id.Object)
	if err != nil {
		return dst, err
	}
	fn, ok := b.FuncByID(id.ID)
	if !ok {
		return dst, fmt.Errorf("prototype of %s: %w", id, ErrNotFound)
	}
	return b.AppendPrototype(dst, fn)
}
