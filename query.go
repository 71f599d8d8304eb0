package kallscope

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

// A Query is what is asked for. The functions of a query are those that one of
// the patterns includes, none excludes, and that fit the modules and types.
type Query struct {
	// Patterns include functions; "!x" excludes what x includes. Forms:
	//
	//	tcp_*                     glob over the name, in vmlinux and all modules
	//	/^tcp_(send|recv)msg$/    regular expression
	//	kvm:vmx_*  vmlinux:foo    in one module, in the kernel image
	//	syscall:openat            with the architecture's prefix
	//	#1234  nf_tables#77       BTF id
	//	0xffffffff81000000        address
	//
	// Without any including pattern every function is included.
	Patterns []string `json:"patterns"`
	// Exclude are patterns of functions to leave out, without the "!".
	Exclude []string `json:"exclude,omitempty"`
	// Modules restrict the query to the modules that one of these globs
	// matches; "vmlinux" is one.
	Modules []string `json:"modules,omitempty"`
	// Variants has names, globs and BTF ids also stand for the functions that
	// the compiler made of those that they match: finish for finish.isra.0.
	// Such functions have other names in the kernel, and perhaps other
	// arguments, so without it they are not taken. It is not for regular
	// expressions, and not for offsets.
	Variants bool `json:"variants,omitempty"`
	// Args are C types; a function must have an argument of each. Functions
	// without BTF have no known types and are not candidates then.
	Args []string `json:"args,omitempty"`
	// Rets are C types; the function's result must be one of them.
	Rets []string `json:"rets,omitempty"`
	// NArgs is how many arguments a function must have by BTF: "3", "2-4",
	// "6-" for six or more. What a variadic function takes beyond its named
	// arguments does not count.
	NArgs string `json:"nargs,omitempty"`
}

// compiled is a query whose patterns are parsed.
type compiled struct {
	patterns []pattern.Pattern
	modules  []pattern.Pattern
	variants bool
}

func (q Query) compile() (compiled, error) {
	c := compiled{variants: q.Variants}
	for _, text := range distinct(q.Patterns) {
		p, err := pattern.Parse(text)
		if err != nil {
			return c, err
		}
		c.patterns = append(c.patterns, p)
	}
	for _, text := range distinct(q.Exclude) {
		p, err := pattern.Parse("!" + text)
		if err != nil {
			return c, err
		}
		c.patterns = append(c.patterns, p)
	}
	if !slices.ContainsFunc(c.patterns, func(p pattern.Pattern) bool { return !p.Exclude }) {
		everything, err := pattern.Parse("*")
		if err != nil {
			return c, err
		}
		c.patterns = append(c.patterns, everything)
	}
	for _, glob := range q.Modules {
		p, err := pattern.Parse(glob + ":*")
		if err != nil {
			return c, fmt.Errorf("module %q: %w", glob, err)
		}
		c.modules = append(c.modules, p)
	}
	return c, nil
}

// distinct returns texts without what is there again.
func distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
}

// scope returns what the query can match in.
func (c *compiled) scope() scope {
	if len(c.modules) > 0 && !slices.ContainsFunc(c.modules, beyondVmlinux) {
		return scopeVmlinux
	}
	s := scopeVmlinux
	for i := range c.patterns {
		if p := &c.patterns[i]; !p.Exclude {
			s = max(s, scopeOfPattern(p))
		}
	}
	if s > scopeVmlinux && slices.ContainsFunc(c.modules, func(p pattern.Pattern) bool { return kallsyms.IsPseudoModule(p.Module) }) {
		return scopeAll
	}
	return s
}

func beyondVmlinux(p pattern.Pattern) bool { return !p.VmlinuxOnly() }

// scopeOfPattern returns what a pattern can match in. Code that the kernel makes
// at run time can be no target: it is read for who asks for it.
func scopeOfPattern(p *pattern.Pattern) scope {
	switch {
	case p.VmlinuxOnly():
		return scopeVmlinux
	case kallsyms.IsPseudoModule(p.Module), hasPrefix(p.Name, runtimeNames):
		return scopeAll
	}
	return scopeModules
}

func hasPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// runtimeNames begin the names of code made at run time (bpf_prog_ksym_set_name()
// and its neighbours in kernel/bpf, ftrace_get_trampoline_kallsym(),
// kprobe_cache_get_kallsym()).
var runtimeNames = []string{"bpf_prog_", "bpf_trampoline_", "bpf_dispatcher_", "ftrace_trampoline", "kprobe_insn_page", "kprobe_optinsn_page"}

// A selection decides which names a query includes, in one symbol table.
type selection struct {
	set     nameSet
	byIndex []selected
	addrs   map[uint64]int  // entry address -> including pattern
	without map[uint64]bool // excluded entry addresses
	modules []pattern.Pattern
}

