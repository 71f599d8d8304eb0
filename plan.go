package kallscope

import (
	"iter"

	"github.com/kallscope/kallscope/kallsyms"
)

// PlanOptions say how a query becomes targets. The zero value is the right
// choice for most.
type PlanOptions struct {
	// Mechanism forces one; MechanismAuto means kprobe.multi.
	Mechanism Mechanism
	// Duplicates says what to do with several functions of one name.
	Duplicates Duplicates
	// Cautious includes the functions that patterns leave out because the
	// probes themselves call them; see [ReasonDispatch].
	Cautious bool
	// Unsafe includes the functions on which a mechanism is known to stop the
	// machine; see [ReasonHangs].
	Unsafe bool
	// Mechanisms fills in the field of that name of targets and skipped
	// candidates. It reads all lists that a mechanism asks for, and costs a
	// microsecond or two a candidate.
	Mechanisms bool
}

// A Plan is the answer to a query: every candidate is either a target or
// skipped, with a reason. It depends on the facts of the kernel and the query
// alone, and can be stored.
type Plan struct {
	Kernel Identity `json:"kernel"`
	Query  Query    `json:"query"`
	// Targets are in the order of addresses, by name where those are hidden.
	Targets []Target `json:"targets"`
	// Skipped are the other candidates.
	Skipped Skips `json:"skipped"`
	// Unmatched are the including patterns that no candidate matched.
	Unmatched []Unmatched `json:"unmatched,omitempty"`
	// Facts are what the plan rests on.
	Facts Facts `json:"facts"`

	offsets map[uint64]uint32 // see Offset
}

// Offset returns the offset that was asked for behind the entry of a candidate,
// in bytes; usually zero. A plan that was read from a file has those of its
// targets only.
func (p *Plan) Offset(f Func) uint32 { return p.offsets[f.Addr] }

// A Target is a function to attach to, and how.
type Target struct {
	Func
	Mechanism Mechanism
	// Mechanisms are those for which a plan with the same options, but their
	// rule for duplicates, has this target; whether the kernel has them at all
	// it does not say. Filled in by [PlanOptions].Mechanisms.
	Mechanisms MechanismSet
	// Offset is where behind the entry the program runs, in bytes; other than
	// zero for [Kprobe] only.
	Offset uint32
}

// Unmatched is a pattern without a candidate.
type Unmatched struct {
	Pattern string `json:"pattern"`
	// Why is set when more is known than that no name matches.
	Why string `json:"why,omitempty"`
	// Near are names of functions that differ from an exact name by few
	// letters, the nearest first; five at most, for the first ten patterns.
	Near []string `json:"near,omitempty"`
}

// Facts count what a plan was made from.
type Facts struct {
	// Symbols are the lines of kallsyms that were read.
	Symbols int `json:"symbols"`
	// Sites are the ftrace records that were read; with SitesUnknown none.
	Sites int `json:"sites"`
	// SitesFrom is where they were read.
	SitesFrom string `json:"sites_from,omitempty"`
	// SitesUnknown says why it is not known which functions can be traced.
	// Then all are targets that could be, and attaching finds out.
	SitesUnknown string `json:"sites_unknown,omitempty"`
	// Hidden says why addresses are zero. Then targets have names only.
	Hidden string `json:"hidden,omitempty"`
	// BTFUnknown says why BTF was not used; candidates that are in BTF only
	// are then missing.
	BTFUnknown string `json:"btf_unknown,omitempty"`
	// BlacklistUnknown says why it is not known which code kprobes must stay
	// out of; attaching finds out. It is read for kprobe and kretprobe.
	BlacklistUnknown string `json:"blacklist_unknown,omitempty"`
	// DenyListUnknown says why it is not known which functions the verifier
	// refuses; attaching finds out. It is read for mechanisms by BTF id.
	DenyListUnknown string `json:"deny_list_unknown,omitempty"`
}

// Matched returns the number of candidates: targets and skipped.
func (p *Plan) Matched() int { return len(p.Targets) + p.Skipped.Len() }

// Plan answers a query. It reads the symbol table, the list of sites and, for
// patterns, the BTF; lists are read only up to the first module when the query
// can match in vmlinux alone.
//
// It fails on a pattern that is none ([*pattern.SyntaxError] with the column),
// on a BTF id that is no function, and when the symbol table cannot be read.
// That sites or BTF cannot be read is no failure, but recorded in Facts.
func (k *Kernel) Plan(q Query, o PlanOptions) (*Plan, error) {
	p, err := k.newPlanner(q, o)
	if err != nil {
		return nil, err
	}
	return p.run()
}

