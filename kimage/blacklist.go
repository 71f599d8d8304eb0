package kimage

import (
	"fmt"
	"sort"

	"github.com/kallscope/kallscope/kallsyms"
)

// Range is a named part of the kernel's code, [Start, End).
type Range struct {
	Start, End uint64
	Name       string
}

// blacklistAreas are the parts of the code that kprobes stay out of as a whole,
// in the kernel's order (populate_kprobe_blacklist() in kernel/kprobes.c, then
// arch_populate_kprobe_blacklist()). x86 and arm64 have the entry code, arm64
// the others.
var blacklistAreas = []struct{ arch, start, end string }{
	{"", "__kprobes_text_start", "__kprobes_text_end"},
	{"", "__noinstr_text_start", "__noinstr_text_end"},
	{"", "__entry_text_start", "__entry_text_end"},
	{"arm64", "__irqentry_text_start", "__irqentry_text_end"},
	{"arm64", "__idmap_text_start", "__idmap_text_end"},
	{"arm64", "__hyp_text_start", "__hyp_text_end"},
	{"arm64", "__hyp_idmap_text_start", "__hyp_idmap_text_end"},
}

// KprobeBlacklist returns the code that single kprobes must stay out of, as
// debugfs would list it (kprobes/blacklist) before modules are loaded. It fails
// with [ErrAbsent] where symbols do not say where the kernel keeps it
// (CONFIG_KPROBES=n or CONFIG_KALLSYMS_ALL=n).
func (im *Image) KprobeBlacklist() ([]Range, error) {
	table, err := im.symbols()
	if err != nil {
		return nil, err
	}
	marks, err := im.marks()
	if err != nil {
		return nil, err
	}
	from, to, ok := marks.bounds("__start_kprobe_blacklist", "__stop_kprobe_blacklist")
	if !ok {
		return nil, fmt.Errorf("symbols __start_kprobe_blacklist, __stop_kprobe_blacklist: %w (CONFIG_KPROBES or CONFIG_KALLSYMS_ALL is off)", ErrAbsent)
	}
	entries, err := im.file.space.words(from, to)
	if err != nil {
		return nil, fmt.Errorf("kprobe blacklist: %w", err)
	}
	if len(entries) > table.Len() {
		return nil, fmt.Errorf("kprobe blacklist: %d entries, but only %d symbols", len(entries), table.Len())
	}
	b := blacklist{table: table, marks: marks}
	for _, addr := range entries {
		b.add(addr)
	}
	for _, a := range blacklistAreas {
		if from, to, ok := marks.bounds(a.start, a.end); ok && (a.arch == "" || a.arch == im.Arch()) {
			b.addArea(from, to)
		}
	}
	return b.ranges, nil
}

type blacklist struct {
	table  *kallsyms.Table
	marks  landmarks
	ranges []Range
}

// add appends the symbol that holds addr, from addr on, and returns its size; 0
// if addr is no code (kprobe_add_ksym_blacklist()).
func (b *blacklist) add(addr uint64) uint64 {
	if !b.isText(addr) {
		return 0
	}
	next := sort.Search(b.table.Len(), func(i int) bool { return b.table.Addr(i) > addr })
	if next == 0 || next == b.table.Len() {
		return 0
	}
	start := b.table.Addr(next - 1)
	first := sort.Search(next, func(i int) bool { return b.table.Addr(i) >= start })
	size := b.table.Addr(next) - start
	b.ranges = append(b.ranges, Range{addr, addr + size, b.table.Name(first)})
	return size
}

// addArea appends all symbols of [from, to).
func (b *blacklist) addArea(from, to uint64) {
	for addr := from; addr < to; {
		size := b.add(addr)
		if size == 0 {
			return
		}
		addr += size
	}
}

func (b *blacklist) isText(addr uint64) bool {
	for _, bounds := range [2][2]string{{"_stext", "_etext"}, {"_sinittext", "_einittext"}} {
		if from, to, ok := b.marks.bounds(bounds[0], bounds[1]); ok && from <= addr && addr < to {
			return true
		}
	}
	return false
}
