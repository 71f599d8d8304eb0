package kallscope

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/kallscope/kallscope/kallsyms"
)

// nearNames returns up to five names of functions that may have been meant:
// those that the compiler made of this one, else those that differ by few
// letters or contain it, the nearest first.
func (p *planner) nearNames(name string) []string {
	if names := p.variants(name); names != nil {
		return names
	}
	type near struct {
		name     string
		distance int
	}
	to := nearTo{name, min(1+len(name)/5, 4), letterSet(name)}
	var found []near
	for i := range p.table.Len() {
		other := p.table.Name(i)
		d := to.distance(other)
		if d <= to.most && p.isText(i) && kallsyms.Classify(other).IsFunction() {
			found = append(found, near{other, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, n := range slices.Compact(found) {
		if len(names) < maxNames {
			names = append(names, n.name)
		}
	}
	return names
}

// maxNames is how many names are shown.
const maxNames = 5

// variants returns up to five full names of the functions that the compiler
// made of this one.
func (p *planner) variants(name string) (names []string) {
	for _, i := range p.table.Variants(name) {
		made := p.table.Name(i)
		if p.isText(i) && kallsyms.Classify(made).IsFunction() && !slices.Contains(names, made) && len(names) < maxNames {
			names = append(names, made)
		}
	}
	return names
}

// nearTo measures how far names are from one.
type nearTo struct {
	name    string
	most    int // letters that may differ
	letters uint64
}

// distance returns how many letters of another name differ, or more than most.
// What stands around the whole name counts as one: who types sys_read means
// __x64_sys_read.
func (n *nearTo) distance(other string) int {
	switch diff := len(other) - len(n.name); {
	case len(n.name) >= 4 && strings.Contains(other, n.name):
		return 1
	case diff > n.most || -diff > n.most:
		return n.most + 1
	case bits.OnesCount64(n.letters^letterSet(other)) > 2*n.most:
		return n.most + 1 // one edit changes two bits at most
	}
	return levenshtein.ComputeDistance(n.name, other)
}

// letterSet has a bit for each letter of s.
func letterSet(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}
