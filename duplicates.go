package kallscope

import "fmt"

// Duplicates is a rule for several targets of one name.
type Duplicates uint8

// The rules. The default takes all: only an address tells them apart, and
// plans have addresses.
const (
	DuplicatesAll   Duplicates = iota // each is a target of its own
	DuplicatesSkip                    // none is a target
	DuplicatesFirst                   // the first in the kernel's order is
	DuplicatesError                   // planning fails with an AmbiguousError
)

var duplicatesNames = [...]string{"all", "skip", "first", "error"}

// String returns the rule as the flag spells it.
func (d Duplicates) String() string {
	if int(d) >= len(duplicatesNames) {
		return fmt.Sprintf("duplicates-%d", uint8(d))
	}
	return duplicatesNames[d]
}

// ParseDuplicates reads what String writes; "" is DuplicatesAll. It fails with
// [ErrNotFound].
func ParseDuplicates(s string) (Duplicates, error) {
	for i, name := range duplicatesNames {
		if name == s || s == "" {
			return Duplicates(i), nil
		}
	}
	return 0, fmt.Errorf("duplicates %q: %w; use all, skip, first or error", s, ErrNotFound)
}

// applyDuplicates enforces the rule for several targets of one name. Who gives
// the address of one has chosen it.
func (p *planner) applyDuplicates() error {
	if p.options.Duplicates == DuplicatesAll {
		return nil
	}
	byName := make(map[string]int, len(p.plan.Targets))
	for _, t := range p.plan.Targets {
		if _, chosen := p.sel.addrs[t.Addr]; !chosen {
			byName[t.Name]++
		}
	}
	seen := make(map[string]bool)
	kept := p.plan.Targets[:0]
	for _, t := range p.plan.Targets {
		_, chosen := p.sel.addrs[t.Addr]
		switch {
		case chosen:
			kept = append(kept, t)
			continue
		case byName[t.Name] == 1, p.options.Duplicates == DuplicatesFirst && !seen[t.Name]:
			kept = append(kept, t)
		case p.options.Duplicates == DuplicatesError:
			return p.ambiguous(t.Name)
		default:
			p.plan.Skipped.others = append(p.plan.Skipped.others, Skip{t.Func, ReasonDuplicate, t.Mechanisms})
		}
		seen[t.Name] = true
	}
	p.plan.Targets = kept
	return nil
}

func (p *planner) ambiguous(name string) error {
	e := &AmbiguousError{Name: name}
	for _, t := range p.plan.Targets {
		if t.Name == name {
			e.Funcs = append(e.Funcs, t.Func)
		}
	}
	return e
}
