package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/internal/render"
)

const listSchema = "kallscope.list/1"

type listFlags struct {
	queryFlags
	skipped    string
	proto      bool
	mechanisms bool
	usable     kallscope.MechanismSet // by this kernel and process
}

func newList(s stdio) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list PATTERN...",
		Short: "List the functions that match and can be attached to",
		Long: `List the functions that match and can be attached to: address, module, BTF ids,
mechanism, name; "-" is for what is not known or not there. "~#1234" is the id
of the function of which the compiler made this one (name.isra.0, ...), where it
is the only one: arguments may differ.

With --mechanisms a column marks each mechanism that could be used, at its place
in KRS:fxs:FXS:kr: kprobe.multi, kretprobe.multi, kprobe.session; fentry, fexit,
fsession; those three as .multi; kprobe, kretprobe.

With --skipped list instead the functions that match and cannot be attached
to, with the reason; --skipped=no-site those of one reason.`,
		Example: `  kallscope list 'tcp_*' -x 'tcp_v6_*'
  kallscope list '*' --arg 'struct sk_buff *'
  kallscope list 'vfs_*' --nargs 4- --proto
  kallscope list 'nf_*' --mechanisms
  kallscope list 'vfs_*' --skipped=no-site`,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(s, args) },
	}
	f.registerPatterns(cmd)
	f.registerTargets(cmd)
	cmd.Flags().StringVar(&f.skipped, "skipped", "", "list skipped functions, all or those of one `reason`")
	cmd.Flags().Lookup("skipped").NoOptDefVal = "all"
	registerProto(cmd, &f.proto)
	cmd.Flags().BoolVar(&f.mechanisms, "mechanisms", false, "mark all mechanisms that could be used")
	return cmd
}

func (f *listFlags) run(s stdio, args []string) error {
	k, err := f.open()
	if err != nil {
		return err
	}
	only, err := f.reason()
	if err != nil {
		return err
	}
	for _, arg := range args {
		if _, err := kallscope.ParseReason(arg); err == nil && f.skipped == "all" {
			return fmt.Errorf("list: %s is a reason: write --skipped=%s", arg, arg)
		}
	}
	f.askMechanisms(s.err)
	plan, err := f.plan(k, args, s.in)
	if err != nil {
		return err
	}
	f.tell(s.err, k, plan)
	if f.verbose {
		fmt.Fprintln(s.err, summary(plan))
	}
	switch {
	case f.skipped == "":
		tellSkipped(s.err, plan)
	case only != kallscope.ReasonNone && plan.Skipped.By()[only] == 0 && plan.Matched() > 0:
		fmt.Fprintf(s.err, "%s matched, none skipped as %s\n", render.Plural(plan.Matched(), "function"), only)
	}
	records := func(yield func(listRecord) bool) {
		for _, t := range plan.Targets {
			if f.skipped == "" && !yield(listRecord{t.Func, t.Mechanism, kallscope.ReasonNone, t.Mechanisms & f.usable}) {
				return
			}
		}
		for sk := range plan.Skipped.All() {
			if f.skipped != "" && (only == kallscope.ReasonNone || only == sk.Reason) && !yield(listRecord{sk.Func, kallscope.MechanismAuto, sk.Reason, sk.Mechanisms & f.usable}) {
				return
			}
		}
	}
	return f.print(s, k, records)
}

// askMechanisms has the plan say all mechanisms, and tells on w which of them
// this kernel does not have.
func (f *listFlags) askMechanisms(w io.Writer) {
	if f.planOptions.Mechanisms = f.mechanisms; !f.mechanisms {
		return
	}
	var missing []string // what
	names := make(map[string][]string)
	for _, a := range f.availability(kallscope.MechanismAuto) {
		if a.missing == "" {
			f.usable = f.usable.With(a.mechanism)
			continue
		}
		if names[a.missing] == nil {
			missing = append(missing, a.missing)
		}
		names[a.missing] = append(names[a.missing], a.mechanism.String())
	}
	for _, m := range missing {
		fmt.Fprintf(w, "not marked: %s: %s\n", strings.Join(names[m], ", "), m)
	}
}

func (f *listFlags) asked(r listRecord) *kallscope.MechanismSet {
	if !f.mechanisms {
		return nil
	}
	return &r.Mechanisms
}

// marks are letters for all mechanisms in their order, capital where one link
// takes any number of functions.
const marks = "KRSfxsFXSkr"

