package kallscope

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/agnivade/levenshtein"

	"github.com/kallscope/kallscope/kallsyms"
)

// nearNames returns up to five names of functions that may have been meant:
// those that the compiler made of this one, else those that differ by few
// letters, the nearest first.
func (p *planner) nearNames(name string) (names []string) {
	for _, i := range p.table.Variants(name) {
		if made := p.table.Name(i); p.isText(i) && kallsyms.Classify(made).IsFunction() && !slices.Contains(names, made) && len(names) < 5 {
			names = append(names, made)
		}
	}
	if names != nil {
		return names
	}
	type near struct {
		name     string
		distance int
	}
	most := min(1+len(name)/5, 4) // letters that may differ
	letters := letterSet(name)
	var found []near
	for i := range p.table.Len() {
		other := p.table.Name(i)
		if diff := len(other) - len(name); diff > most || -diff > most || !p.isText(i) || !kallsyms.Classify(other).IsFunction() {
			continue
		}
		if bits.OnesCount64(letters^letterSet(other)) > 2*most {
			continue // one edit changes two bits at most
		}
		if d := levenshtein.ComputeDistance(name, other); d <= most {
			found = append(found, near{other, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	for _, n := range slices.Compact(found) {
		if len(names) < 5 {
			names = append(names, n.name)
		}
	}
	return names
}

// letterSet has a bit for each letter of s.
func letterSet(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}
