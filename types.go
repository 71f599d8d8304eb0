package kallscope

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kallscope/kallscope/internal/btfscan"
)

// typeQuery is the part of a query that is about types. Nil fits everything.
type typeQuery struct {
	args, rets []*btfscan.TypeQuery
	nargs      *countRange
}

// compileTypes fails when a type is no C type or a number of arguments none,
// and when there is no BTF.
func (k *Kernel) compileTypes(q Query) (*typeQuery, error) {
	if !q.byType() {
		return nil, nil
	}
	nargs, err := parseCountRange(q.NArgs)
	if err != nil {
		return nil, fmt.Errorf("number of arguments %q: %w", q.NArgs, err)
	}
	if _, err := k.openBTF(Vmlinux); err != nil {
		return nil, fmt.Errorf("select by type: %w", err)
	}
	t := &typeQuery{nargs: nargs}
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

// byType reports whether the query is about types too.
func (q *Query) byType() bool { return len(q.Args)+len(q.Rets)+len(q.NArgs) > 0 }

// A countRange is the numbers from least to most.
type countRange struct{ least, most int }

// parseCountRange reads "N", "N-M" or "N-"; "" is nil.
func parseCountRange(text string) (*countRange, error) {
	if text == "" {
		return nil, nil
	}
	low, high, isRange := strings.Cut(text, "-")
	switch {
	case !isRange:
		high = low
	case high == "":
		high = strconv.Itoa(math.MaxUint16) // BTF has room for no more
	}
	least, err := strconv.ParseUint(low, 10, 16)
	most, err2 := strconv.ParseUint(high, 10, 16)
	switch {
	case err != nil || err2 != nil:
		return nil, errors.New(`want a number such as "3", or a range such as "2-4" or "6-"`)
	case most < least:
		return nil, errors.New("the range is empty")
	}
	return &countRange{int(least), int(most)}, nil
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
// for, a result of one of them, and the number of arguments.
func (t *typeQuery) fitsFunc(b *btfscan.BTF, fn btfscan.Func) bool {
	if t == nil {
		return true
	}
	if t.nargs != nil {
		if n, err := b.ParamCount(fn.Proto); err != nil || n < t.nargs.least || n > t.nargs.most {
			return false
		}
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
