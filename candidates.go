package kallscope

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

// walkEntries decides about each entry address that the query includes.
func (p *planner) walkEntries() {
	for syms, end := range entries(p.table, p.isText) {
		c := p.choose(syms)
		switch {
		case c.hit == noHit:
		case p.aliasExcluded(syms):
			p.sel.byIndex[c.hit].hits++
			p.plan.Skipped.addSymbol(c.symbol, ReasonExcludedAlias, 0)
		default:
			p.decide(c, p.sites.at(p.table.Addr(c.symbol), end), end)
		}
	}
}

// entries yields the text symbols of each address, in the order of addresses,
// and the next address that has a symbol. The slice is reused.
func entries(t *kallsyms.Table, isText func(int) bool) iter.Seq2[[]int, uint64] {
	return func(yield func([]int, uint64) bool) {
		var syms []int
		order := t.AddrOrder()
		for len(order) > 0 {
			addr, n := t.Addr(int(order[0])), 0
			for syms = syms[:0]; n < len(order) && t.Addr(int(order[n])) == addr; n++ {
				if i := int(order[n]); isText(i) {
					syms = append(syms, i)
				}
			}
			order = order[n:]
			end := ^uint64(0)
			if len(order) > 0 {
				end = t.Addr(int(order[0]))
			}
			if len(syms) > 0 && !yield(syms, end) {
				return
			}
		}
	}
}

// walkNames decides about each text symbol, when addresses are hidden.
func (p *planner) walkNames() {
	syms := make([]int, 1)
	for i := range p.table.Len() {
		if !p.isText(i) {
			continue
		}
		syms[0] = i
		if c := p.choose(syms); c.hit != noHit {
			p.decide(c, p.siteOfName(i, c.hit), 0)
		}
	}
}

// siteOfName says what the list of names says. It has one name an address, so
// a name that is not in it may be another one of a listed function. Who names
// it exactly wants it tried.
func (p *planner) siteOfName(i, hit int) siteState {
	switch {
	case p.names == nil:
		return siteUnknown
	case p.names[moduleName(p.table.Module(i))+":"+p.table.Name(i)], p.sel.byIndex[hit].exact:
		return siteYes
	}
	return siteUnknown
}

// A choice is the symbol that stands for an address, and the pattern that
// includes it.
type choice struct {
	symbol, hit int
	class       kallsyms.Class
}

// choose returns the choice among the symbols at one address: the first that a
// pattern includes, names of real functions before those of padding and the
// like.
func (p *planner) choose(syms []int) choice {
	chosen := choice{hit: noHit}
	for _, i := range syms {
		module, name := p.table.Module(i), p.table.Name(i)
		class := kallsyms.Classify(name)
		p.wanted.noteSuffixed(moduleName(module), name, class)
		hit := p.sel.include(module, name, p.table.Addr(i))
		if class.IsFunction() && (hit != noHit || p.sel.without[p.table.Addr(i)]) {
			p.wanted.note(moduleName(module), name)
		}
		p.noteVariant(hit, moduleName(module), name)
		if hit == noHit || chosen.hit != noHit && (chosen.class.IsFunction() || !class.IsFunction()) {
			continue
		}
		if p.types.fits(p.kernel, moduleName(module), name) {
			chosen = choice{i, hit, class}
		}
	}
	return chosen
}

// noteVariant says that a BTF function is there in the form of a variant, where
// the query takes those.
func (p *planner) noteVariant(hit int, module, name string) {
	if base := p.sel.set.baseOf(name); hit != noHit && base != "" && p.types.fits(p.kernel, module, name) {
		p.wanted.note(module, base)
	}
}

// aliasExcluded reports whether one of several names of an address is excluded:
// who keeps away from a function by one of its names means the function.
func (p *planner) aliasExcluded(syms []int) bool {
	if len(syms) == 1 {
		return false
	}
	return slices.ContainsFunc(syms, func(i int) bool { return p.sel.excludes(p.table.Module(i), p.table.Name(i)) })
}

func (p *planner) decide(c choice, site siteState, end uint64) {
	c.hit = p.withoutOffset(c)
	p.question = p.ask(c, site, end)
	if problem := p.question.beyond(); problem != "" {
		p.question.hit.problem = problem
		return
	}
	p.question.hit.hits++
	if p.question.hit.HasOffset {
		p.plan.offsets[p.question.addr] = uint32(p.question.hit.Offset)
	}
	if p.visit != nil {
		p.visit(c.symbol, p.question)
	}
	var set MechanismSet
	if p.options.Mechanisms {
		set = p.possible()
	}
	if r := p.verdict(); r != ReasonNone {
		p.plan.Skipped.addSymbol(c.symbol, r, set)
		return
	}
	p.targets = append(p.targets, uint32(c.symbol))
	if p.options.Mechanisms {
		p.sets = append(p.sets, set)
	}
}

