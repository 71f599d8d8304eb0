package kallscope

import (
	"slices"
	"strings"

	"github.com/kallscope/kallscope/kallsyms"
)

// A check is one obstacle to some mechanisms. Checks are asked in their order:
// a plan takes the first that holds as the reason, [Kernel.Explain] all of them.
type check struct {
	reason Reason
	to     MechanismSet
	// holds says the same for all mechanisms of to.
	holds func(*planner, *question) bool
}

var (
	toAll     = setOf(func(Mechanism) bool { return true })
	toKprobes = setOf(func(m Mechanism) bool { return m == Kprobe || m == Kretprobe })
	toOthers  = toAll &^ toKprobes
	toEntries = toAll &^ setOf(func(m Mechanism) bool { return m == Kprobe }) // all that take no offset
	toBTF     = setOf(Mechanism.ByBTF)
	toReturns = setOf(func(m Mechanism) bool { return m.ByBTF() && m != Fentry && m != FentryMulti })
)

// A question is what a verdict is about.
type question struct {
	addr, end    uint64 // entry, and the next address that has a symbol
	module, name string
	class        kallsyms.Class
	site         siteState
	hit          *selected
	mechanism    Mechanism
	trampoline   *trampoline // once it is known
}

// checks are the obstacles.
//
// A .part function with a site of its own is called like any other, so it is a
// target; .cold never has one.
var checks = []check{
	{ReasonPseudoModule, toAll, func(_ *planner, q *question) bool { return kallsyms.IsPseudoModule(q.module) }},
	{ReasonPadding, toAll, ofClass(kallsyms.ClassPadding)},
	{ReasonCFIPreamble, toAll, ofClass(kallsyms.ClassCFIPreamble)},
	{ReasonCFIJumpTable, toAll, ofClass(kallsyms.ClassCFIJumpTable)},
	{ReasonCold, toAll, ofClass(kallsyms.ClassCold)},
	{ReasonModuleNotLive, toAll, func(p *planner, q *question) bool { return p.going[q.module] }},
	{ReasonInit, toAll, func(p *planner, q *question) bool { return q.site != siteYes && p.image.in(q.addr, ReasonInit) }},
	{ReasonNoinstr, toAll, func(p *planner, q *question) bool { return q.site != siteYes && p.image.in(q.addr, ReasonNoinstr) }},
	{ReasonFragment, toAll, func(_ *planner, q *question) bool { return q.site == siteNo && q.class == kallsyms.ClassPart }},
	{ReasonNoSite, toOthers, func(_ *planner, q *question) bool { return q.site == siteNo }},
	{ReasonNoSite, toKprobes, func(p *planner, q *question) bool { return q.site == siteNo && !p.baseHasSite(q.name) }},
	{ReasonSiteUnknown, toAll, func(p *planner, q *question) bool { return q.site == siteUnknown && p.sitesAreKnown() }},
	{ReasonBlacklisted, toKprobes, func(p *planner, q *question) bool { _, ok := p.blacklist.find(q.addr, q.name); return ok }},
	{ReasonAmbiguousName, toAll, func(p *planner, q *question) bool { return q.addr == 0 && p.sharesName(q.name) }},
	{ReasonDispatch, toOthers, func(p *planner, q *question) bool { return dispatch[q.name] && !p.options.Cautious && !q.hit.exact }},
	{ReasonOffset, toEntries, func(_ *planner, q *question) bool { return q.hit.HasOffset }},
	{ReasonNoBTF, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).noBTF() }},
	{ReasonAmbiguousName, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).ambiguous() }},
	{ReasonVariadic, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).Variadic }},
	{ReasonStructReturn, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).Ret.Aggregate() }},
	{ReasonLargeStruct, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).largeStruct() >= 0 }},
	{ReasonValueType, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).oddValue() }},
	{ReasonTooManyArgs, toBTF, func(p *planner, q *question) bool { return p.trampoline(q).tooManyArgs() }},
	{ReasonDenied, toBTF, func(p *planner, q *question) bool { return denies(p.deny.Trampolines, p.trampoline(q).id) }},
	{ReasonNoreturn, toReturns, func(p *planner, q *question) bool { return denies(p.deny.Returns, p.trampoline(q).id) }},
	{ReasonHangs, toBTF, func(p *planner, q *question) bool { return !p.options.Unsafe && Hangs(q.mechanism, q.fn()) != "" }},
}

func ofClass(c kallsyms.Class) func(*planner, *question) bool {
	return func(_ *planner, q *question) bool { return q.class == c }
}

// checksOf returns the checks for one mechanism.
func checksOf(m Mechanism) []check {
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return !c.to.Has(m) })
}

func (q *question) fn() Func { return Func{Addr: q.addr, Module: moduleName(q.module), Name: q.name} }

// ask makes the question about a candidate.
func (p *planner) ask(c choice, site siteState, end uint64) question {
	return question{
		addr: p.table.Addr(c.symbol), end: end, module: p.table.Module(c.symbol), name: p.table.Name(c.symbol),
		class: c.class, site: site, hit: &p.sel.byIndex[c.hit], mechanism: p.options.Mechanism,
	}
}

// verdict returns why the candidate of the question is not a target, or
// ReasonNone.
func (p *planner) verdict() Reason {
	for i := range p.checks {
		if c := &p.checks[i]; c.holds(p, &p.question) {
			return c.reason
		}
	}
	return ReasonNone
}

// possible returns the mechanisms for which the candidate of the question would
// be a target.
func (p *planner) possible() MechanismSet {
	q, left := p.question, toAll
	for i := range checks {
		c := &checks[i]
		if left&c.to == 0 {
			continue
		}
		if q.mechanism = (left & c.to).first(); c.holds(p, &q) {
			left &^= c.to
		}
	}
	return left
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

// baseHasSite reports whether a function that the compiler made of another one
// may have a kprobe although it has no site: the kernel asks for the base name
// too (within_notrace_func() in kernel/trace/trace_kprobe.c).
func (p *planner) baseHasSite(name string) bool {
	base, _, made := strings.Cut(name, ".")
	if !made {
		return false
	}
	syms := p.table.ByName(base)
	if len(syms) == 0 {
		return false
	}
	_, ok := p.sites.find(p.table.Addr(syms[0]))
	return ok
}
