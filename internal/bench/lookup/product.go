package lookup

import (
	"github.com/kallscope/kallscope/kallsyms"
)

// product is what kallscope does, once it has read the symbols into its table,
// which everything else needs as well.
var product = Method{
	Name:  "product",
	About: "kallscope's own join, over the symbols as it keeps them",
	Prepare: func(in *Input) (*Run, error) {
		t, err := parse(in.Text)
		if err != nil {
			return nil, err
		}
		return &Run{Resolve: func() (*Answer, error) { return join(t, in.Wanted), nil }}, nil
	},
}

// productText is the same and the making of the table.
var productText = Method{
	Name:  "product-text",
	About: "the same, and taking the text apart into that",
	Prepare: direct(func(in *Input) (*Answer, error) {
		t, err := parse(in.Text)
		if err != nil {
			return nil, err
		}
		return join(t, in.Wanted), nil
	}),
}

func parse(text []byte) (*kallsyms.Table, error) {
	t, err := kallsyms.Parse(text, kallsyms.Options{})
	if noneIsFine(err) == nil && t == nil {
		t = new(kallsyms.Table)
	}
	return t, noneIsFine(err)
}

func join(t *kallsyms.Table, w *Wanted) *Answer {
	j := t.Join(w.Len(), func(i int) string { return w.Names[i] })
	a := newAnswer(w.Len())
	var symbols []int
	for i := range w.Len() {
		symbols = j.AppendSymbols(symbols[:0], i)
		for _, s := range symbols {
			a.add(i, t.Addr(s))
		}
	}
	return a
}
