package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/render"
)

const countSchema = "kallscope.count/1"

// order returns the targets to show, by index, and how many were called but are
// not among them.
func (r *countRun) order(calls []uint64) (shown []int, rest int) {
	refused := make(map[int]bool)
	for _, t := range r.att.Refused() {
		refused[t.Index] = true
	}
	for i, n := range calls {
		if n > 0 || r.all && !refused[i] {
			shown = append(shown, i)
		}
	}
	targets := r.plan.Targets
	slices.SortStableFunc(shown, func(a, b int) int {
		switch r.sort {
		case "name":
			return cmp.Or(strings.Compare(targets[a].Name, targets[b].Name), cmp.Compare(a, b))
		case "address":
			return cmp.Compare(targets[a].Addr, targets[b].Addr)
		}
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	})
	if limit := r.limit(); limit > 0 && len(shown) > limit {
		return shown[:limit], len(shown) - limit
	}
	return shown, 0
}

// limit returns how many functions to show; 0 means all. A program that reads
// JSON, and who asks for all, gets all unless told otherwise.
func (r *countRun) limit() int {
	if !r.topGiven && (r.json || r.all) {
		return 0
	}
	return r.top
}

type countJSON struct {
	Schema string        `json:"schema"`
	Type   string        `json:"type"`
	Time   string        `json:"time,omitempty"`
	Addr   kallscope.Hex `json:"address,omitzero"`
	Module string        `json:"module"`
	Name   string        `json:"name"`
	Calls  uint64        `json:"calls"`
}

// print writes the functions of one result; at is the end of an interval.
func (r *countRun) print(calls []uint64, at time.Time) error {
	shown, rest := r.order(calls)
	if r.json {
		return r.printRecords(calls, shown, at)
	}
	if !at.IsZero() {
		fmt.Fprintf(r.out, "%s\n", at.Format(time.TimeOnly))
	}
	if len(shown) == 0 {
		if at.IsZero() {
			fmt.Fprintln(r.err, "none of the functions was called; calls that the compiler inlined are not seen")
		}
		return nil
	}
	err := render.Table(r.out, render.Row{">CALLS", "ADDRESS", "MODULE", "FUNCTION"}, func(yield func(render.Row) bool) {
		for _, i := range shown {
			t := r.plan.Targets[i]
			if !yield(render.Row{render.Number(calls[i]), render.Address(t.Addr), t.Module, t.Name}) {
				return
			}
		}
	})
	if rest > 0 {
		fmt.Fprintf(r.err, "and %s that were called; --top 0 shows all\n", render.Plural(rest, "more function"))
	}
	return err
}

func (r *countRun) printRecords(calls []uint64, shown []int, at time.Time) error {
	stamp := ""
	if !at.IsZero() {
		stamp = at.UTC().Format(time.RFC3339Nano)
	}
	return render.JSONLines(r.out, func(yield func(any) bool) {
		for _, i := range shown {
			t := r.plan.Targets[i]
			if !yield(countJSON{countSchema, "function", stamp, kallscope.Hex(t.Addr), t.Module, t.Name, calls[i]}) {
				return
			}
		}
	})
}

// countInterval closes the records of one interval: there is one even when
// nothing was called.
type countInterval struct {
	Schema string `json:"schema"`
	Type   string `json:"type"`
	Time   string `json:"time"`
	Calls  uint64 `json:"calls"`
	Called int    `json:"functions_called"`
}

func (r *countRun) printIntervalJSON(calls []uint64, at time.Time) error {
	c := countInterval{Schema: countSchema, Type: "interval", Time: at.UTC().Format(time.RFC3339Nano)}
	for _, n := range calls {
		c.Calls += n
		if n > 0 {
			c.Called++
		}
	}
	return render.JSONLines(r.out, func(yield func(any) bool) { yield(c) })
}

// countSummary closes every result: what was asked for and what became of it.
type countSummary struct {
	Schema    string                   `json:"schema"`
	Type      string                   `json:"type"`
	Kernel    kallscope.Identity       `json:"kernel"`
	Mechanism kallscope.Mechanism      `json:"mechanism"`
	Matched   int                      `json:"matched"`
	Targets   int                      `json:"targets"`
	Attached  int                      `json:"attached"`
	Refused   int                      `json:"refused"`
	Skipped   int                      `json:"skipped"`
	Reasons   map[kallscope.Reason]int `json:"skipped_by_reason,omitempty"`
	Calls     uint64                   `json:"calls"`
	Called    int                      `json:"functions_called"`
	Unknown   uint64                   `json:"calls_of_unknown_target"`
	Missed    attach.Missed            `json:"missed"`
	Duration  int64                    `json:"duration_ns"`
}

func (r *countRun) summarize(calls []uint64, missed attach.Missed, elapsed time.Duration) *countSummary {
	s := &countSummary{
		Schema: countSchema, Type: "summary", Kernel: r.plan.Kernel, Mechanism: r.plan.Targets[0].Mechanism,
		Matched: r.plan.Matched(), Targets: len(r.plan.Targets), Attached: r.att.Attached(),
		Refused: len(r.att.Refused()), Skipped: r.plan.Skipped.Len(), Reasons: r.plan.Skipped.By(),
		Unknown: r.counter.Unknown(), Missed: missed, Duration: elapsed.Nanoseconds(),
	}
	for _, n := range calls {
		s.Calls += n
		if n > 0 {
			s.Called++
		}
	}
	return s
}

func (r *countRun) printJSON(s *countSummary) error {
	return render.JSONLines(r.out, func(yield func(any) bool) { yield(s) })
}

// speak writes the result in a sentence.
func (s *countSummary) speak(w io.Writer) {
	fmt.Fprintf(w, "%s of %s in %s", render.Plural(s.Calls, "call"), render.Plural(s.Called, "function"), render.Duration(time.Duration(s.Duration)))
	fmt.Fprintf(w, "; %s dropped while another ran on the CPU, %s missed by the link", render.Number(s.Missed.Recursion), render.Number(s.Missed.Link))
	if s.Unknown > 0 {
		fmt.Fprintf(w, "; %s of a target that could not be told", render.Number(s.Unknown))
	}
	fmt.Fprintln(w)
}
