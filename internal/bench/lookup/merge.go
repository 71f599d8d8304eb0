package lookup

import (
	"cmp"
	"slices"
)

// merge sorts both sides by name and goes through them side by side. Symbols
// come in the order of addresses, so most of the work is sorting them.
var merge = Method{
	Name:    "merge",
	About:   "functions and symbols sorted, then merged",
	Prepare: direct(resolveMerge),
}

// symbol is a name, as a part of names, and its address.
type symbol struct {
	from, to uint32
	addr     uint64
}

func resolveMerge(in *Input) (*Answer, error) {
	var blob []byte
	var symbols []symbol
	err := eachSymbol(in.Text, func(name []byte, addr uint64) {
		from := len(blob)
		blob = append(blob, name...)
		symbols = append(symbols, symbol{uint32(from), uint32(len(blob)), addr})
	})
	name := func(s symbol) string { return view(blob[s.from:s.to]) }
	slices.SortStableFunc(symbols, func(s, t symbol) int { return cmp.Compare(name(s), name(t)) })

	a := newAnswer(in.Wanted.Len())
	for _, i := range byName(in.Wanted) {
		wanted := in.Wanted.Names[i]
		for len(symbols) > 0 && name(symbols[0]) < wanted {
			symbols = symbols[1:]
		}
		for _, s := range symbols {
			if name(s) != wanted {
				break
			}
			a.add(int(i), s.addr)
		}
	}
	return a.finish(), err
}
