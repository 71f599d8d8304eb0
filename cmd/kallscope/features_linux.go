package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kallscope/kallscope"
	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/feature"
	"github.com/kallscope/kallscope/internal/render"
)

const featuresSchema = "kallscope.features/1"

// A featureJSON is one line: a mechanism, a source of facts or a setting.
type featureJSON struct {
	Schema string `json:"schema"`
	Type   string `json:"type"` // mechanism, source or setting
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	// Value is what a setting is, or where a source was read.
	Value   string `json:"value,omitempty"`
	Entries int    `json:"entries,omitempty"`
	// Problem is what is missing, and what to do.
	Problem string `json:"problem,omitempty"`
}

func newFeatures(s stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "features",
		Short: "Show what this kernel can do, and what is missing for the rest",
		Long: `Show which mechanisms this kernel has and this process may use, which of the
kernel's lists can be read, and the settings that decide about both. Mechanisms
are tried, with a program of two instructions, and attach nothing.

Exit status 1 when there is no mechanism.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			k, err := kallscope.Live(kallscope.LiveOptions{})
			if err != nil {
				return err
			}
			return printFeatures(s, features(k), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

// features asks the kernel.
func features(k *kallscope.Kernel) []featureJSON {
	var all []featureJSON
	add := func(f featureJSON, err error) {
		f.Schema, f.Usable = featuresSchema, err == nil
		if err != nil {
			f.Problem = err.Error()
		}
		all = append(all, f)
	}
	for _, m := range kallscope.Mechanisms() {
		add(featureJSON{Type: "mechanism", Name: m.String()}, attach.Supported(m))
	}
	plan, err := k.Plan(kallscope.Query{Patterns: []string{"*"}}, kallscope.PlanOptions{})
	if err != nil {
		add(featureJSON{Type: "source", Name: "symbols"}, err)
		plan = new(kallscope.Plan)
	} else {
		add(featureJSON{Type: "source", Name: "symbols", Entries: plan.Facts.Symbols}, problem(plan.Facts.Hidden))
		add(featureJSON{Type: "source", Name: "sites", Value: plan.Facts.SitesFrom, Entries: plan.Facts.Sites}, problem(plan.Facts.SitesUnknown))
	}
	objects, err := os.ReadDir("/sys/kernel/btf")
	add(featureJSON{Type: "source", Name: "btf", Value: "/sys/kernel/btf", Entries: len(objects)}, cmp.Or(err, problem(plan.Facts.BTFUnknown)))
	blacklist, err := k.KprobeBlacklist()
	add(featureJSON{Type: "source", Name: "kprobe-blacklist", Value: "/sys/kernel/debug/kprobes/blacklist", Entries: len(blacklist)}, err)
	switches := k.Switches()
	for _, setting := range []struct{ name, value string }{
		{"lockdown", switches.Lockdown},
		{"kptr_restrict", switches.KptrRestrict},
		{"cap_syslog", fmt.Sprint(switches.Syslog)},
		{"tracefs", switches.Tracefs},
		{"ftrace_enabled", feature.Sysctl("ftrace_enabled")},
		{"perf_event_paranoid", feature.Sysctl("perf_event_paranoid")},
	} {
		add(featureJSON{Type: "setting", Name: setting.name, Value: cmp.Or(setting.value, "unknown")}, nil)
	}
	return all
}

// problem makes an error of what a plan could not know.
func problem(text string) error {
	if text == "" {
		return nil
	}
	return fmt.Errorf("%s", text)
}

func printFeatures(s stdio, all []featureJSON, asJSON bool) error {
	mechanisms := 0
	for _, f := range all {
		if f.Type == "mechanism" && f.Usable {
			mechanisms++
		}
	}
	var err error
	if asJSON {
		err = render.JSONLines(s.out, func(yield func(any) bool) {
			for _, f := range all {
				if !yield(f) {
					return
				}
			}
		})
	} else {
		err = render.Table(s.out, render.Row{"KIND", "NAME", "STATE", ">ENTRIES", "WHAT"}, func(yield func(render.Row) bool) {
			for _, f := range all {
				if !yield(f.row()) {
					return
				}
			}
		})
	}
	if err == nil && mechanisms == 0 {
		return errNoMatch
	}
	return err
}

func (f *featureJSON) row() render.Row {
	state, entries := "usable", "-"
	switch {
	case !f.Usable:
		state = "no"
	case f.Type == "setting":
		state = "is"
	}
	if f.Type == "source" && f.Entries > 0 {
		entries = render.Number(f.Entries)
	}
	return render.Row{f.Type, f.Name, state, entries, cmp.Or(f.Problem, f.Value, "-")}
}
