package lookup

import (
	"bytes"
	"errors"

	"github.com/kallscope/kallscope/kallsyms"
)

// eachSymbol calls f with every symbol, in order. The name is valid during the
// call only.
func eachSymbol(text []byte, f func(name []byte, addr uint64)) error {
	s := kallsyms.NewScanner(bytes.NewReader(text), kallsyms.Options{})
	for s.Scan() {
		line := s.Line()
		f(line.Name, line.Addr)
	}
	return noneIsFine(s.Err())
}

// parseOnly is the floor of every method that reads the text.
func parseOnly(text []byte) (symbols int, err error) {
	s := kallsyms.NewScanner(bytes.NewReader(text), kallsyms.Options{})
	for s.Scan() {
		symbols++
	}
	return symbols, noneIsFine(s.Err())
}

// noneIsFine makes an empty list no error: there is nothing to find in it.
func noneIsFine(err error) error {
	if errors.Is(err, kallsyms.ErrEmpty) {
		return nil
	}
	return err
}

// names are wanted functions by name: those of one name are a chain, which
// begins with the lowest.
type names struct{ next []int32 }

// chain calls head for each function, the last one first: it makes i the
// beginning of the chain of its name and returns what that was, or none.
func chain(w *Wanted, head func(name string, i int32) (next int32)) names {
	n := names{make([]int32, w.Len())}
	for i := w.Len() - 1; i >= 0; i-- {
		n.next[i] = head(w.Names[i], int32(i))
	}
	return n
}

// none ends a chain.
const none = int32(-1)

// add gives an address to all functions of the chain that begins with i.
func (n names) add(a *Answer, i int32, addr uint64) {
	for ; i != none; i = n.next[i] {
		a.add(int(i), addr)
	}
}
