package kallscope

import (
	"bytes"
	"strings"

	"github.com/kallscope/kallscope/internal/pattern"
	"github.com/kallscope/kallscope/kallsyms"
)

// A reach says which modules a query may match in, by the names that a module
// has: its string tables. It is nil when any module may do.
type reach []moduleReach

// moduleReach is that of one including pattern.
type moduleReach struct {
	pattern *pattern.Pattern
	prefix  []byte // a zero byte and what all names that match begin with
}

// reachOf returns the reach of a query. A few letters that names must begin with
// leave most modules out.
func (c *compiled) reachOf() (r reach) {
	for i := range c.patterns {
		p := &c.patterns[i]
		if p.Exclude || p.VmlinuxOnly() {
			continue
		}
		prefix := p.LiteralPrefix()
		named := p.Module != "" && !strings.ContainsAny(p.Module, `*?[\\`)
		switch {
		case p.Kind == pattern.Addr, p.Kind == pattern.BTFID:
			return nil
		case named:
			prefix = "" // an unloaded module is told from one without such a name
		case prefix == "":
			return nil
		}
		r = append(r, moduleReach{p, append([]byte{0}, prefix...)})
	}
	return r
}

// has reports whether a module may have a function that matches. names are its
// strings, each behind a zero byte.
func (r reach) has(module string, names []byte) bool {
	for _, m := range r {
		if m.pattern.MatchModule(module) && bytes.Contains(names, m.prefix) {
			return true
		}
	}
	return false
}

// A narrowSource can leave out modules that are out of reach without reading
// all of their symbols and types.
type narrowSource interface {
	// narrow reports whether there are so many modules that it pays off.
	narrow() bool
	// symbolsWithin returns the symbols of vmlinux and of modules within reach.
	symbolsWithin(reach) (*kallsyms.Table, error)
	// btfWithin reports whether a module's BTF is within reach. What cannot be
	// read is: opening it says why.
	btfWithin(object string, r reach) bool
}

// narrowly returns the source if it leaves out modules for this reach.
func (k *Kernel) narrowly(r reach) narrowSource {
	source, ok := k.source.(narrowSource)
	if !ok || r == nil || k.loaded[scopeModules].Load() != nil || !source.narrow() {
		return nil
	}
	return source
}

// symbolsWithin returns the symbols of a scope, or what of them is within reach.
func (k *Kernel) symbolsWithin(s scope, r reach, narrow narrowSource) (*kallsyms.Table, error) {
	if s == scopeModules && narrow != nil {
		if table, err := narrow.symbolsWithin(r); err == nil {
			return table, nil
		}
	}
	return k.symbols(s)
}