// withoutOffset returns the pattern that asks for the entry of a function where
// the one that was found first asks for a place behind it: one function is one
// candidate.
func (p *planner) withoutOffset(c choice) int {
	first := &p.sel.byIndex[c.hit]
	if !first.HasOffset {
		return c.hit
	}
	for i := range p.sel.byIndex {
		s := &p.sel.byIndex[i]
		byAddr := s.Kind == pattern.Addr && p.sel.addrs[p.table.Addr(c.symbol)] == i
		if !s.Exclude && !s.HasOffset && (byAddr || p.sel.matches(s, p.table.Module(c.symbol), p.table.Name(c.symbol))) {
			first.problem = "the entry of this function is asked for too; ask for its inside by itself"
			return i
		}
	}
	return c.hit
}

// beyond says what is wrong with an offset.
func (q *question) beyond() string {
	switch {
	case !q.hit.HasOffset:
		return ""
	case q.hit.Offset > math.MaxUint32:
		return "no function is that long"
	case q.end <= q.addr || q.hit.Offset < q.end-q.addr:
		return ""
	}
	return fmt.Sprintf("%s ends at +%#x or before", q.name, q.end-q.addr)
}

// conclude makes the targets, now that their number is known.
func (p *planner) conclude() {
	p.plan.Targets = make([]Target, len(p.targets))
	for i, symbol := range p.targets {
		t := Target{Func: funcOf(p.table, int(symbol)), Mechanism: p.options.Mechanism, Offset: p.plan.offsets[p.table.Addr(int(symbol))]}
		if p.sets != nil {
			t.Mechanisms = p.sets[i]
		}
		p.plan.Targets[i] = t
	}
	p.targets, p.sets = nil, nil
}

// wanted are the BTF functions that the query includes, by object.
type wanted map[string]*wantedIn

// wantedIn says of each function of one BTF object, by its index there, what
// has been seen of it among the symbols.
type wantedIn struct {
	btf   *btfscan.BTF
	state []sighting
}

type sighting uint8

const (
	unwanted sighting = iota
	unseen
	suffixed // only under a name that the compiler made of it
	seen
)

// note says that a symbol of this name is there.
func (w wanted) note(module, name string) {
	if in := w[module]; in != nil {
		in.mark(name, seen)
	}
}

// noteSuffixed says that a function is there whose name the compiler made of
// another one.
func (w wanted) noteSuffixed(module, name string, class kallsyms.Class) {
	if len(w) == 0 || class == kallsyms.ClassPlain || !class.IsFunction() {
		return
	}
	if in := w[module]; in != nil {
		in.mark(kallsyms.BaseName(name), suffixed)
	}
}

// mark notes a sighting of all functions of a name.
func (in *wantedIn) mark(name string, s sighting) {
	for i := range in.btf.Indexes(name) {
		if in.state[i] != unwanted {
			in.state[i] = max(in.state[i], s)
		}
	}
}

// wantBTF collects the BTF functions that a pattern of several names includes:
// those without a symbol are candidates too. BTF is asked for exact names only
// once no symbol has them.
func (p *planner) wantBTF() {
	if !p.sel.has(func(s *selected) bool { return !s.exact }) {
		return
	}
	p.wanted = make(wanted)
	for _, object := range p.objects() {
		p.wantObject(object, func(s *selected) bool { return !s.exact })
	}
}

// wantExact adds the BTF functions of exact names that no symbol has.
func (p *planner) wantExact() {
	unmatched := func(s *selected) bool { return s.exact && s.hits == 0 && s.Kind != pattern.Addr }
	if !p.sel.has(unmatched) {
		return
	}
	if p.wanted == nil {
		p.wanted = make(wanted)
	}
	for _, object := range p.objects() {
		p.wantObject(object, unmatched)
	}
}

// has reports whether an including pattern is of a kind.
func (s *selection) has(kind func(*selected) bool) bool {
	for i := range s.byIndex {
		if !s.byIndex[i].Exclude && kind(&s.byIndex[i]) {
			return true
		}
	}
	return false
}

// objects returns the BTF objects that the query can match in.
func (p *planner) objects() []string {
	objects := []string{Vmlinux}
	if p.scope != scopeVmlinux {
		modules, err := p.kernel.source.btfObjects()
		if err != nil {
			p.btfUnknown(err)
		}
		objects = append(objects, modules...)
	}
	reached := objects[:0]
	for _, object := range objects {
		if p.sel.inModules(object) && p.sel.has(func(s *selected) bool { return s.MatchModule(object) }) &&
			(object == Vmlinux || p.narrow == nil || p.narrow.btfWithin(object, p.reach)) {
			reached = append(reached, object)
		}
	}
	return reached
}