// appendMarks appends a letter for each mechanism of the set, "-" for others.
func appendMarks(b []byte, set kallscope.MechanismSet) []byte {
	for i, m := range kallscope.Mechanisms() {
		if i > 0 && i%3 == 0 {
			b = append(b, ':')
		}
		if set.Has(m) {
			b = append(b, marks[i])
		} else {
			b = append(b, '-')
		}
	}
	return b
}

// reason returns the one that --skipped names, ReasonNone for all.
func (f *listFlags) reason() (kallscope.Reason, error) {
	if f.skipped == "" || f.skipped == "all" {
		return kallscope.ReasonNone, nil
	}
	return kallscope.ParseReason(f.skipped)
}

// A listRecord is a target or a skipped candidate.
type listRecord struct {
	kallscope.Func
	Mechanism  kallscope.Mechanism
	Reason     kallscope.Reason
	Mechanisms kallscope.MechanismSet
}

type listJSON struct {
	Schema string        `json:"schema"`
	Addr   kallscope.Hex `json:"address,omitzero"`
	Module string        `json:"module"`
	Name   string        `json:"name"`
	btfJSON
	Mechanism kallscope.Mechanism `json:"mechanism,omitzero"`
	Reason    kallscope.Reason    `json:"reason,omitzero"`
	// Mechanisms is absent where it was not asked for.
	Mechanisms *kallscope.MechanismSet `json:"mechanisms,omitempty"`
}

func (f *listFlags) print(s stdio, k *kallscope.Kernel, records func(func(listRecord) bool)) error {
	empty := true
	for range records {
		empty = false
		break
	}
	if empty {
		return errNoMatch
	}
	if f.json {
		return render.JSONLines(s.out, func(yield func(any) bool) {
			for r := range records {
				var known knownIDs
				known.ask(k, r.Func)
				btf := newBTFJSON(r.Func, known, known.asked(k, f.proto))
				if !yield(listJSON{listSchema, kallscope.Hex(r.Addr), r.Module, r.Name, btf, r.Mechanism, r.Reason, f.asked(r)}) {
					return
				}
			}
		})
	}
	return f.printRows(s.out, k, records)
}

// printRows writes a hundred thousand rows without leaving garbage behind: the
// table of package render would need its cells as strings, twice.
func (f *listFlags) printRows(w io.Writer, k *kallscope.Kernel, records func(func(listRecord) bool)) error {
	module, name, verdict := len("MODULE"), 0, "MECHANISM"
	if f.skipped != "" {
		verdict = "REASON"
	}
	for r := range records {
		module, name = max(module, len(r.Module)), max(name, len(r.Name))
	}
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, "%-18s  %-*s  %-8s  %-15s  ", "ADDRESS", module, "MODULE", "BTF", verdict)
	if f.mechanisms {
		fmt.Fprintf(out, "%-14s  ", "MECHANISMS")
	}
	if name = min(name, maxNameWidth); f.proto {
		fmt.Fprintf(out, "%-*s  PROTOTYPE\n", name, "FUNCTION")
	} else {
		fmt.Fprintln(out, "FUNCTION")
	}
	var line []byte
	var known knownIDs
	for r := range records {
		known.ask(k, r.Func)
		line = appendPadded(line[:0], 18, func(b []byte) []byte { return appendAddress(b, r.Addr) })
		line = appendPadded(line, module, func(b []byte) []byte { return append(b, r.Module...) })
		line = appendPadded(line, 8, known.appendTo)
		line = appendPadded(line, 15, func(b []byte) []byte {
			if f.skipped != "" {
				return append(b, r.Reason.String()...)
			}
			return append(b, r.Mechanism.String()...)
		})
		if f.mechanisms {
			line = append(appendMarks(line, r.Mechanisms), ' ', ' ')
		}
		if f.proto {
			line = appendPadded(line, name, func(b []byte) []byte { return append(b, r.Name...) })
			line = append(known.appendPrototypes(line, k), '\n')
		} else {
			line = append(append(line, r.Name...), '\n')
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// maxNameWidth is how far names are padded before prototypes; few are longer.
const maxNameWidth = 40

// appendPadded appends a cell, filled up to its width, and two blanks.
func appendPadded(line []byte, width int, cell func([]byte) []byte) []byte {
	end := len(line) + width
	line = cell(line)
	for len(line) < end {
		line = append(line, ' ')
	}
	return append(line, ' ', ' ')
}

func appendAddress(b []byte, addr uint64) []byte {
	if addr == 0 {
		return append(b, '-')
	}
	b = append(b, "0x"...)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[addr>>shift&15])
	}
	return b
}
