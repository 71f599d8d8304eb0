package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

type fuzzFlags struct {
	each, budget time.Duration
	p            int
}

// time returns how long each of n targets may take.
func (f fuzzFlags) time(n int) time.Duration {
	if share := f.budget * time.Duration(f.p) / time.Duration(n); f.budget > 0 && share < f.each {
		return max(share.Truncate(time.Second), time.Second)
	}
	return f.each
}

// runFuzz is gotest fuzz.
func runFuzz(ctx context.Context, flags *flag.FlagSet, args []string, w io.Writer) error {
	var f fuzzFlags
	flags.DurationVar(&f.each, "each", 20*time.Second, "")
	flags.DurationVar(&f.budget, "budget", 0, "")
	flags.IntVar(&f.p, "p", runtime.NumCPU(), "")
	patterns, err := parse(flags, args)
	if err != nil {
		return err
	}
	pkgs, err := find(ctx, patterns, func(string) bool { return true }, "Fuzz")
	if err != nil {
		return err
	}
	total := 0
	for _, p := range pkgs {
		total += len(p.funcs)
	}
	if total == 0 {
		return errors.New("fuzz: no targets in " + strings.Join(patterns, " "))
	}
	each := f.time(total)
	fmt.Fprintf(w, "%d targets, %v each, %d at a time\n", total, each, f.p)
	var mu sync.Mutex // guards the fields below
	var t tally
	var g errgroup.Group
	g.SetLimit(f.p)
	for _, p := range pkgs {
		for _, target := range p.funcs {
			g.Go(func() error {
				text, ok := fuzzOne(ctx, p.path, target, each)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					t.passed++
				} else {
					t.failed++
				}
				fmt.Fprintln(w, text)
				return ctx.Err()
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(w, "fuzz: %v\n", t)
	if t.failed > 0 {
		return errFailed
	}
	return nil
}

// progress is the line that go test writes now and then while fuzzing.
var progress = regexp.MustCompile(`elapsed: \S+, (execs: \d+).*(new interesting: \d+)`)

// timeUp is how go test before Go 1.27 may end when the time of a target is over,
// without a failing input (go.dev/issue/75804).
var timeUp = regexp.MustCompile(`(?m)^--- FAIL: \S+ \(\S+\)\n    context deadline exceeded\nFAIL\n`)

// fuzzOne fuzzes one target, and returns one line, or what failed.
func fuzzOne(ctx context.Context, pkg, target string, d time.Duration) (text string, ok bool) {
	out, err := goCommand(ctx, nil, "test", "-run=^$", "-fuzz="+exactly([]string{target}),
		"-fuzztime="+d.String(), "-parallel=1", pkg).CombinedOutput()
	if err != nil && !timeUp.Match(out) {
		return fmt.Sprintf("FAIL\t%s %s: %v\n%s", pkg, target, err, out), false
	}
	did := "no figures"
	if m := progress.FindAllStringSubmatch(string(out), -1); m != nil {
		last := m[len(m)-1]
		did = last[1] + ", " + last[2]
	}
	return fmt.Sprintf("ok  \t%s %s\t%s", pkg, target, did), true
}
