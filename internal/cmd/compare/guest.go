//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// tool is one of the programs to compare.
type tool struct {
	name string
	// run measures one run and adds what it found.
	run func(r *round) error
}

var tools = []tool{
	{kallscopeTool, external(func(p string) []string { return []string{guestKallscope, "count", p} })},
	{"bpftrace", external(func(p string) []string {
		return []string{guestBPFTrace, "-e", "kprobe:" + p + " { @ = count() }"}
	})},
	{"libbpf", external(func(p string) []string { return []string{guestMulti, guestMultiBPF, p} })},
	{"floor", runFloor},
}

// kallscopeTool is what the others are compared with.
const kallscopeTool = "kallscope"

func toolNames() []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

func checkTools(names []string) error {
	for _, n := range names {
		if !slices.Contains(toolNames(), n) {
			return fmt.Errorf("%q: use %s", n, strings.Join(toolNames(), ", "))
		}
	}
	return nil
}

// round is what a tool is to do, and takes what it found.
type round struct {
	number  int // from 1; below that it is not counted
	first   bool
	pattern string
	tool    string
	out     *json.Encoder
	stderr  io.Writer
}

func (r *round) add(s sample) error {
	s.Round, s.Pattern = r.number, r.pattern
	if s.Tool == "" {
		s.Tool = r.tool
	}
	return r.out.Encode(s)
}

// guestMain runs all rounds and prints samples as lines of JSON.
func guestMain(args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == floorCommand {
		return floorMain(args[1], stdout)
	}
	fs := flag.NewFlagSet(guestCommand, flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 1, "")
	warmup := fs.Int("warmup", 0, "")
	names := fs.String("tools", "", "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(tools), func(t tool) bool {
		return !slices.Contains(strings.Split(*names, ","), t.name)
	})
	for i, pattern := range fs.Args() {
		if i > 0 {
			*warmup = 0
		}
		r := round{pattern: pattern, out: json.NewEncoder(stdout), stderr: stderr}
		if err := r.all(chosen, *warmup, *rounds); err != nil {
			return err
		}
	}
	return nil
}

// all runs the tools by turns.
func (r *round) all(tools []tool, warmup, rounds int) error {
	for n := range warmup + rounds {
		r.number, r.first = n+1-warmup, n == 0
		for i := range tools {
			t := tools[(i+n)%len(tools)]
			r.tool = t.name
			if err := t.run(r); err != nil {
				return fmt.Errorf("%s, pattern %s, round %d: %w", t.name, r.pattern, r.number, err)
			}
		}
	}
	return nil
}

// enabledFunctions counts what ftrace has patched now. It takes seconds when
// everything is.
func enabledFunctions() (int, error) {
	f, err := os.Open("/sys/kernel/tracing/enabled_functions")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := 0
	for b := make([]byte, 1<<16); ; {
		m, err := f.Read(b)
		n += bytes.Count(b[:m], []byte{'\n'})
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
