//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kallscope/kallscope/internal/render"
)

// report is everything that the text says.
type report struct {
	Command  string
	Kernel   string
	Emulator string
	Versions []string
	Icount   bool
	Rounds   int
	Patterns []string
	Samples  []sample
}

// write prints the report as Markdown.
func (r report) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	unit := "seconds"
	if r.Icount {
		unit = "10⁹ instructions of the guest"
	}
	fmt.Fprintf(w, "Linux %s, %s; %s.\n%s of each, in turn, in one boot; %s.\n\n\t%s\n",
		r.Kernel, r.Emulator, strings.Join(r.Versions, ", "), render.Plural(r.Rounds, "run"), unit, r.Command)
	for _, p := range r.Patterns {
		fmt.Fprintf(w, "\n| `%s` | start → attached: median (min–max) | kallscope ÷ this | stop | peak RSS | functions | enabled_functions |\n", p)
		fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|")
		for _, tool := range r.names(p) {
			fmt.Fprintln(w, r.row(p, tool))
		}
		if bare, att := r.runs(p, systemCall), r.runs(p, attachCall); len(bare) > 0 {
			fmt.Fprintf(w, "\nattach.Attach ÷ bare bpf(2): %s\n", spread(ratios(att, bare)))
		}
	}
	return w.Flush()
}

// names returns the tools in the order of their first run.
func (r report) names(pattern string) []string {
	var names []string
	for _, s := range r.Samples {
		if s.Pattern == pattern && !slices.Contains(names, s.Tool) {
			names = append(names, s.Tool)
		}
	}
	return names
}

// runs returns the runs of a tool that count, by round.
func (r report) runs(pattern, tool string) []sample {
	var runs []sample
	for _, s := range r.Samples {
		if s.Pattern == pattern && s.Tool == tool && s.Round > 0 {
			runs = append(runs, s)
		}
	}
	return runs
}

func (r report) row(pattern, tool string) string {
	runs := r.runs(pattern, tool)
	attach := each(runs, func(s sample) float64 { return s.Attach })
	stop := each(runs, func(s sample) float64 { return s.Stop })
	ratio := "–"
	if tool != kallscopeTool {
		ratio = spread(ratios(r.runs(pattern, kallscopeTool), runs))
	}
	rss, enabled, functions := "–", "–", "–"
	if len(runs) > 0 {
		functions = render.Number(runs[0].Functions)
	}
	if kib := slices.Max(append(each(runs, func(s sample) float64 { return float64(s.RSS) }), 0)); kib > 0 {
		rss = fmt.Sprintf("%.1f MiB", kib/1024)
	}
	for _, s := range r.Samples {
		if s.Pattern == pattern && s.Tool == tool && s.Enabled > 0 {
			enabled = render.Number(s.Enabled)
		}
	}
	return "| " + strings.Join([]string{tool, spread(attach), ratio, number(median(stop)), rss, functions, enabled}, " | ") + " |"
}

// ratios returns those of the times to attach in the rounds that both have.
func ratios(a, b []sample) []float64 {
	var list []float64
	for i := range min(len(a), len(b)) {
		list = append(list, a[i].Attach/b[i].Attach)
	}
	return list
}

func each(runs []sample, f func(sample) float64) []float64 {
	list := make([]float64, len(runs))
	for i, s := range runs {
		list[i] = f(s)
	}
	return list
}

// spread prints the median with the least and the greatest.
func spread(list []float64) string {
	if len(list) == 0 {
		return "–"
	}
	if len(list) == 1 {
		return number(list[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(list)), number(slices.Min(list)), number(slices.Max(list)))
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// number prints three digits or so.
func number(f float64) string {
	if f >= 9.995 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}
