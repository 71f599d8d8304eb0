package kallscope

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/agnivade/levenshtein"

	"github.com/kallscope/kallscope/kallsyms"
)

// nearNames returns up to five names of functions that differ from name by few
// letters, the nearest first: what was meant, perhaps.
func (p *planner) nearNames(name string) []string {
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
	var names []string
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
