package kallscope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kallscope/kallscope/kallsyms"
)

// An Explanation is everything that is known about the functions of a query.
type Explanation struct {
	Kernel   Identity  `json:"kernel"`
	Findings []Finding `json:"findings"`
	// Unmatched are the including patterns that nothing matches.
	Unmatched []Unmatched `json:"unmatched,omitempty"`
	Facts     Facts       `json:"facts"`
}

// A Finding is what is known about one candidate, and what each mechanism
// makes of it.
type Finding struct {
	Func
	// Names are all names of the address in the module, Name included.
	Names []string
	// IDs are the BTF functions of any of these names.
	IDs []BTFID
	// BaseIDs are what [Kernel.BaseIDs] returns: arguments may differ.
	BaseIDs []BTFID
	// Prototype is the C prototype of the first of IDs, else of BaseIDs; empty
	// without BTF.
	Prototype string
	// Prototypes are those of all IDs, in their order, where they differ.
	Prototypes []string
	// Room is how far the next symbol is, in bytes: the size of the function
	// and its padding. Zero when not known.
	Room uint64
	// Site is the address of the ftrace record; zero when there is none, or
	// when that is not known.
	Site uint64
	// Cautions are why patterns leave the function out although it could be
	// attached to.
	Cautions []Obstacle
	// Verdicts are in the order of [Mechanisms].
	Verdicts []Verdict
}

// A Verdict says what stands between a function and a mechanism; nothing when
// there are no obstacles. Whether the kernel has the mechanism at all it does
// not say.
type Verdict struct {
	Mechanism Mechanism  `json:"mechanism"`
	Obstacles []Obstacle `json:"obstacles,omitempty"`
}

// An Obstacle is a reason with what is special about this function.
type Obstacle struct {
	Reason Reason `json:"reason"`
	// Detail names the argument, the range or the like; often empty.
	Detail string `json:"detail,omitempty"`
}

// Verdict returns the verdict for one mechanism.
func (f *Finding) Verdict(m Mechanism) Verdict {
	i := slices.IndexFunc(f.Verdicts, func(v Verdict) bool { return v.Mechanism == m })
	if i < 0 {
		return Verdict{Mechanism: m}
	}
	return f.Verdicts[i]
}

// Explain answers a query with findings instead of targets: for every candidate
// what it is and all obstacles to all mechanisms, by the checks of [Kernel.Plan].
// It reads every list of the kernel, and costs some microseconds a candidate.
// Errors are those of Plan.
func (k *Kernel) Explain(q Query) (*Explanation, error) {
	p, err := k.newPlanner(q, PlanOptions{Cautious: true})
	if err != nil {
		return nil, err
	}
	p.loadLists(toAll)
	e := &explainer{planner: p, seen: make(map[int]bool)}
	p.visit = e.visit
	plan, err := p.run()
	if err != nil {
		return nil, err
	}
	for i := range e.asked {
		e.explain(&e.asked[i])
	}
	e.explainSkipped(plan)
	return &Explanation{plan.Kernel, e.findings, plan.Unmatched, plan.Facts}, nil
}

type explainer struct {
	*planner
	asked    []asked
	seen     map[int]bool // symbols
	findings []Finding
}

// asked is a candidate that the planner asked its question about.
type asked struct {
	symbol   int
	question question
}

func (e *explainer) visit(symbol int, q question) {
	e.asked = append(e.asked, asked{symbol, q})
	e.seen[symbol] = true
}

func (e *explainer) explain(a *asked) {
	q := &a.question
	f := Finding{Func: q.fn(), Names: e.namesAt(a.symbol)}
	if q.end > q.addr && q.end != ^uint64(0) {
		f.Room = q.end - q.addr
	}
	if q.site == siteYes {
		f.Site, _ = e.sites.find(q.addr)
	}
	if dispatch[q.name] {
		f.Cautions = append(f.Cautions, Obstacle{Reason: ReasonDispatch})
	}
	e.describe(&f)
	for _, m := range Mechanisms() {
		f.Verdicts = append(f.Verdicts, e.ruleOn(m, q))
	}
	e.findings = append(e.findings, f)
}

