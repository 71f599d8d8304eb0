package kallscope

import (
	"slices"
	"strings"

	"github.com/kallscope/kallscope/internal/pattern"
)

// maxNear is for how many patterns names like theirs are looked for, which costs
// a walk over all symbols each.
const maxNear = 10

// unmatched returns the including patterns without a candidate. A candidate was
// credited to the first pattern that includes it, so those that are left are
// asked again.
func (p *planner) unmatched() []Unmatched {
	p.creditAll()
	var list []Unmatched
	for i := range p.sel.byIndex {
		s := &p.sel.byIndex[i]
		if s.Exclude || s.hits > 0 {
			continue
		}
		u := Unmatched{Pattern: s.String(), Why: p.whyUnmatched(s)}
		if name, exact := s.bound.Exact(); exact && s.problem == "" && len(list) < maxNear {
			u.Near = p.nearNames(name)
		}
		list = append(list, u)
	}
	return list
}

// creditAll credits candidates to patterns without any, each time to the first
// of those, until no pattern gets one. Few patterns are behind more than one
// other, so a pass or two are enough.
func (p *planner) creditAll() {
	for {
		left := p.withoutHits()
		if len(left) == 0 {
			return
		}
		credited := false
		credit := func(i int) {
			s := &p.sel.byIndex[left[i]]
			credited = credited || s.hits == 0
			s.hits++
		}
		p.matchAgain(left, credit)
		if !credited {
			return
		}
	}
}

// withoutHits returns the patterns that have no candidate and no reason for it.
func (p *planner) withoutHits() (left []int) {
	for i := range p.sel.byIndex {
		s := &p.sel.byIndex[i]
		if s.Kind == pattern.Addr && s.problem == "" {
			s.hits = max(s.hits, 1) // its entry is a candidate of another pattern
		}
		if !s.Exclude && s.hits == 0 && s.problem == "" {
			left = append(left, i)
		}
	}
	return left
}

// matchAgain calls credit for the candidates that one of some patterns matches,
// with its number among those.
func (p *planner) matchAgain(left []int, credit func(int)) {
	patterns := make([]pattern.Pattern, len(left))
	for i, n := range left {
		patterns[i] = p.sel.byIndex[n].bound
	}
	set, err := newNameSet(patterns, pattern.SetOptions{}, p.plan.Query.Variants)
	if err != nil {
		return // they have been in a set before
	}
	for i := range p.table.Len() {
		if n, ok := set.match(p.table.Module(i), p.table.Name(i)); ok && p.isCandidate(i) {
			credit(n)
		}
	}
	for s := range p.plan.Skipped.All() {
		if s.BTFID != 0 || s.Reason == ReasonDataSymbol {
			if n, ok := set.match(s.Module, s.Name); ok {
				credit(n)
			}
		}
	}
}

// isCandidate reports whether the query as a whole includes a symbol.
func (p *planner) isCandidate(i int) bool {
	module, name := p.table.Module(i), p.table.Name(i)
	return p.isText(i) && p.sel.include(module, name, p.table.Addr(i)) != noHit && p.types.fits(p.kernel, moduleName(module), name)
}

// whyUnmatched says what else is known of a pattern that nothing matches.
func (p *planner) whyUnmatched(s *selected) string {
	q := &p.plan.Query
	switch module := s.bound.Module; {
	case s.problem != "":
		return s.problem
	case module != "" && module != Vmlinux && !strings.ContainsAny(module, `*?[\\`) && !slices.Contains(p.table.Modules(), module):
		return "module " + module + " is not loaded; what is built in is in vmlinux"
	case q.Modules == nil && !q.byType() && q.Exclude == nil && !p.sel.hasExclusion():
		return ""
	case !p.matchesText(s):
		return ""
	case q.byType():
		return "none of those that match has the arguments and result that were asked for, or they are excluded"
	}
	return "all that match are excluded"
}

// matchesText reports whether a pattern by itself matches a function.
func (p *planner) matchesText(s *selected) bool {
	for i := range p.table.Len() {
		if p.isText(i) && p.sel.matches(s, p.table.Module(i), p.table.Name(i)) {
			return true
		}
	}
	return false
}

func (s *selection) hasExclusion() bool {
	return slices.ContainsFunc(s.byIndex, func(s selected) bool { return s.Exclude })
}