func (p *planner) btfUnknown(err error) {
	if p.plan.Facts.BTFUnknown == "" {
		p.plan.Facts.BTFUnknown = err.Error()
	}
}

func (p *planner) wantObject(object string, kind func(*selected) bool) {
	b, err := p.kernel.openBTF(object)
	if err != nil {
		p.btfUnknown(err)
		return
	}
	if partial := b.Partial(); partial != nil {
		p.btfUnknown(partial)
	}
	in, n := p.wanted[object], 0
	for i := range b.FuncCount() {
		name := b.Func(i).Name
		hit := p.sel.include(object, name, 0)
		if hit == noHit || !kind(&p.sel.byIndex[hit]) {
			continue
		}
		if in == nil {
			in = &wantedIn{b, make([]sighting, b.FuncCount())}
			p.wanted[object] = in
		}
		in.state[i] = p.sightingOf(object, name, hit)
		n++
	}
	if n > manyNames {
		b.IndexNames()
	}
}

// manyNames is from how many wanted functions on the symbols are looked up in a
// hash index.
const manyNames = 4096

// sightingOf is for exact names, which are wanted after the symbols have been
// walked over.
func (p *planner) sightingOf(module, name string, hit int) sighting {
	if !p.sel.byIndex[hit].exact {
		return unseen
	}
	if p.hasText(module, name) {
		return seen // excluded by its address, or of another type
	}
	if len(p.variantsOf(Func{Name: name, Module: module})) > 0 {
		return suffixed
	}
	return unseen
}

// variantsOf returns the names of the functions that the compiler made of one.
func (p *planner) variantsOf(f Func) (names []string) {
	for _, i := range p.table.Variants(f.Name) {
		name := p.table.Name(i)
		if moduleName(p.table.Module(i)) == f.Module && p.isText(i) && kallsyms.Classify(name).IsFunction() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (p *planner) hasText(module, name string) bool {
	return slices.ContainsFunc(p.table.ByName(name), func(i int) bool {
		return p.isText(i) && moduleName(p.table.Module(i)) == module
	})
}

// walkBTF makes a candidate of each wanted function that has no symbol.
func (p *planner) walkBTF() {
	for _, object := range p.objects() {
		in := p.wanted[object]
		if in == nil {
			continue
		}
		discarded := p.discarded(object, in)
		for i, state := range in.state {
			if state != unseen && state != suffixed {
				continue
			}
			fn := in.btf.Func(i)
			if !p.types.fitsFunc(in.btf, fn) {
				continue
			}
			p.sel.byIndex[p.sel.include(object, fn.Name, 0)].hits++
			reason := ReasonNoSymbol
			switch {
			case state == suffixed:
				reason = ReasonSuffixed
			case discarded[fn.Name]:
				reason = ReasonInit
			}
			p.plan.Skipped.add(Func{Name: strings.Clone(fn.Name), Module: object, BTFID: fn.ID}, reason)
		}
	}
}

// discarded returns which of the functions without a place in the code have a
// symbol with the letter of code: __exit functions of what is built in, which are
// freed after boot too, lie behind all bounds that symbols mark.
func (p *planner) discarded(object string, in *wantedIn) map[string]bool {
	names := make(map[string]bool)
	for i, state := range in.state {
		if state == unseen {
			names[in.btf.Func(i).Name] = false
		}
	}
	if object != Vmlinux || len(names) == 0 {
		return nil
	}
	for i := range p.table.InModule("") {
		if !kallsyms.IsText(p.table.Type(i)) || p.isText(i) {
			continue
		}
		if _, wanted := names[p.table.Name(i)]; wanted {
			names[p.table.Name(i)] = true
		}
	}
	return names
}

// walkData makes candidates of data symbols that were named exactly: who asks
// for one by name is told, globs are about functions.
func (p *planner) walkData() {
	for n := range p.sel.byIndex {
		s := &p.sel.byIndex[n]
		name, exact := s.Exact()
		if s.Exclude || !exact || s.hits > 0 {
			continue
		}
		for _, i := range p.table.ByName(name) {
			if p.isText(i) || p.sel.include(p.table.Module(i), name, 0) != n {
				continue
			}
			s.hits++
			p.plan.Skipped.add(funcOf(p.table, i), ReasonDataSymbol)
		}
	}
}
