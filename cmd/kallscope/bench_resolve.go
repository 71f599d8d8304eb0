package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope/internal/bench/lookup"
	"github.com/kallscope/kallscope/internal/render"
)

const benchResolveSchema = "kallscope.bench.resolve/1"

type benchResolveFlags struct {
	wanted, symbols, methods []string
	rounds                   int
	json                     bool
}

func newBenchResolve(s stdio) *cobra.Command {
	var f benchResolveFlags
	cmd := &cobra.Command{
		Use:   "resolve",
		Short: "Measure the ways to find the addresses of many functions",
		Long: `Measure the ways to find the addresses of many BTF functions among the
kernel's symbols, which all give the same answer:

` + methodHelp(lookup.Methods()) + `
These load a program into the kernel, which needs root, and run only if
--method names them, with --symbols=all:

` + methodHelp(lookup.KernelMethods()) + `
Functions and symbols are this machine's. Fewer are taken evenly spaced; more
come again under made-up names. Without root addresses are zero, which
changes nothing.

Times are medians. /PARSE is the ratio to taking the lines of the text apart and
doing nothing with them, /READ to reading /proc/kallsyms and BTF and throwing
them away, scaled to the number of symbols. NS/NAME is the time for each
function and symbol: what does not grow with them is linear. MEMORY is all
that one run allocates. A "~" is extrapolated.`,
		Example: `  kallscope bench resolve
  kallscope bench resolve -m 60k -n 160k --method hash,product --rounds 15`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(s) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.wanted, "wanted", "m", []string{"1k", "10k", "60k"}, "how many functions to find, a `list`; all: those of BTF")
	flags.StringSliceVarP(&f.symbols, "symbols", "n", []string{"20k", "160k", "2M"}, "among how many symbols, a `list`; all: those of the kernel")
	flags.StringSliceVar(&f.methods, "method", nil, "only these methods, a `list`")
	flags.IntVar(&f.rounds, "rounds", 3, "take the median of this `many` runs")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line")
	return cmd
}

// methodHelp lists methods for --help.
func methodHelp(methods []lookup.Method) string {
	var b strings.Builder
	for _, m := range methods {
		fmt.Fprintf(&b, "  %-13s %s\n", m.Name, m.About)
	}
	return b.String()
}

// chosen returns the methods to measure.
func (f *benchResolveFlags) chosen() ([]lookup.Method, error) {
	if len(f.methods) == 0 {
		return lookup.Methods(), nil
	}
	var methods []lookup.Method
	for _, name := range f.methods {
		m, ok := lookup.Find(name)
		if !ok {
			return nil, fmt.Errorf("--method: %q is none; see 'kallscope bench resolve --help'", name)
		}
		methods = append(methods, m)
	}
	return methods, nil
}

func (f *benchResolveFlags) run(s stdio) error {
	// The methods differ in what they allocate: let the collector treat them as
	// it treats any program.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	methods, err := f.chosen()
	if err != nil {
		return err
	}
	if f.rounds < 1 {
		return errors.New("--rounds: at least 1")
	}
	source, err := lookup.Open("")
	if err != nil {
		return err
	}
	if source.NoBTF != nil {
		fmt.Fprintf(s.err, "no BTF, the kernel's functions stand for it: %v\n", source.NoBTF)
	}
	wanted, err := parseCounts("wanted", f.wanted, source.Functions())
	if err != nil {
		return err
	}
	symbols, err := parseCounts("symbols", f.symbols, source.Symbols())
	if err != nil {
		return err
	}
	var rows []benchRow
	p := newProgress(s.err)
	defer p.clear()
	for _, n := range symbols {
		for _, m := range wanted {
			p.say(fmt.Sprintf("looking up %s among %s", render.Plural(m, "function"), render.Plural(n, "symbol")))
			cell, err := lookup.Measure(source.Input(m, n), methods, f.rounds)
			if err != nil {
				return err
			}
			rows = append(rows, benchRows(cell, n == source.Symbols())...)
		}
	}
	p.clear()
	return f.print(s, rows)
}

// benchRows returns the floors and the methods of a question.
func benchRows(cell lookup.Cell, live bool) []benchRow {
	rows := []benchRow{
		{floor: "read", time: cell.Read, scaled: !live},
		{floor: "parse", time: cell.Parse},
	}
	for _, r := range cell.Results {
		rows = append(rows, benchRow{result: r, time: r.Time, scaled: r.Sampled > 0})
	}
	for i := range rows {
		rows[i].cell = &cell
	}
	return rows
}

