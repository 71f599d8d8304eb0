package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/render"
)

const resolveSchema = "kallscope.resolve/1"

type resolveFlags struct {
	queryFlags
	proto bool
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
  cut -f3 names.tsv | kallscope resolve -f -`,
		RunE: func(_ *cobra.Command, args []string) error { return runResolve(s, &f, args) },
	}
	f.registerPatterns(cmd)
	registerProto(cmd, &f.proto)
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
	records := func(yield func(any) bool) {
		for fn := range plan.Funcs() {
			offset := uint64(plan.Offset(fn))
			var known knownIDs
			known.ask(k, fn)
			btf := newBTFJSON(fn, known, known.asked(k, f.proto))
			if !yield(resolveJSON{resolveSchema, kallscope.Hex(fn.Addr + offset), fn.Module, fn.Name, offset, btf, aliases(k, fn)}) {
				return
			}
		}
	}
	if f.json {
		return render.JSONLines(s.out, records)
	}
	return f.print(s.out, k, plan)
}

func (f *resolveFlags) print(w io.Writer, k *kallscope.Kernel, plan *kallscope.Plan) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	var known knownIDs
	for fn := range plan.Funcs() {
		known.ask(k, fn)
		offset := uint64(plan.Offset(fn))
		line = append(append(append(appendAddress(line[:0], fn.Addr+offset), '\t'), fn.Module...), '\t')
		line = append(line, fn.Name...)
		if offset > 0 {
			line = fmt.Appendf(line, "+%#x", offset)
		}
		line = append(known.appendTo(append(line, '\t')), '\t')
		line = append(line, cmp.Or(strings.Join(aliases(k, fn), ","), "-")...)
		if f.proto {
			line = known.appendPrototypes(append(line, '\t'), k)
		}
		line = append(line, '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// aliases returns the other names of the function's address.
func aliases(k *kallscope.Kernel, fn kallscope.Func) []string {
	if fn.Addr == 0 {
		return nil
	}
	names, err := k.Names(fn)
	if err != nil || len(names) < 2 {
		return nil
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == fn.Name })
}
