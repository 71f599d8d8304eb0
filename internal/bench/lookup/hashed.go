package lookup

// hashed puts the wanted names into Go's map and looks every symbol up.
var hashed = Method{
	Name:    "hash",
	About:   "a map of the functions, one pass over the symbols",
	Prepare: direct(resolveHashed),
}

func resolveHashed(in *Input) (*Answer, error) {
	table, same := wantedMap(in.Wanted)
	a := newAnswer(in.Wanted.Len())
	err := eachSymbol(in.Text, func(name []byte, addr uint64) {
		if i, ok := table[string(name)]; ok {
			same.add(a, i, addr)
		}
	})
	return a.finish(), err
}

// wantedMap returns the lowest function of each name.
func wantedMap(w *Wanted) (map[string]int32, names) {
	table := make(map[string]int32, w.Len())
	return table, chain(w, func(name string, i int32) int32 {
		next, ok := table[name]
		if !ok {
			next = none
		}
		table[name] = i
		return next
	})
}
