package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/render"
)

const whySchema = "kallscope.why/1"

// maxPages is up to how many functions each has a page of its own.
const maxPages = 20

type whyFlags struct {
	queryFlags
	all bool
}

func newWhy(s stdio) *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:   "why NAME...",
		Short: "Explain what can be attached to a function, and what not and why",
		Long: `Show everything that is known about functions: address, names, BTF ids, C
prototype, ftrace site, and for each mechanism whether it can be attached or all
that stands in the way, with what to do instead and where the kernel decides it.

Patterns that match more than 20 functions are summed up by reason; --all shows
each. Nothing is attached.

Exit status 1 when none of the functions can be attached to (by --mechanism, if
it is given), or when a name matches nothing.`,
		Example: `  kallscope why vfs_read
  kallscope why do_exit --mechanism fexit
  kallscope why 'tcp_*'`,
		RunE: func(_ *cobra.Command, args []string) error { return runWhy(s, &f, args) },
	}
	f.registerPatterns(cmd)
	f.registerMechanism(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "show each function, however many there are")
	return cmd
}

// whyJSON is one finding.
type whyJSON struct {
	Schema string        `json:"schema"`
	Addr   kallscope.Hex `json:"address,omitzero"`
	Module string        `json:"module"`
	Name   string        `json:"name"`
	Names  []string      `json:"names"`
	btfJSON
	Room     uint64               `json:"room_bytes,omitempty"`
	Site     kallscope.Hex        `json:"site,omitzero"`
	Cautions []kallscope.Obstacle `json:"cautions,omitempty"`
	Verdicts []whyVerdict         `json:"verdicts"`
}

// A whyVerdict is a verdict and whether this kernel has the mechanism.
type whyVerdict struct {
	kallscope.Verdict
	Possible bool `json:"possible"`
	// Missing says why the mechanism cannot be used on any function here.
	Missing string `json:"missing,omitempty"`
}

func runWhy(s stdio, f *whyFlags, args []string) error {
	only, err := kallscope.ParseMechanism(f.mechanism)
	if err != nil {
		return err
	}
	k, err := f.open()
	if err != nil {
		return err
	}
	q, err := f.read(args, s.in)
	if err != nil {
		return err
	}
	e, err := k.Explain(q)
	if err != nil {
		return err
	}
	w := &why{out: s.out, explanation: e, mechanisms: f.availability(only)}
	f.tellFacts(s.err, k, e.Facts)
	tellUnmatched(s.err, e.Unmatched)
	switch {
	case f.json:
		err = render.JSONLines(s.out, w.records)
	case len(e.Findings) > maxPages && !f.all:
		err = w.summary()
	default:
		err = w.pages()
	}
	if err == nil && (len(e.Unmatched) > 0 || !slices.ContainsFunc(e.Findings, w.possible)) {
		err = errNoMatch
	}
	return err
}

// why prints an explanation.
type why struct {
	out         io.Writer
	explanation *kallscope.Explanation
	mechanisms  []available
}

// available is a mechanism, and what is missing for it on this kernel.
type available struct {
	mechanism kallscope.Mechanism
	missing   string
}

// availability returns all mechanisms, or the only one that is asked for. What
// another kernel has is not known.
func (q *queryFlags) availability(only kallscope.Mechanism) (list []available) {
	for _, m := range kallscope.Mechanisms() {
		if only != kallscope.MechanismAuto && m != only {
			continue
		}
		a := available{mechanism: m}
		if err := attach.Supported(m); q.kernel == "" && err != nil {
			a.missing = strings.TrimPrefix(err.Error(), m.String()+": ")
		}
		list = append(list, a)
	}
	return list
}

func (w *why) possible(f kallscope.Finding) bool {
	return slices.ContainsFunc(w.mechanisms, func(a available) bool {
		return a.missing == "" && len(f.Verdict(a.mechanism).Obstacles) == 0
	})
}

func (w *why) records(yield func(any) bool) {
	for i := range w.explanation.Findings {
		f := &w.explanation.Findings[i]
		known := knownIDs{f.IDs, f.BaseIDs}
		j := whyJSON{
			whySchema, kallscope.Hex(f.Addr), f.Module, f.Name, f.Names, newBTFJSON(f.Func, known, prototypesOf(f)),
			f.Room, kallscope.Hex(f.Site), f.Cautions, nil,
		}
		for _, a := range w.mechanisms {
			v := f.Verdict(a.mechanism)
			j.Verdicts = append(j.Verdicts, whyVerdict{v, a.missing == "" && len(v.Obstacles) == 0, a.missing})
		}
		if !yield(j) {
			return
		}
	}
}

