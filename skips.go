package kallscope

import (
	"encoding/json"
	"iter"

	"github.com/kallscope/kallscope/kallsyms"
)

// A Skip is a candidate that is not a target.
type Skip struct {
	Func
	Reason Reason
	// Mechanisms are as in [Target]: the others that it could be a target of.
	Mechanisms MechanismSet
}

// Skips are the skipped candidates of a plan. There can be 100,000, so those of
// a fresh plan are kept as 5 bytes each beside the symbol table.
type Skips struct {
	table   *kallsyms.Table
	symbols []uint32
	reasons []Reason       // of symbols
	sets    []MechanismSet // of symbols; shorter where the rest is empty
	others  []Skip         // those without a symbol; all of a decoded plan
}

// Len returns the number of skipped candidates.
func (s Skips) Len() int { return len(s.symbols) + len(s.others) }

// All yields the skipped candidates: those with an address in its order, then
// the others.
func (s Skips) All() iter.Seq[Skip] {
	return func(yield func(Skip) bool) {
		for i, symbol := range s.symbols {
			skip := Skip{Func: funcOf(s.table, int(symbol)), Reason: s.reasons[i]}
			if i < len(s.sets) {
				skip.Mechanisms = s.sets[i]
			}
			if !yield(skip) {
				return
			}
		}
		for _, skip := range s.others {
			if !yield(skip) {
				return
			}
		}
	}
}

// By counts the skipped candidates by reason.
func (s Skips) By() map[Reason]int {
	by := make(map[Reason]int)
	for _, r := range s.reasons {
		by[r]++
	}
	for _, skip := range s.others {
		by[skip.Reason]++
	}
	return by
}

func (s *Skips) addSymbol(symbol int, r Reason, set MechanismSet) {
	if set != 0 {
		s.sets = append(s.sets, make([]MechanismSet, len(s.symbols)-len(s.sets))...)
		s.sets = append(s.sets, set)
	}
	s.symbols, s.reasons = append(s.symbols, uint32(symbol)), append(s.reasons, r)
}

func (s *Skips) add(f Func, r Reason) { s.others = append(s.others, Skip{Func: f, Reason: r}) }

func funcOf(t *kallsyms.Table, symbol int) Func {
	return Func{Addr: t.Addr(symbol), Name: t.Name(symbol), Module: moduleName(t.Module(symbol))}
}

// MarshalJSON writes an array.
func (s Skips) MarshalJSON() ([]byte, error) {
	all := make([]Skip, 0, s.Len())
	for skip := range s.All() {
		all = append(all, skip)
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Skips) UnmarshalJSON(data []byte) error {
	*s = Skips{}
	return strictUnmarshal(data, &s.others)
}
