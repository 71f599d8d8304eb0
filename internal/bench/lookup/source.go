package lookup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/kallsyms"
)

// Source has the symbols and functions of the running kernel, of which
// [Source.Input] makes questions of any size.
type Source struct {
	text   []byte
	table  *kallsyms.Table // the same
	wanted *Wanted
	paths  []string
	// NoBTF says why there are no functions of BTF; the names of functions in
	// the symbols stand for them then.
	NoBTF error
}

// Open reads /proc/kallsyms and the BTF of vmlinux below root, "" for this
// machine's. Without root addresses are zero, which costs the methods the same.
func Open(root string) (*Source, error) {
	s := &Source{paths: []string{filepath.Join("/", root, "proc/kallsyms"), filepath.Join("/", root, "sys/kernel/btf/vmlinux")}}
	var err error
	if s.text, err = os.ReadFile(s.paths[0]); err != nil {
		return nil, err
	}
	if s.table, err = kallsyms.Parse(s.text, kallsyms.Options{}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.paths[0], err)
	}
	if s.NoBTF = s.readBTF(); s.NoBTF != nil {
		s.paths = s.paths[:1]
		s.wanted = functionsOf(s.table)
	}
	return s, nil
}

// readBTF makes the wanted functions those of BTF, in the order of their ids.
func (s *Source) readBTF() error {
	f, err := btfscan.Open(s.paths[1], nil)
	if err != nil {
		return err
	}
	defer f.Close()
	s.wanted = new(Wanted)
	for fn := range f.Funcs() {
		s.wanted.IDs = append(s.wanted.IDs, fn.ID)
	}
	// One string for all: they lie as close together as in the BTF.
	var blob []byte
	var ends []int
	for fn := range f.Funcs() {
		blob = append(blob, fn.Name...)
		ends = append(ends, len(blob))
	}
	all, from := string(blob), 0
	for _, end := range ends {
		s.wanted.Names = append(s.wanted.Names, all[from:end])
		from = end
	}
	if s.wanted.Len() == 0 {
		return fmt.Errorf("%s: no functions", s.paths[1])
	}
	return nil
}

// functionsOf numbers the functions of a table.
func functionsOf(t *kallsyms.Table) *Wanted {
	w := new(Wanted)
	for _, s := range t.All() {
		if s.IsText() && kallsyms.Classify(s.Name).IsFunction() {
			w.Names, w.IDs = append(w.Names, s.Name), append(w.IDs, uint32(len(w.IDs)+1))
		}
	}
	return w
}

// Symbols returns how many there are.
func (s *Source) Symbols() int { return s.table.Len() }

// Functions returns how many functions can be asked for before names are
// made up.
func (s *Source) Functions() int { return s.wanted.Len() }

// Bytes returns the size of the symbols' text.
func (s *Source) Bytes() int { return len(s.text) }

// read reads the files again, throws them away, and returns how long that took,
// scaled to a number of symbols.
func (s *Source) read(symbols int) (time.Duration, error) {
	begin := time.Now()
	for _, path := range s.paths {
		if err := discard(path); err != nil {
			return 0, err
		}
	}
	return time.Duration(float64(time.Since(begin)) * float64(symbols) / float64(s.Symbols())), nil
}

func discard(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		_, err := f.Read(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Input asks for a number of functions among a number of symbols. Fewer than
// there are means evenly spaced ones, in their order; more, that all come again
// under names with a number behind them, function and symbol alike.
func (s *Source) Input(wanted, symbols int) *Input {
	return &Input{
		Wanted: s.functions(wanted), Text: s.symbols(symbols), Live: symbols == s.Symbols(),
		read: func() (time.Duration, error) { return s.read(symbols) },
	}
}

func (s *Source) functions(n int) *Wanted {
	if n <= s.wanted.Len() {
		return s.wanted.spread(n)
	}
	w := &Wanted{slices.Clone(s.wanted.Names), slices.Clone(s.wanted.IDs)}
	for i := s.wanted.Len(); i < n; i++ {
		copies, k := i/s.wanted.Len(), i%s.wanted.Len()
		w.Names = append(w.Names, s.wanted.Names[k]+"_"+strconv.Itoa(copies))
		w.IDs = append(w.IDs, uint32(i+1))
	}
	return w
}

// copiesBase is where symbols that are made up begin: where the kernel maps
// memory, not text.
const copiesBase = 0xffffc90000000000

func (s *Source) symbols(n int) []byte {
	real := s.table.Len()
	if n == real {
		return s.text
	}
	var text []byte
	for k := range min(n, real) {
		text = append(append(text, s.table.Symbol(k*real/min(n, real)).String()...), '\n')
	}
	for i := real; i < n; i++ {
		symbol := s.table.Symbol(i % real)
		symbol.Name += "_" + strconv.Itoa(i/real)
		if s.table.State() != kallsyms.Hidden {
			symbol.Addr = copiesBase + uint64(i)*16
		}
		text = append(append(text, symbol.String()...), '\n')
	}
	return text
}