// benchRow is a floor or a method of a question.
type benchRow struct {
	cell   *lookup.Cell
	floor  string // or empty
	result lookup.Result
	time   time.Duration
	scaled bool
}

func (r *benchRow) name() string {
	if r.floor != "" {
		return r.floor
	}
	return r.result.Method.Name
}

func (r *benchRow) perParse() float64 { return r.time.Seconds() / r.cell.Parse.Seconds() }
func (r *benchRow) perRead() float64  { return r.time.Seconds() / r.cell.Read.Seconds() }

// perName is in nanoseconds.
func (r *benchRow) perName() float64 {
	return float64(r.time.Nanoseconds()) / float64(r.cell.Wanted+r.cell.Symbols)
}

type benchResolveJSON struct {
	Schema   string  `json:"schema"`
	Floor    string  `json:"floor,omitempty"`
	Method   string  `json:"method,omitempty"`
	Wanted   int     `json:"wanted"`
	Symbols  int     `json:"symbols"`
	Skipped  string  `json:"skipped,omitempty"`
	Seconds  float64 `json:"seconds,omitzero"`
	Scaled   bool    `json:"extrapolated,omitempty"`
	Sampled  int     `json:"sampled,omitempty"`
	PerParse float64 `json:"per_parse,omitzero"`
	PerRead  float64 `json:"per_read,omitzero"`
	PerName  float64 `json:"ns_per_name,omitzero"`
	Bytes    *uint64 `json:"bytes,omitempty"`
	Allocs   *uint64 `json:"allocs,omitempty"`
	Found    *int    `json:"found,omitempty"`
}

func (r *benchRow) json() benchResolveJSON {
	j := benchResolveJSON{
		Schema: benchResolveSchema, Floor: r.floor, Method: r.result.Method.Name,
		Wanted: r.cell.Wanted, Symbols: r.cell.Symbols,
	}
	if r.result.Skipped != nil {
		j.Skipped = r.result.Skipped.Error()
		return j
	}
	j.Seconds, j.Scaled, j.Sampled = r.time.Seconds(), r.scaled, r.result.Sampled
	j.PerParse, j.PerRead, j.PerName = r.perParse(), r.perRead(), r.perName()
	if r.floor == "" {
		j.Bytes, j.Allocs, j.Found = &r.result.Bytes, &r.result.Allocs, &r.result.Found
	}
	return j
}

// row returns the cells of a line for people.
func (r *benchRow) row() render.Row {
	row := render.Row{render.Number(r.cell.Wanted), render.Number(r.cell.Symbols), r.name()}
	if r.result.Skipped != nil {
		return append(row, "-", "-", "-", "-", "-", "-")
	}
	mark := ""
	if r.scaled {
		mark = "~"
	}
	row = append(row, mark+threeDigits(r.time), ratio(r.perParse()), ratio(r.perRead()), ratio(r.perName()))
	if r.floor != "" {
		return append(row, "-", "-")
	}
	found := render.Number(r.result.Found)
	if r.result.Sampled > 0 {
		found += " of " + render.Number(r.result.Sampled)
	}
	return append(row, fmt.Sprintf("%.2f MB", float64(r.result.Bytes)/1e6), found)
}

// ratio has three digits or so.
func ratio(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return render.Number(uint64(x))
}

func (f *benchResolveFlags) print(s stdio, rows []benchRow) error {
	for _, r := range rows {
		if err := r.result.Skipped; err != nil {
			fmt.Fprintf(s.err, "%s among %s: %v; --symbols=all has them\n", r.name(), render.Plural(r.cell.Symbols, "symbol"), err)
		}
	}
	if f.json {
		return render.JSONLines(s.out, func(yield func(any) bool) {
			for _, r := range rows {
				if !yield(r.json()) {
					return
				}
			}
		})
	}
	header := render.Row{">WANTED", ">SYMBOLS", "METHOD", ">TIME", ">/PARSE", ">/READ", ">NS/NAME", ">MEMORY", ">FOUND"}
	return render.Table(s.out, header, func(yield func(render.Row) bool) {
		for _, r := range rows {
			if !yield(r.row()) {
				return
			}
		}
	})
}