// ruleOn asks every check about one mechanism.
func (e *explainer) ruleOn(m Mechanism, q *question) Verdict {
	v := Verdict{Mechanism: m}
	q.mechanism = m
	for i := range checks {
		if c := &checks[i]; c.to.Has(m) && c.holds(e.planner, q) {
			v.Obstacles = append(v.Obstacles, Obstacle{c.reason, e.detail(c.reason, q)})
		}
	}
	return v
}

// detail says what of the function the reason is about.
func (e *explainer) detail(r Reason, q *question) string {
	t := q.trampoline
	switch r {
	case ReasonBlacklisted:
		r, _ := e.blacklist.find(q.addr, q.name)
		return r.String()
	case ReasonNoBTF, ReasonAmbiguousName:
		if t != nil && t.err != nil && !errors.Is(t.err, ErrNotFound) {
			return strings.TrimSuffix(t.err.Error(), ": "+ErrAmbiguous.Error())
		}
	case ReasonLargeStruct:
		i := t.largeStruct()
		return fmt.Sprintf("argument %d has %d bytes", i+1, t.Params[i].Size)
	case ReasonTooManyArgs:
		return fmt.Sprintf("%d arguments, %d registers at most", len(t.Params), t.limits.registers)
	case ReasonHangs:
		return Hangs(q.mechanism, q.fn())
	}
	return ""
}

// describe adds what BTF says.
func (e *explainer) describe(f *Finding) {
	b, err := e.kernel.openBTF(f.Module)
	if err != nil {
		return
	}
	for _, name := range f.Names {
		for i := range b.Indexes(name) {
			f.IDs = append(f.IDs, BTFID{f.Module, b.Func(i).ID})
		}
	}
	if len(f.IDs) == 0 {
		if f.BaseIDs = e.kernel.BaseIDs(f.Func); len(f.BaseIDs) > 0 {
			f.Prototype, _ = e.kernel.Prototype(f.BaseIDs[0])
		}
		return
	}
	var all []string
	for _, id := range f.IDs {
		prototype, _ := e.kernel.Prototype(id) // empty is not known
		all = append(all, prototype)
	}
	f.Prototype = all[0]
	if slices.ContainsFunc(all, func(p string) bool { return p != f.Prototype }) {
		f.Prototypes = all
	}
}

// namesAt returns the names of a symbol's address, its own first.
func (e *explainer) namesAt(symbol int) []string {
	names := []string{e.table.Name(symbol)}
	if e.table.Addr(symbol) == 0 {
		return names
	}
	for _, i := range e.table.At(e.table.Addr(symbol)) {
		if i != symbol && e.table.Module(i) == e.table.Module(symbol) && kallsyms.IsText(e.table.Type(i)) {
			names = append(names, e.table.Name(i))
		}
	}
	return names
}

// explainSkipped adds the candidates about which nothing was asked: those
// without a symbol, data, and excluded ones. One reason holds for all
// mechanisms.
func (e *explainer) explainSkipped(plan *Plan) {
	for s := range plan.Skipped.All() {
		if s.BTFID == 0 && e.asksAbout(s.Func) {
			continue
		}
		f := Finding{Func: s.Func, Names: []string{s.Name}}
		e.describe(&f)
		o := Obstacle{Reason: s.Reason}
		if s.Reason == ReasonSuffixed {
			o.Detail = strings.Join(e.variantsOf(s.Func), ", ")
		}
		for _, m := range Mechanisms() {
			f.Verdicts = append(f.Verdicts, Verdict{m, []Obstacle{o}})
		}
		e.findings = append(e.findings, f)
	}
	slices.SortStableFunc(e.findings, func(a, b Finding) int { return cmp.Compare(orderOf(a.Addr), orderOf(b.Addr)) })
}

// orderOf puts what has no address last.
func orderOf(addr uint64) uint64 { return addr - 1 }

func (e *explainer) asksAbout(f Func) bool {
	return slices.ContainsFunc(e.table.ByName(f.Name), func(i int) bool {
		return e.seen[i] && e.table.Addr(i) == f.Addr && moduleName(e.table.Module(i)) == f.Module
	})
}
