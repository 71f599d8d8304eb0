package kimage

import (
	"strings"

	"github.com/kallscope/kallscope/kallsyms"
)

// landmarks are the addresses of symbols that bound what is read.
type landmarks map[string]uint64

// landmarkNames are all that are asked for: a few look-ups are no reason to
// build the table's index by name.
var landmarkNames = []string{
	"_text", "_stext", "_etext", "_sinittext", "_einittext",
	"kallsyms_token_index", "linux_banner",
	"__start_notes", "__stop_notes", "__start_BTF", "__stop_BTF",
	"__start_mcount_loc", "__stop_mcount_loc",
	"__start_kprobe_blacklist", "__stop_kprobe_blacklist",
	"__kprobes_text_start", "__kprobes_text_end",
	"__noinstr_text_start", "__noinstr_text_end",
	"__entry_text_start", "__entry_text_end",
	"__irqentry_text_start", "__irqentry_text_end",
	"__hyp_text_start", "__hyp_text_end",
	"__hyp_idmap_text_start", "__hyp_idmap_text_end",
	"__idmap_text_start", "__idmap_text_end",
}

func landmarksOf(t *kallsyms.Table) landmarks {
	wanted := make(map[string]bool, len(landmarkNames))
	for _, name := range landmarkNames {
		wanted[name] = true
	}
	found := make(landmarks, len(landmarkNames))
	for i := range t.Len() {
		name := t.Name(i)
		if !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "k") && !strings.HasPrefix(name, "l") {
			continue
		}
		if wanted[name] {
			if _, twice := found[name]; !twice {
				found[name] = t.Addr(i)
			}
		}
	}
	return found
}

// bounds returns the addresses between start and end, false if the symbols are
// not there.
func (l landmarks) bounds(start, end string) (from, to uint64, ok bool) {
	from, ok1 := l[start]
	to, ok2 := l[end]
	return from, to, ok1 && ok2 && from <= to
}
