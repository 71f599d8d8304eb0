package kallscope

import (
	"fmt"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// typeQuery is the part of a query that is about types. Nil fits everything.
type typeQuery struct {
	args, rets []*btfscan.TypeQuery
}

// compileTypes fails when a type is no C type, and when there is no BTF.
func (k *Kernel) compileTypes(q Query) (*typeQuery, error) {
	if len(q.Args)+len(q.Rets) == 0 {
		return nil, nil
	}
	if _, err := k.openBTF(Vmlinux); err != nil {
		return nil, fmt.Errorf("select by type: %w", err)
	}
	t := new(typeQuery)
	for _, group := range []struct {
		texts []string
		to    *[]*btfscan.TypeQuery
	}{{q.Args, &t.args}, {q.Rets, &t.rets}} {
		for _, text := range group.texts {
			compiled, err := btfscan.NewTypeQuery(text)
			if err != nil {
				return nil, err
			}
			*group.to = append(*group.to, compiled)
		}
	}
	return t, nil
}

// fits reports whether a BTF function of this name has the types.
func (t *typeQuery) fits(k *Kernel, module, name string) bool {
	if t == nil {
		return true
	}
	b, err := k.openBTF(module)
	if err != nil {
		return false
	}
	for i := range b.Indexes(name) {
		if t.fitsFunc(b, b.Func(i)) {
			return true
		}
	}
	return false
}

// fitsFunc reports whether the function has an argument of each type asked
// for, and a result of one of them.
func (t *typeQuery) fitsFunc(b *btfscan.BTF, fn btfscan.Func) bool {
	if t == nil {
		return true
	}
	for _, want := range t.args {
		if i, err := want.FindParam(b, fn.Proto); err != nil || i < 0 {
			return false
		}
	}
	for _, want := range t.rets {
		if ok, err := want.MatchReturn(b, fn.Proto); err == nil && ok {
			return true
		}
	}
	return len(t.rets) == 0
}
