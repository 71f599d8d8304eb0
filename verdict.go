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
	Func
	class kallsyms.Class
	site  siteState
	hit   *selected
}

// checks are the obstacles for the mechanisms that stand on ftrace sites.
//
// A .part function with a site of its own is called like any other, so it is a
// target; .cold never has one.
var checks = []check{
	{ReasonPseudoModule, func(_ *planner, q *question) bool { return kallsyms.IsPseudoModule(q.Module) }},
	{ReasonPadding, ofClass(kallsyms.ClassPadding)},
	{ReasonCFIPreamble, ofClass(kallsyms.ClassCFIPreamble)},
	{ReasonCFIJumpTable, ofClass(kallsyms.ClassCFIJumpTable)},
	{ReasonCold, ofClass(kallsyms.ClassCold)},
	{ReasonModuleNotLive, func(p *planner, q *question) bool { return p.going[q.Module] }},
	{ReasonInit, func(p *planner, q *question) bool { return q.site == siteNo && p.in(q.Func, ReasonInit) }},
	{ReasonNoinstr, func(p *planner, q *question) bool { return q.site == siteNo && p.in(q.Func, ReasonNoinstr) }},
	{ReasonFragment, func(_ *planner, q *question) bool { return q.site == siteNo && q.class == kallsyms.ClassPart }},
	{ReasonNoSite, func(_ *planner, q *question) bool { return q.site == siteNo }},
	{ReasonSiteUnknown, func(p *planner, q *question) bool { return q.site == siteUnknown && p.sitesAreKnown() }},
	{ReasonAmbiguousName, func(p *planner, q *question) bool { return q.Addr == 0 && p.sharesName(q.Name) }},
	{ReasonDispatch, func(p *planner, q *question) bool { return dispatch[q.Name] && !p.options.Cautious && !q.hit.exact }},
	{ReasonOffset, func(_ *planner, q *question) bool { return q.hit.HasOffset }},
}

func ofClass(c kallsyms.Class) func(*planner, *question) bool {
	return func(_ *planner, q *question) bool { return q.class == c }
}

// verdict returns why a candidate is not a target, or ReasonNone.
func (p *planner) verdict(f Func, hit int, site siteState) Reason {
	q := question{Func: f, class: kallsyms.Classify(f.Name), site: site, hit: &p.sel.byIndex[hit]}
	for _, c := range checks {
		if c.holds(p, &q) {
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
		if kallsyms.IsText(p.table.Type(i)) {
			n++
		}
	}
	return n > 1
}

// A codeRange is a part of the image whose functions have no site for a reason
// of their own.
type codeRange struct {
	reason     Reason
	start, end uint64
}

// rangeSymbols bound such parts (include/asm-generic/vmlinux.lds.h,
// arch/x86/kernel/vmlinux.lds.S).
var rangeSymbols = []struct {
	reason     Reason
	start, end string
}{
	{ReasonInit, "_sinittext", "_einittext"},
	{ReasonNoinstr, "__noinstr_text_start", "__noinstr_text_end"},
	{ReasonNoinstr, "__entry_text_start", "__entry_text_end"},
	{ReasonNoinstr, "__cpuidle_text_start", "__cpuidle_text_end"},
}

func (p *planner) in(f Func, r Reason) bool {
	if p.ranges == nil {
		p.ranges = p.findRanges()
	}
	for _, c := range p.ranges {
		if c.reason == r && c.start <= f.Addr && f.Addr < c.end {
			return true
		}
	}
	return false
}

func (p *planner) findRanges() []codeRange {
	ranges := make([]codeRange, 0, len(rangeSymbols))
	for _, s := range rangeSymbols {
		start, end := p.addrOf(s.start), p.addrOf(s.end)
		if start < end {
			ranges = append(ranges, codeRange{s.reason, start, end})
		}
	}
	return ranges
}

func (p *planner) addrOf(name string) uint64 {
	for _, i := range p.table.ByName(name) {
		return p.table.Addr(i)
	}
	return 0
}