func (w *why) pages() error {
	var b strings.Builder
	for i := range w.explanation.Findings {
		if i > 0 {
			b.WriteByte('\n')
		}
		w.page(&b, &w.explanation.Findings[i])
	}
	_, err := io.WriteString(w.out, b.String())
	return err
}

// page writes what a person reads about one function.
func (w *why) page(b *strings.Builder, f *kallscope.Finding) {
	fmt.Fprintf(b, "%s\n", f.Func)
	for _, fact := range facts(f) {
		if fact[1] != "" {
			fmt.Fprintf(b, "  %-10s %s\n", fact[0], fact[1])
		}
	}
	for _, c := range f.Cautions {
		fmt.Fprintf(b, "  left out of patterns: %s: %s\n", c.Reason, c.Reason.Info().Text)
	}
	for _, g := range w.groups(f) {
		g.write(b)
	}
}

// facts are the lines of a page that are no verdicts.
func facts(f *kallscope.Finding) [][2]string {
	prototypes := strings.Join(prototypesOf(f), "\n             ")
	list := [][2]string{{"address", ""}, {"names", ""}, {"BTF", ids(f)}, {"prototype", prototypes}, {"room", ""}, {"site", ""}}
	if f.Addr != 0 {
		list[0][1] = render.Address(f.Addr)
	}
	if len(f.Names) > 1 {
		list[1][1] = strings.Join(f.Names, ", ")
	}
	if f.Room > 0 {
		list[4][1] = fmt.Sprintf("%s to the next symbol", render.Plural(f.Room, "byte"))
	}
	if f.Site > 0 {
		list[5][1] = fmt.Sprintf("entry+%#x", f.Site-f.Addr)
	}
	return list
}

func ids(f *kallscope.Finding) string {
	var texts []string
	for _, id := range append(f.IDs, f.BaseIDs...) {
		texts = append(texts, id.String())
	}
	text := strings.Join(texts, ", ")
	if len(f.BaseIDs) > 0 {
		text += " of " + f.VariantOf() + ", of which the compiler made it; arguments may differ"
	}
	return text
}

// prototypesOf returns the prototypes of a finding, one where all are the same.
func prototypesOf(f *kallscope.Finding) []string {
	if f.Prototypes == nil && f.Prototype != "" {
		return []string{f.Prototype}
	}
	return f.Prototypes
}

// A group is the mechanisms about which the same is to be said.
type group struct {
	mechanisms []string
	missing    string
	obstacles  []kallscope.Obstacle
}

func (w *why) groups(f *kallscope.Finding) (groups []group) {
	for _, a := range w.mechanisms {
		obstacles := f.Verdict(a.mechanism).Obstacles
		if a.missing != "" {
			obstacles = nil // there is nothing to do about them here
		}
		i := slices.IndexFunc(groups, func(g group) bool {
			return g.missing == a.missing && slices.Equal(g.obstacles, obstacles)
		})
		if i < 0 {
			groups, i = append(groups, group{nil, a.missing, obstacles}), len(groups)
		}
		groups[i].mechanisms = append(groups[i].mechanisms, a.mechanism.String())
	}
	return groups
}

func (g *group) write(b *strings.Builder) {
	mark := "✓"
	if g.missing != "" || len(g.obstacles) > 0 {
		mark = "✗"
	}
	fmt.Fprintf(b, "  %s %s\n", mark, strings.Join(g.mechanisms, ", "))
	if g.missing != "" {
		fmt.Fprintf(b, "      %s\n", g.missing)
	}
	for _, o := range g.obstacles {
		info := o.Reason.Info()
		fmt.Fprintf(b, "      %s: %s\n", o.Reason, info.Text)
		for _, line := range []struct{ label, text string }{{"here: ", o.Detail}, {"instead: ", info.Remedy}, {"see ", info.Reference}} {
			if line.text != "" {
				fmt.Fprintf(b, "        %s%s\n", line.label, line.text)
			}
		}
	}
}

// summary counts findings by the first obstacle, for each mechanism.
func (w *why) summary() error {
	header := render.Row{"MECHANISM", ">POSSIBLE", "NOT POSSIBLE"}
	return render.Table(w.out, header, func(yield func(render.Row) bool) {
		for _, a := range w.mechanisms {
			possible, by := 0, make(map[kallscope.Reason]int)
			for i := range w.explanation.Findings {
				if o := w.explanation.Findings[i].Verdict(a.mechanism).Obstacles; len(o) > 0 {
					by[o[0].Reason]++
				} else {
					possible++
				}
			}
			if a.missing != "" {
				possible = 0
			}
			if !yield(render.Row{a.mechanism.String(), render.Number(possible), cmp.Or(a.missing, render.Reasons(by), "-")}) {
				return
			}
		}
	})
}