// selected is what one pattern of a selection stands for.
type selected struct {
	pattern.Pattern
	bound   pattern.Pattern // with an id made into the name
	exact   bool            // one function was named
	hits    int             // candidates
	problem string          // why it cannot match
}

// hit is an including pattern that matched, or -1.
const noHit = -1

// selectIn binds the query to a symbol table: ids become names, addresses
// become entries.
func (c *compiled) selectIn(k *Kernel, t *kallsyms.Table) (s *selection, err error) {
	s = &selection{addrs: make(map[uint64]int), without: make(map[uint64]bool), modules: c.modules}
	patterns := make([]pattern.Pattern, len(c.patterns))
	for i, p := range c.patterns {
		p.HasOffset = p.HasOffset && p.Offset > 0
		sel := selected{Pattern: p}
		switch p.Kind {
		case pattern.BTFID:
			named, err := k.patternOfID(p)
			switch {
			case err == nil:
				p = named
			case p.Exclude:
				return nil, fmt.Errorf("pattern %s: %w", p, err)
			default:
				p, sel.problem = never(), err.Error()
			}
		case pattern.Addr:
			sel.problem = s.bindAddr(i, p, t)
		}
		sel.bound, sel.exact = p, isExact(&p)
		s.byIndex, patterns[i] = append(s.byIndex, sel), p
	}
	var o pattern.SetOptions
	if slices.ContainsFunc(patterns, func(p pattern.Pattern) bool { return p.Kind == pattern.Syscall }) {
		o.SyscallPrefixes = []string{pattern.DetectSyscallPrefix(k.identity.Arch, func(name string) bool { return len(t.ByName(name)) > 0 })}
	}
	s.set, err = newNameSet(patterns, o, c.variants)
	return s, err
}

// never returns a pattern that matches nothing.
func never() pattern.Pattern {
	p, err := pattern.Parse(`/[^\x00-\x{10ffff}]/`)
	if err != nil {
		panic(err) // it is a constant
	}
	return p
}

// isExact reports whether a pattern names one function.
func isExact(p *pattern.Pattern) bool {
	_, one := p.Exact()
	return one || p.Kind == pattern.Addr || p.Kind == pattern.Syscall && !strings.ContainsAny(p.Name, `*?[\\`)
}

// patternOfID turns #1234 into the name of that function in that object.
func (k *Kernel) patternOfID(p pattern.Pattern) (pattern.Pattern, error) {
	b, err := k.openBTF(p.Object)
	if err != nil {
		return p, err
	}
	fn, ok := b.FuncByID(p.ID)
	if !ok {
		return p, fmt.Errorf("type id %d in the BTF of %s is no function", p.ID, p.Object)
	}
	text := p.Object + ":" + fn.Name
	if p.Exclude {
		text = "!" + text
	}
	return pattern.Parse(text)
}

// bindAddr finds the entry that an address stands for, the entry itself or a
// site right behind it, and returns the problem if there is none.
func (s *selection) bindAddr(i int, p pattern.Pattern, t *kallsyms.Table) (problem string) {
	loc, ok := t.Find(p.Addr)
	switch {
	case t.State() == kallsyms.Hidden:
		return "addresses are hidden"
	case !ok && len(t.At(p.Addr)) > 0:
		return fmt.Sprintf("a data symbol is at this address: %s", t.Name(t.At(p.Addr)[0]))
	case !ok:
		return "no function of vmlinux or a module is at this address"
	case loc.Offset > maxSiteOffset:
		return fmt.Sprintf("this is %s+%#x; the entry is %#x", loc.Symbol.Name, loc.Offset, loc.Symbol.Addr)
	case p.Exclude:
		s.without[loc.Symbol.Addr] = true
	default:
		s.addrs[loc.Symbol.Addr] = i
	}
	return ""
}

// include returns the including pattern that a name at an address matches, or
// noHit.
func (s *selection) include(module, name string, addr uint64) int {
	if !s.inModules(module) || s.without[addr] {
		return noHit
	}
	if i, ok := s.set.match(module, name); ok {
		return i
	}
	if i, ok := s.addrs[addr]; ok && addr != 0 && !s.excludes(module, name) {
		return i
	}
	return noHit
}

func (s *selection) excludes(module, name string) bool {
	return s.set.excludes(module, name)
}

// matches reports whether one of the patterns by itself matches a name.
func (s *selection) matches(one *selected, module, name string) bool {
	if one.bound.Match(module, name) {
		return true
	}
	base := s.set.baseOf(name)
	return base != "" && standsForVariants(&one.bound) && one.bound.Match(module, base)
}

func (s *selection) inModules(module string) bool {
	if len(s.modules) == 0 {
		return true
	}
	return slices.ContainsFunc(s.modules, func(p pattern.Pattern) bool { return p.MatchModule(module) })
}
