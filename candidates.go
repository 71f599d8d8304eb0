package kallscope

import (
	"iter"
	"strings"

	"github.com/kallscope/kallscope/internal/btfscan"
	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

// walkEntries makes a candidate of each entry address that the query includes.
func (p *planner) walkEntries() {
	for syms, end := range entries(p.table) {
		f, hit := p.choose(syms)
		if hit == noHit {
			continue
		}
		p.sel.byIndex[hit].hits++
		p.add(f, p.verdict(f, hit, p.sites.at(f.Addr, end)))
	}
}

// entries yields the text symbols of each address, in the order of addresses,
// and the next address that has a symbol. The slice is reused.
func entries(t *kallsyms.Table) iter.Seq2[[]int, uint64] {
	return func(yield func([]int, uint64) bool) {
		var syms []int
		order := t.AddrOrder()
		for len(order) > 0 {
			addr, n := t.Addr(int(order[0])), 0
			for syms = syms[:0]; n < len(order) && t.Addr(int(order[n])) == addr; n++ {
				if i := int(order[n]); kallsyms.IsText(t.Type(i)) {
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

// choose returns the function of the symbols at one address and the pattern
// that includes it. Its name is the first that a pattern includes, names of
// real functions before those of padding and the like; one excluded name
// excludes the address.
func (p *planner) choose(syms []int) (f Func, hit int) {
	hit = noHit
	best := kallsyms.Class(0)
	for _, i := range syms {
		module, name := p.table.Module(i), p.table.Name(i)
		if len(syms) > 1 && p.sel.excludes(module, name) {
			return Func{}, noHit
		}
		h := p.sel.include(module, name, p.table.Addr(i))
		if h == noHit {
			continue
		}
		class := kallsyms.Classify(name)
		if hit != noHit && !(class.IsFunction() && !best.IsFunction()) {
			continue
		}
		candidate := Func{Addr: p.table.Addr(i), Name: name, Module: moduleName(module)}
		if !p.types.fits(p.kernel, candidate) {
			continue
		}
		f, hit, best = candidate, h, class
	}
	return f, hit
}

// walkNames makes a candidate of each text symbol, when addresses are hidden.
func (p *planner) walkNames() {
	for i := range p.table.Len() {
		if !kallsyms.IsText(p.table.Type(i)) {
			continue
		}
		f, hit := p.choose([]int{i})
		if hit == noHit {
			continue
		}
		p.sel.byIndex[hit].hits++
		p.add(f, p.verdict(f, hit, p.siteOfName(f)))
	}
}

func (p *planner) siteOfName(f Func) siteState {
	switch {
	case p.names == nil:
		return siteUnknown
	case p.names[f.Module+":"+f.Name]:
		return siteYes
	}
	return siteNo
}

// walkBTF makes a candidate of each BTF function that the query includes and
// that has no symbol. A query for exact names that all have symbols needs none.
func (p *planner) walkBTF() {
	if !p.needsBTF() {
		return
	}
	p.walkObject(Vmlinux)
	if p.scope == scopeVmlinux {
		return
	}
	objects, err := p.kernel.source.btfObjects()
	if err != nil {
		p.btfUnknown(err)
	}
	for _, object := range objects {
		if p.sel.inModules(object) && p.sel.reaches(object) {
			p.walkObject(object)
		}
	}
}

func (p *planner) needsBTF() bool {
	for _, s := range p.sel.byIndex {
		if !s.Exclude && s.Kind != pattern.Addr && (!s.exact || s.hits == 0) {
			return true
		}
	}
	return false
}

// reaches reports whether an including pattern can match in a module.
func (s *selection) reaches(module string) bool {
	for i := range s.byIndex {
		if !s.byIndex[i].Exclude && s.byIndex[i].MatchModule(module) {
			return true
		}
	}
	return false
}

func (p *planner) btfUnknown(err error) {
	if p.plan.Facts.BTFUnknown == "" {
		p.plan.Facts.BTFUnknown = err.Error()
	}
}

func (p *planner) walkObject(object string) {
	b, err := p.kernel.openBTF(object)
	if err != nil {
		p.btfUnknown(err)
		return
	}
	if partial := b.Partial(); partial != nil {
		p.btfUnknown(partial)
	}
	for fn := range b.Funcs() {
		hit := p.sel.include(object, fn.Name, 0)
		if hit == noHit || p.hasText(object, fn.Name) {
			continue
		}
		f := Func{Name: strings.Clone(fn.Name), Module: object, BTFID: fn.ID}
		if !p.types.fitsFunc(b, fn) {
			continue
		}
		p.sel.byIndex[hit].hits++
		p.add(f, p.withoutSymbol(object, fn))
	}
}

func (p *planner) hasText(module, name string) bool {
	for _, i := range p.table.ByName(name) {
		if kallsyms.IsText(p.table.Type(i)) && moduleName(p.table.Module(i)) == module {
			return true
		}
	}
	return false
}

// withoutSymbol tells a function that the compiler renamed from one that is not
// there.
func (p *planner) withoutSymbol(module string, fn btfscan.Func) Reason {
	for _, i := range p.table.Variants(fn.Name) {
		if moduleName(p.table.Module(i)) == module && kallsyms.IsText(p.table.Type(i)) && kallsyms.Classify(p.table.Name(i)).IsFunction() {
			return ReasonSuffixed
		}
	}
	return ReasonNoSymbol
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
			module := p.table.Module(i)
			if kallsyms.IsText(p.table.Type(i)) || p.sel.include(module, name, 0) != n {
				continue
			}
			s.hits++
			p.add(Func{Addr: p.table.Addr(i), Name: name, Module: moduleName(module)}, ReasonDataSymbol)
		}
	}
}

// applyDuplicates enforces the rule for several targets of one name.
func (p *planner) applyDuplicates() error {
	if p.options.Duplicates == DuplicatesAll {
		return nil
	}
	byName := make(map[string]int, len(p.plan.Targets))
	for _, t := range p.plan.Targets {
		byName[t.Name]++
	}
	seen := make(map[string]bool)
	kept := p.plan.Targets[:0]
	for _, t := range p.plan.Targets {
		switch {
		case byName[t.Name] == 1, p.options.Duplicates == DuplicatesFirst && !seen[t.Name]:
			kept = append(kept, t)
		case p.options.Duplicates == DuplicatesError:
			return p.ambiguous(t.Name)
		default:
			p.plan.Skipped = append(p.plan.Skipped, Skip{t.Func, ReasonDuplicate})
		}
		seen[t.Name] = true
	}
	p.plan.Targets = kept
	return nil
}

func (p *planner) ambiguous(name string) error {
	e := &AmbiguousError{Name: name}
	for _, t := range p.plan.Targets {
		if t.Name == name {
			e.Funcs = append(e.Funcs, t.Func)
		}
	}
	return e
}
