package kallscope

import (
	"strings"

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
	{ReasonInit, func(p *planner, q *question) bool { return q.site == siteNo && p.in(q.addr, ReasonInit) }},
	{ReasonNoinstr, func(p *planner, q *question) bool { return q.site == siteNo && p.in(q.addr, ReasonNoinstr) }},
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
func (p *planner) verdict(symbol, hit int, site siteState) Reason {
	name := p.table.Name(symbol)
	p.question = question{
		addr: p.table.Addr(symbol), module: p.table.Module(symbol), name: name,
		class: kallsyms.Classify(name), site: site, hit: &p.sel.byIndex[hit],
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

func (p *planner) in(addr uint64, r Reason) bool {
	if p.ranges == nil {
		p.ranges = p.findRanges()
	}
	for _, c := range p.ranges {
		if c.reason == r && c.start <= addr && addr < c.end {
			return true
		}
	}
	return false
}

// findRanges reads the names once: a few look-ups are no reason to build the
// table's index by name.
func (p *planner) findRanges() []codeRange {
	bounds := make(map[string]uint64, 2*len(rangeSymbols))
	for _, r := range rangeSymbols {
		bounds[r.start], bounds[r.end] = 0, 0
	}
	for i := range p.table.InModule("") {
		name := p.table.Name(i)
		if !strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_start"), "_end"), "text") {
			continue // all bounds end like that
		}
		if _, ok := bounds[name]; ok {
			bounds[name] = p.table.Addr(i)
		}
	}
	ranges := make([]codeRange, 0, len(rangeSymbols))
	for _, r := range rangeSymbols {
		if start, end := bounds[r.start], bounds[r.end]; start < end {
			ranges = append(ranges, codeRange{r.reason, start, end})
		}
	}
	return ranges
}