func (k *Kernel) newPlanner(q Query, o PlanOptions) (*planner, error) {
	c, err := q.compile()
	if err != nil {
		return nil, err
	}
	if o.Mechanism == MechanismAuto {
		o.Mechanism = KprobeMulti
	}
	scope := c.scope()
	reach := c.reachOf()
	narrow := k.narrowly(reach)
	table, err := k.symbolsWithin(scope, reach, narrow)
	if err != nil {
		return nil, err
	}
	sel, err := c.selectIn(k, table)
	if err != nil {
		return nil, err
	}
	types, err := k.compileTypes(q)
	if err != nil {
		return nil, err
	}
	p := &planner{
		kernel: k, scope: scope, table: table, image: imageOf(table), sel: sel, types: types, options: o,
		reach: reach, narrow: narrow, checks: checksOf(o.Mechanism),
		plan: &Plan{
			Kernel: k.identity, Query: q, Skipped: Skips{table: table},
			Facts: Facts{Symbols: table.Len()}, offsets: make(map[uint64]uint32),
		},
	}
	lists := MechanismSet(0).With(o.Mechanism)
	if o.Mechanisms {
		lists = toAll
	}
	p.loadLists(lists)
	return p, nil
}

// planner is one run of Plan.
type planner struct {
	kernel  *Kernel
	scope   scope
	table   *kallsyms.Table
	sel     *selection
	types   *typeQuery
	options PlanOptions
	sites   siteIndex
	names   map[string]bool // traceable "module:name", when addresses are hidden
	going   map[string]bool
	image   image
	reach   reach
	narrow  narrowSource // nil: every module's symbols are there

	checks    []check
	blacklist blacklist
	deny      denyLists
	limits    *trampolineLimits // once they are known

	wanted   wanted
	question question // the one that is asked now
	visit    func(symbol int, q question)
	targets  []uint32       // symbols
	sets     []MechanismSet // of targets, if they are asked for
	plan     *Plan
}

func (p *planner) run() (*Plan, error) {
	hidden := p.table.State() == kallsyms.Hidden
	if hidden {
		p.plan.Facts.Hidden = p.kernel.Switches().hidden()
	}
	p.loadSites(hidden)
	p.loadModules()
	p.wantBTF()
	if hidden {
		p.walkNames()
	} else {
		p.walkEntries()
	}
	p.conclude()
	p.wantExact()
	p.walkBTF()
	p.walkData()
	if err := p.applyDuplicates(); err != nil {
		return nil, err
	}
	p.plan.Unmatched = p.unmatched()
	return p.plan, nil
}

// loadSites reads the list of sites in the form that fits. Failure leaves the
// sites unknown.
func (p *planner) loadSites(hidden bool) {
	read := p.kernel.sites
	if hidden {
		read = p.kernel.siteNames
	}
	list, err := read(p.scope)
	if err != nil {
		p.sites, p.plan.Facts.SitesUnknown = sitesUnknown{}, err.Error()
		return
	}
	p.plan.Facts.Sites, p.plan.Facts.SitesFrom = list.len(), list.from
	switch {
	case hidden:
		p.names = list.names.set()
	case list.len() == len(list.addrs):
		p.sites = &siteCursor{list.addrs, list.addrs}
	default:
		p.sites = joinSiteNames(p.table, &list.names)
	}
}

// loadLists reads what only some mechanisms ask for. Failure leaves the lists
// empty.
func (p *planner) loadLists(ms MechanismSet) {
	if ms&toKprobes != 0 {
		list, err := p.kernel.KprobeBlacklist()
		if err != nil {
			p.plan.Facts.BlacklistUnknown = err.Error()
		}
		p.blacklist = newBlacklist(list)
	}
	if ms&toBTF != 0 {
		deny, err := p.kernel.denyLists()
		if err != nil {
			p.plan.Facts.DenyListUnknown = err.Error()
		}
		p.deny = deny
	}
}

func (p *planner) loadModules() {
	if p.scope == scopeVmlinux {
		return
	}
	// Unreadable means nothing is known to be going.
	p.going, _ = p.kernel.source.goingModules()
}

// Funcs yields all candidates in the order of their addresses, targets and
// skipped alike, then those without an address and those skipped as duplicates.
func (p *Plan) Funcs() iter.Seq[Func] {
	return func(yield func(Func) bool) {
		targets := p.Targets
		for skip := range p.Skipped.All() {
			for len(targets) > 0 && before(targets[0].Func, skip.Func) {
				if !yield(targets[0].Func) {
					return
				}
				targets = targets[1:]
			}
			if !yield(skip.Func) {
				return
			}
		}
		for _, t := range targets {
			if !yield(t.Func) {
				return
			}
		}
	}
}

func before(a, b Func) bool {
	return b.BTFID != 0 || a.BTFID == 0 && a.Addr <= b.Addr
}
