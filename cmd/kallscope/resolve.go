package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/render"
)

const resolveSchema = "kallscope.resolve/1"

type resolveFlags struct {
	queryFlags
	proto bool
	all   bool
}

func newResolve(s stdio) *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve PATTERN...",
		Short: "Print address, module, names and ids of functions, for programs",
		Long: `Print address, module, name, BTF ids and other names of every function that
matches, attachable or not, one a line, separated by tabs; "-" is for what is
not known or not there. "~#1234" is the id of the function of which the compiler
made this one (name.isra.0, ...), where it is the only one: arguments may
differ.
With --proto the C prototype is another field; several where the ids of a name
have different ones.

Patterns come from a file too, one a line: -f FILE, or -f - for standard input.`,
		Example: `  kallscope resolve vfs_read '#1234' 0xffffffff81000000
  kallscope resolve --all --json >table.jsonl
  cut -f3 names.tsv | kallscope resolve -f -`,
		RunE: func(_ *cobra.Command, args []string) error { return runResolve(s, &f, args) },
	}
	f.registerPatterns(cmd)
	registerProto(cmd, &f.proto)
	cmd.Flags().BoolVar(&f.all, "all", false, "all functions, as '*' does: also those that are in BTF only")
	return cmd
}

type resolveJSON struct {
	Schema string        `json:"schema"`
	Addr   kallscope.Hex `json:"address,omitzero"`
	Module string        `json:"module"`
	Name   string        `json:"name"`
	Offset uint64        `json:"offset,omitempty"` // already in the address
	btfJSON
	Others []string `json:"aliases,omitempty"`
}

func runResolve(s stdio, f *resolveFlags, args []string) error {
	if f.all {
		args = append(args, "*")
	}
	k, err := f.open()
	if err != nil {
		return err
	}
	plan, err := f.plan(k, args, s.in)
	if err != nil {
		return err
	}
	// Who resolves asks what a name is, not whether it can be traced.
	plan.Facts.SitesUnknown = ""
	f.tell(s.err, k, plan)
	if f.verbose {
		fmt.Fprintln(s.err, summary(plan))
	}
	if plan.Matched() == 0 {
		return errNoMatch
	}
	return f.print(s.out, k, plan)
}

func (f *resolveFlags) print(w io.Writer, k *kallscope.Kernel, plan *kallscope.Plan) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	var known knownIDs
	var names []string
	for fn := range plan.Funcs() {
		known.ask(k, fn)
		names = appendAliases(names[:0], k, fn)
		offset := uint64(plan.Offset(fn))
		if f.json {
			j := resolveJSON{
				resolveSchema, kallscope.Hex(fn.Addr + offset), fn.Module, fn.Name, offset,
				newBTFJSON(fn, known, known.asked(k, f.proto)), names,
			}
			line = append(j.appendTo(line[:0]), '\n')
		} else {
			line = append(append(append(appendAddress(line[:0], fn.Addr+offset), '\t'), fn.Module...), '\t')
			line = append(line, fn.Name...)
			if offset > 0 {
				line = fmt.Appendf(line, "+%#x", offset)
			}
			line = append(known.appendTo(append(line, '\t')), '\t')
			line = append(line, cmp.Or(strings.Join(names, ","), "-")...)
			if f.proto {
				line = known.appendPrototypes(append(line, '\t'), k)
			}
			line = append(line, '\n')
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// appendAliases appends the other names of the function's address.
func appendAliases(dst []string, k *kallscope.Kernel, fn kallscope.Func) []string {
	if fn.Addr == 0 {
		return dst
	}
	names, err := k.AppendNames(dst, fn)
	if err != nil {
		return dst
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == fn.Name })
}

// appendTo appends what package json writes, some times faster: for the whole
// table that would take longer than everything else.
func (j *resolveJSON) appendTo(b []byte) []byte {
	b = render.AppendString(append(b, `{"schema":`...), j.Schema)
	if j.Addr != 0 {
		b = strconv.AppendUint(append(b, `,"address":"0x`...), uint64(j.Addr), 16)
		b = append(b, '"')
	}
	b = render.AppendString(append(b, `,"module":`...), j.Module)
	b = render.AppendString(append(b, `,"name":`...), j.Name)
	if j.Offset != 0 {
		b = strconv.AppendUint(append(b, `,"offset":`...), j.Offset, 10)
	}
	b = j.btfJSON.appendFields(b)
	b = appendStrings(b, `,"aliases":`, j.Others)
	return append(b, '}')
}

// appendFields appends the fields, each behind a comma.
func (j *btfJSON) appendFields(b []byte) []byte {
	b = appendIDObjects(b, `,"btf_ids":`, j.IDs)
	if j.VariantOf != "" {
		b = render.AppendString(append(b, `,"variant_of":`...), j.VariantOf)
	}
	b = appendIDObjects(b, `,"btf_base_ids":`, j.BaseIDs)
	if j.MayDiffer {
		b = append(b, `,"arguments_may_differ":true`...)
	}
	if j.Prototype != "" {
		b = render.AppendString(append(b, `,"prototype":`...), j.Prototype)
	}
	return appendStrings(b, `,"prototypes":`, j.Prototypes)
}

// appendIDObjects appends a key and the ids, unless there are none.
func appendIDObjects(b []byte, key string, ids []kallscope.BTFID) []byte {
	if len(ids) == 0 {
		return b
	}
	b = append(b, key...)
	for i, id := range ids {
		b = append(b, "[,"[min(i, 1)])
		b = render.AppendString(append(b, `{"object":`...), id.Object)
		b = strconv.AppendUint(append(b, `,"id":`...), uint64(id.ID), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendStrings appends a key and strings, unless there are none.
func appendStrings(b []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, key...)
	for i, s := range list {
		b = render.AppendString(append(b, "[,"[min(i, 1)]), s)
	}
	return append(b, ']')
}
