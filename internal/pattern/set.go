package pattern

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Set is many patterns, asked at once. It is not changed after [NewSet]; safe for
// concurrent use.
type Set struct {
	include, exclude group
	everything       bool // no pattern includes
	vmlinuxOnly      bool
	allExact         bool // every including pattern is in exact
	exact            []ExactName
}

// SetOptions is what patterns need to know about the kernel.
type SetOptions struct {
	// SyscallPrefixes is what the functions of system calls begin with on the kernel, as
	// [SyscallPrefixes] and [DetectSyscallPrefix] have it. None means those of every
	// architecture.
	SyscallPrefixes []string
}

// ExactName is a name that an including pattern matches alone.
type ExactName struct {
	Index int // of the pattern
	Name  string
}

// everythingIndex is the index that Match returns where no pattern includes.
const everythingIndex = -1

// NewSet returns the set of the patterns; their indexes are those of the slice. BTF ids and
// addresses match no name: they are for the caller, who has the same slice. It fails on
// patterns that [Parse] has not made and on an empty prefix.
func NewSet(patterns []Pattern, o SetOptions) (*Set, error) {
	if len(o.SyscallPrefixes) == 0 {
		o.SyscallPrefixes = allSyscallPrefixes
	}
	if slices.Contains(o.SyscallPrefixes, "") {
		return nil, errors.New("make pattern set: empty system call prefix; give sys_ for kernels without wrappers")
	}
	s := &Set{everything: true, vmlinuxOnly: true, allExact: true}
	for i := range patterns {
		if err := s.add(i, &patterns[i], o.SyscallPrefixes); err != nil {
			return nil, err
		}
	}
	if s.everything {
		s.vmlinuxOnly, s.allExact = false, false
	}
	return s, nil
}

func (s *Set) add(i int, p *Pattern, prefixes []string) error {
	names, err := matchers(p, prefixes)
	if err != nil {
		return fmt.Errorf("make pattern set: pattern %d %q: %w", i, p.Text, err)
	}
	g := &s.include
	if p.Exclude {
		g = &s.exclude
	}
	for _, m := range names {
		g.add(newEntry(i, p.module, m))
	}
	if !p.Exclude {
		s.noteInclude(i, p, names)
	}
	return nil
}

// noteInclude keeps what the set says about its including patterns.
func (s *Set) noteInclude(i int, p *Pattern, names []matcher) {
	s.everything = false
	s.vmlinuxOnly = s.vmlinuxOnly && p.VmlinuxOnly()
	for _, m := range names {
		if name, ok := exactName(m); ok {
			s.exact = append(s.exact, ExactName{i, name})
		} else {
			s.allExact = false
		}
	}
}

// matchers returns what matches the pattern's names: nothing, one, or one for each prefix
// of system calls.
func matchers(p *Pattern, prefixes []string) ([]matcher, error) {
	switch {
	case p.Kind == BTFID || p.Kind == Addr:
		return nil, nil
	case p.name == nil:
		return nil, errors.New("not compiled; make it with Parse")
	case p.Kind != Syscall:
		return []matcher{p.name}, nil
	}
	items, err := globItems(piece{s: p.Name})
	if err != nil {
		return nil, err
	}
	var ms []matcher
	for _, g := range syscallGlobs(items, prefixes) {
		ms = append(ms, g)
	}
	return ms, nil
}

// Match returns the index of the first including pattern that matches the name in that
// module, where an empty module is vmlinux. What an exclusion matches is not ok, wherever
// the exclusion stands. Without any including pattern everything else is ok, with index -1.
func (s *Set) Match(module, name string) (index int, ok bool) {
	index = everythingIndex
	if !s.everything {
		index, ok = s.include.first(module, name)
		if !ok {
			return 0, false
		}
	}
	if _, excluded := s.exclude.first(module, name); excluded {
		return 0, false
	}
	return index, true
}

// Excludes returns the index of the first excluding pattern that matches the name in that
// module.
func (s *Set) Excludes(module, name string) (index int, ok bool) {
	return s.exclude.first(module, name)
}

