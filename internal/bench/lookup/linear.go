package lookup

// linear goes through all symbols for each function, as the kernel did for each
// BTF id (kallsyms_lookup_name() before v6.2): 30,000 functions
// took 75 seconds.
var linear = Method{
	Name:    "linear",
	About:   "a search through all symbols for each function",
	Sample:  10,
	Prepare: direct(resolveLinear),
}

func resolveLinear(in *Input) (*Answer, error) {
	a := newAnswer(in.Wanted.Len())
	for i, wanted := range in.Wanted.Names {
		err := eachSymbol(in.Text, func(name []byte, addr uint64) {
			if string(name) == wanted {
				a.add(i, addr)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return a.finish(), nil
}
