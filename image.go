package kallscope

import (
	"strings"

	"github.com/kallscope/kallscope/kallsyms"
)

// An image is where the code of vmlinux lies, by the symbols that bound it. It
// is empty when addresses are hidden.
type image []codePart

// A codePart is a part of the image; the functions of some have no site for a
// reason of their own.
type codePart struct {
	reason     Reason
	start, end uint64
}

// rangeSymbols bound the parts (include/asm-generic/vmlinux.lds.h,
// arch/x86/kernel/vmlinux.lds.S).
var rangeSymbols = []struct {
	reason     Reason
	start, end string
}{
	{ReasonNone, "_text", "_etext"},
	{ReasonInit, "_sinittext", "_einittext"},
	{ReasonNoinstr, "__noinstr_text_start", "__noinstr_text_end"},
	{ReasonNoinstr, "__entry_text_start", "__entry_text_end"},
	{ReasonNoinstr, "__cpuidle_text_start", "__cpuidle_text_end"},
}

// imageOf reads the names once: a few look-ups are no reason to build the
// table's index by name.
func imageOf(t *kallsyms.Table) image {
	bounds := make(map[string]uint64, 2*len(rangeSymbols))
	for _, r := range rangeSymbols {
		bounds[r.start], bounds[r.end] = 0, 0
	}
	for i := range t.InModule("") {
		name := t.Name(i)
		if !strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_start"), "_end"), "text") {
			continue // all bounds end like that
		}
		if _, ok := bounds[name]; ok {
			bounds[name] = t.Addr(i)
		}
	}
	var m image
	for _, r := range rangeSymbols {
		if start, end := bounds[r.start], bounds[r.end]; start < end {
			m = append(m, codePart{r.reason, start, end})
		}
	}
	return m
}

func (m image) in(addr uint64, r Reason) bool {
	for _, c := range m {
		if c.reason == r && c.start <= addr && addr < c.end {
			return true
		}
	}
	return false
}

// isText reports whether symbol i is code. Debian's 7.3 gives variables of
// vmlinux the letter T too, so there the address must be in the code.
func (p *planner) isText(i int) bool {
	if !kallsyms.IsText(p.table.Type(i)) {
		return false
	}
	if p.table.Module(i) != "" || len(p.image) == 0 || p.image[0].reason != ReasonNone {
		return true
	}
	addr := p.table.Addr(i)
	return p.image.in(addr, ReasonNone) || p.image.in(addr, ReasonInit)
}