// Exact returns the names that including patterns match alone, in the order of the
// patterns: exact names, and exact system calls with each prefix. With all, no including
// pattern matches any other name, so looking these up finds everything that [Set.Match]
// would; exclusions and modules are still to be asked. The caller must not change the slice.
func (s *Set) Exact() (names []ExactName, all bool) {
	return s.exact, s.allExact
}

// VmlinuxOnly reports whether nothing in a module can match.
func (s *Set) VmlinuxOnly() bool { return s.vmlinuxOnly }

// entry is one pattern of a group.
type entry struct {
	index  int
	module *glob
	prefix string // asked before name, because it costs no call
	glob   *glob  // name, where it is a glob: so it costs no dynamic call
	name   matcher
}

func newEntry(index int, module *glob, name matcher) entry {
	g, _ := name.(*glob)
	return entry{index, module, name.literalPrefix(), g, name}
}

func (e *entry) matchName(name string) bool {
	if e.glob != nil {
		return e.glob.match(name)
	}
	return e.name.match(name)
}

func (e *entry) matchModule(module string) bool {
	return e.module == nil || e.module.match(module)
}

// group finds the first of its patterns that matches. Exact names are in a map; the others
// are asked only for names that begin with their first byte. The lists are in the order of
// the patterns.
type group struct {
	used       bool // has patterns
	hasAll     bool // has a * for every module
	all        int  // the first of those
	hasModules bool // some pattern has a module part
	exact      map[string][]entry
	lengths    [256]uint64 // by first byte: the lengths, modulo 64, that exact names have
	byFirst    [256][]entry
	free       []entry // may begin with anything
}

func (g *group) add(e entry) {
	g.hasModules = g.hasModules || e.module != nil
	g.used = true
	if e.module == nil && e.glob != nil && e.glob.matchesAll() {
		if !g.hasAll {
			g.hasAll, g.all = true, e.index
		}
		return
	}
	if name, ok := exactName(e.name); ok && name != "" {
		if g.exact == nil {
			g.exact = make(map[string][]entry)
		}
		g.exact[name] = append(g.exact[name], e)
		g.lengths[name[0]] |= 1 << (len(name) % 64)
		return
	}
	if e.prefix == "" {
		g.free = append(g.free, e)
		return
	}
	g.byFirst[e.prefix[0]] = append(g.byFirst[e.prefix[0]], e)
}

// exactName returns the only name that m matches, when there is only one.
func exactName(m matcher) (string, bool) {
	g, ok := m.(*glob)
	if !ok || !g.exact {
		return "", false
	}
	return g.prefix, true
}

func (g *group) first(module, name string) (index int, ok bool) {
	if !g.used {
		return 0, false
	}
	if g.hasModules {
		module = canonicalModule(module)
	}
	best := math.MaxInt
	if g.hasAll {
		best = g.all
	}
	if len(g.free) > 0 {
		best = firstOf(g.free, best, module, name)
	}
	if name != "" {
		best = g.firstByte(best, module, name)
	}
	if best == math.MaxInt {
		return 0, false
	}
	return best, true
}

// firstByte asks the patterns that are found by the name's first byte.
func (g *group) firstByte(best int, module, name string) int {
	if list := g.byFirst[name[0]]; len(list) > 0 {
		best = firstOf(list, best, module, name)
	}
	if g.lengths[name[0]]&(1<<(len(name)%64)) != 0 {
		best = firstIn(g.exact[name], best, module)
	}
	return best
}

// firstOf returns the index of the first entry that matches, if it is lower than best.
func firstOf(entries []entry, best int, module, name string) int {
	for i := range entries {
		e := &entries[i]
		if e.index >= best {
			break
		}
		if strings.HasPrefix(name, e.prefix) && e.matchModule(module) && e.matchName(name) {
			return e.index
		}
	}
	return best
}

// firstIn does the same with entries that are known to match the name.
func firstIn(entries []entry, best int, module string) int {
	for i := range entries {
		if e := &entries[i]; e.index >= best || e.matchModule(module) {
			return min(e.index, best)
		}
	}
	return best
}
