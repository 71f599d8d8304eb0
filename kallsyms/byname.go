package kallsyms

import (
	"slices"
	"strings"
)

// ByName returns the numbers of all symbols with exactly this name, text and
// data, in the order of the source; nil if there are none. The first call
// builds the index.
func (t *Table) ByName(name string) []int {
	return t.nameIndex().appendTo(nil, name)
}

// AppendByName appends to dst what [Table.ByName] returns. It allocates only
// if dst has no room, which suits a loop over many names.
func (t *Table) AppendByName(dst []int, name []byte) []int {
	return t.nameIndex().appendTo(dst, stringOf(name))
}

func (t *Table) nameIndex() *nameIndex {
	return t.names.get(func() *nameIndex {
		return newNameIndex(t.n, t.n, func(k int) int { return k }, t.Name)
	})
}

// Variants returns the numbers of the symbols that are made from name, in the
// order of the source: name and a suffix, and the padding and preambles in
// front of these (see [Classify]). The exact name is not among them. The first
// call reads all names once, about one millisecond for a kernel.
func (t *Table) Variants(name string) []int {
	if name == "" {
		return nil
	}
	found := t.variantIndex().appendTo(nil, BaseName(name))
	found = slices.DeleteFunc(found, func(i int) bool {
		made := trimPrefix(t.Name(i))
		return made != name && !madeFrom(made, name) || t.Name(i) == name
	})
	for _, p := range prefixes {
		found = t.nameIndex().appendTo(found, p.name+name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// madeFrom returns whether made is name and a suffix.
func madeFrom(made, name string) bool {
	rest, ok := strings.CutPrefix(made, name)
	return ok && rest != "" && (rest[0] == '.' || isDollarHash(rest))
}

// variantIndex holds the symbols that have a suffix, by base name.
func (t *Table) variantIndex() *nameIndex {
	return t.variants.get(func() *nameIndex {
		var ids []uint32
		for i := range t.n {
			if name := trimPrefix(t.Name(i)); len(BaseName(name)) < len(name) {
				ids = append(ids, uint32(i))
			}
		}
		id := func(k int) int { return int(ids[k]) }
		return newNameIndex(len(ids), t.n, id, func(i int) string { return BaseName(trimPrefix(t.Name(i))) })
	})
}

// Resolve returns the one symbol that name stands for: the exact name, or else
// a name that the kernel takes for it by cutting at ".llvm.", as
// cleanup_symbol_name() in kernel/kallsyms.c does. Functions go before data,
// and several symbols of one address count as one, the first.
//
// Errors are [*NotFoundError], [*AmbiguousError] for more than one address or,
// with a static function that clang gave a hash, more than one function; and
// [ErrHidden], which still comes with the symbol.
func (t *Table) Resolve(name string) (Symbol, error) {
	return t.resolve(name, t.candidates(name))
}

// ResolveIn is [Table.Resolve] among the symbols of one module, "" for
// vmlinux.
func (t *Table) ResolveIn(module, name string) (Symbol, error) {
	list := t.candidates(name)
	return t.resolve(name, slices.DeleteFunc(list, func(i int) bool { return t.Module(i) != module }))
}

// candidates returns the symbols that name may stand for.
func (t *Table) candidates(name string) []int {
	exact := t.ByName(name)
	var hashed, trimmed []int
	for _, i := range t.Variants(name) {
		made := t.Name(i)
		switch {
		case Classify(made) == ClassHash && made[:len(name)] == name:
			hashed = append(hashed, i)
		case TrimLLVM(made) == name:
			trimmed = append(trimmed, i)
		}
	}
	found := append(exact, hashed...)
	if len(found) == 0 {
		found = trimmed
	}
	slices.Sort(found)
	return found
}

func (t *Table) resolve(name string, list []int) (Symbol, error) {
	if text := t.onlyText(list); len(text) > 0 {
		list = text
	}
	list = t.distinct(list)
	if len(list) == 0 {
		return Symbol{}, &NotFoundError{Name: name, Variants: t.functions(t.Variants(name))}
	}
	if len(list) > 1 {
		return Symbol{}, &AmbiguousError{Name: name, Symbols: t.symbols(list)}
	}
	s := t.Symbol(list[0])
	if t.hides(list[0]) {
		return s, &hiddenError{name: name}
	}
	return s, nil
}

// hides returns whether the address of symbol i is a zero that stands for
// another one.
func (t *Table) hides(i int) bool {
	return t.Addr(i) == 0 && (IsText(t.Type(i)) || t.State() != Visible)
}

func (t *Table) onlyText(list []int) []int {
	var text []int
	for _, i := range list {
		if IsText(t.Type(i)) {
			text = append(text, i)
		}
	}
	return text
}

// distinct leaves out symbols at the address of an earlier one. Hidden
// addresses all differ.
func (t *Table) distinct(list []int) []int {
	var kept []int
	for _, i := range list {
		same := func(k int) bool { return t.Addr(k) == t.Addr(i) }
		if t.hides(i) || !slices.ContainsFunc(kept, same) {
			kept = append(kept, i)
		}
	}
	return kept
}

// functions returns those of list that are whole functions.
func (t *Table) functions(list []int) []Symbol {
	return t.symbols(slices.DeleteFunc(list, func(i int) bool {
		return !IsText(t.Type(i)) || !Classify(t.Name(i)).IsFunction()
	}))
}

func (t *Table) symbols(list []int) []Symbol {
	var s []Symbol
	for _, i := range list {
		s = append(s, t.Symbol(i))
	}
	return s
}
