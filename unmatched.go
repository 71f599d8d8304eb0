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
// asked again, each by itself.
func (p *planner) unmatched() []Unmatched {
	var list []Unmatched
	for i := range p.sel.byIndex {
		s := &p.sel.byIndex[i]
		if !s.Exclude && s.hits == 0 && !p.matchesAlone(s) {
			u := Unmatched{Pattern: s.String(), Why: p.whyUnmatched(s)}
			if name, exact := s.bound.Exact(); exact && len(list) < maxNear {
				u.Near = p.nearNames(name)
			}
			list = append(list, u)
		}
	}
	return list
}

func (p *planner) matchesAlone(s *selected) bool {
	if s.Kind == pattern.Addr {
		return s.problem == "" && len(p.sel.addrs) > 0
	}
	symbols := p.table.Len()
	if name, exact := s.bound.Exact(); exact {
		return slices.ContainsFunc(p.table.ByName(name), func(i int) bool { return p.isCandidate(s, i) })
	}
	for i := range symbols {
		if p.isCandidate(s, i) {
			return true
		}
	}
	return false
}

// isCandidate reports whether the pattern and the whole query include a symbol.
func (p *planner) isCandidate(s *selected, i int) bool {
	module, name := p.table.Module(i), p.table.Name(i)
	return s.bound.Match(module, name) && p.isText(i) && p.sel.include(module, name, p.table.Addr(i)) != noHit &&
		p.types.fits(p.kernel, moduleName(module), name)
}

// whyUnmatched says what else is known of a pattern that nothing matches.
func (p *planner) whyUnmatched(s *selected) string {
	q := &p.plan.Query
	switch module := s.bound.Module; {
	case s.problem != "":
		return s.problem
	case module != "" && module != Vmlinux && !strings.ContainsAny(module, `*?[\\`) && !slices.Contains(p.table.Modules(), module):
		return "module " + module + " is not loaded"
	case len(q.Modules)+len(q.Args)+len(q.Rets) > 0:
		return "none that is in the modules and has the types that were asked for"
	}
	return ""
}
