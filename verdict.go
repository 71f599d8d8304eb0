package kallscope

import (
	"github.com/kallscope/kallscope/kallsyms"
)

// A check is one obstacle. Checks are asked in their order, and the first that
// holds is the reason.
type check struct {
	reason Reason
	holds  func(*planner, *question) bool
}

// A question is what a verdict is about.
type question struct {
	addr         uint64
	module, name string
	class        kallsyms.Class
	site         siteState
	hit          *selected
}

// checks are the obstacles for the mechanisms that stand on ftrace sites.
//
// A .part function with a site of its own is called like any other, so it is a
// target; .cold never has one.
var checks = []check{
	{ReasonPseudoModule, func(_ *planner, q *question) bool { return kallsyms.IsPseudoModule(q.module) }},
	{ReasonPadding, ofClass(kallsyms.ClassPadding)},
	{ReasonCFIPreamble, ofClass(kallsyms.ClassCFIPreamble)},
	{ReasonCFIJumpTable, ofClass(kallsyms.ClassCFIJumpTable)},
	{ReasonCold, ofClass(kallsyms.ClassCold)},
	{ReasonModuleNotLive, func(p *planner, q *question) bool { return p.going[q.module] }},
	{ReasonInit, func(p *planner, q *question) bool { return q.site != siteYes && p.image.in(q.addr, ReasonInit) }},
	{ReasonNoinstr, func(p *planner, q *question) bool { return q.site != siteYes && p.image.in(q.addr, ReasonNoinstr) }},
	{ReasonFragment, func(_ *planner, q *question) bool { return q.site == siteNo && q.class == kallsyms.ClassPart }},
	{ReasonNoSite, func(_ *planner, q *question) bool { return q.site == siteNo }},
	{ReasonSiteUnknown, func(p *planner, q *question) bool { return q.site == siteUnknown && p.sitesAreKnown() }},
	{ReasonAmbiguousName, func(p *planner, q *question) bool { return q.addr == 0 && p.sharesName(q.name) }},
	{ReasonDispatch, func(p *planner, q *question) bool { return dispatch[q.name] && !p.options.Cautious && !q.hit.exact }},
	{ReasonOffset, func(_ *planner, q *question) bool { return q.hit.HasOffset }},
}

func ofClass(c kallsyms.Class) func(*planner, *question) bool {
	return func(_ *planner, q *question) bool { return q.class == c }
}

// verdict returns why a candidate is not a target, or ReasonNone.
func (p *planner) verdict(c choice, site siteState) Reason {
	p.question = question{
		addr: p.table.Addr(c.symbol), module: p.table.Module(c.symbol), name: p.table.Name(c.symbol),
		class: c.class, site: site, hit: &p.sel.byIndex[c.hit],
	}
	for i := range checks {
		if c := &checks[i]; c.holds(p, &p.question) {
			return c.reason
		}
	}
	return ReasonNone
}

func (p *planner) sitesAreKnown() bool { return p.plan.Facts.SitesUnknown == "" }

// sharesName reports whether the kernel would have to choose between symbols.
func (p *planner) sharesName(name string) bool {
	n := 0
	for _, i := range p.table.ByName(name) {
		if p.isText(i) {
			n++
		}
	}
	return n > 1
}
