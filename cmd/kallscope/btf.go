package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
	// Prototype is that of the first id.
	Prototype string `json:"prototype,omitempty"`
	// Prototypes are those of each id, where they differ.
	Prototypes []string `json:"prototypes,omitempty"`
}

func newBTFJSON(f kallscope.Func, n knownIDs, prototypes []string) btfJSON {
	j := btfJSON{IDs: n.ids, VariantOf: f.VariantOf(), BaseIDs: n.base, MayDiffer: len(n.base) > 0}
	if len(prototypes) > 0 {
		j.Prototype = prototypes[0]
	}
	if len(prototypes) > 1 {
		j.Prototypes = prototypes
	}
	return j
}

func registerProto(cmd *cobra.Command, proto *bool) {
	cmd.Flags().BoolVar(proto, "proto", false, "show the C prototypes, by BTF")
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

// asked returns the prototypes if they are asked for.
func (n *knownIDs) asked(k *kallscope.Kernel, proto bool) []string {
	if !proto {
		return nil
	}
	return n.prototypes(k)
}

// prototypes returns the C prototypes of the ids, one where all are the same. It
// is empty where there are none or BTF is malformed.
func (n *knownIDs) prototypes(k *kallscope.Kernel) []string {
	var list []string
	for _, id := range append(n.ids, n.base...) {
		p, err := k.Prototype(id)
		if err != nil {
			return nil
		}
		list = append(list, p)
	}
	if len(slices.Compact(slices.Clone(list))) == 1 {
		return list[:1]
	}
	return list
}

// appendPrototypes appends the C prototypes of the ids, as appendTo does those.
func (n *knownIDs) appendPrototypes(b []byte, k *kallscope.Kernel) []byte {
	list := n.prototypes(k)
	if len(list) == 0 {
		return append(b, '-')
	}
	if len(n.base) > 0 {
		b = append(b, '~')
	}
	return append(b, strings.Join(list, "; ")...)
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
