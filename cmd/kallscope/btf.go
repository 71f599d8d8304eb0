package main

import (
	"strconv"

	"github.com/kallscope/kallscope"
)

// btfJSON is what is known of a function by BTF and by its name, the same in
// every command.
type btfJSON struct {
	IDs []kallscope.BTFID `json:"btf_ids,omitempty"`
	// VariantOf is the name of which the compiler made the function's.
	VariantOf string `json:"variant_of,omitempty"`
	// BaseIDs are of VariantOf, for a function that BTF has under this name only.
	BaseIDs []kallscope.BTFID `json:"btf_base_ids,omitempty"`
	// MayDiffer goes with BaseIDs.
	MayDiffer bool `json:"arguments_may_differ,omitempty"`
}

func newBTFJSON(f kallscope.Func, ids, base []kallscope.BTFID) btfJSON {
	return btfJSON{ids, f.VariantOf(), base, len(base) > 0}
}

// knownIDs are the ids of a function, or else those of its base name.
type knownIDs struct {
	ids, base []kallscope.BTFID
}

// ask fills in the ids of a function. It keeps what memory there is.
func (n *knownIDs) ask(k *kallscope.Kernel, f kallscope.Func) {
	n.ids, n.base = k.AppendBTFIDs(n.ids[:0], f), n.base[:0]
	if len(n.ids) == 0 {
		n.base = k.AppendBaseIDs(n.base, f)
	}
}

// appendTo appends the ids, those of the base name behind a "~".
func (n *knownIDs) appendTo(b []byte) []byte {
	if len(n.base) > 0 {
		return appendIDs(append(b, '~'), n.base)
	}
	return appendIDs(b, n.ids)
}

func appendIDs(b []byte, ids []kallscope.BTFID) []byte {
	if len(ids) == 0 {
		return append(b, '-')
	}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		if id.Object != kallscope.Vmlinux {
			b = append(b, id.Object...)
		}
		b = strconv.AppendUint(append(b, '#'), uint64(id.ID), 10)
	}
	return b
}
