package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kallscope/kallscope/internal/vm/kernels"
)

// static makes binaries that run where there are no libraries.
var static = []string{"CGO_ENABLED=0"}

type guestFlags struct {
	kernel  string
	modules string
	p       int
	timeout time.Duration
	long    bool
}

// runGuest is gotest guest.
func runGuest(ctx context.Context, flags *flag.FlagSet, args []string, w io.Writer) error {
	var f guestFlags
	flags.StringVar(&f.kernel, "kernel", "6.12", "")
	flags.StringVar(&f.modules, "modules", "nf_conntrack", "")
	flags.IntVar(&f.p, "p", runtime.NumCPU(), "")
	flags.DurationVar(&f.timeout, "timeout", 15*time.Minute, "")
	flags.BoolVar(&f.long, "long", false, "")
	patterns, err := parse(flags, args)
	if err != nil {
		return err
	}
	isKernelTest := func(file string) bool { return strings.HasSuffix(file, "_linux_test.go") }
	pkgs, err := find(ctx, patterns, isKernelTest, "Test", "Example")
	if err != nil {
		return err
	}
	if len(pkgs) == 0 {
		return errors.New("guest: no kernel tests (files *_linux_test.go) in " + strings.Join(patterns, " "))
	}
	wrapper, err := f.build(ctx)
	if err != nil {
		return err
	}
	// -count=1: the go command does not see that a kernel has changed. The time
	// limit is vmrun's: a guest's clock jumps ahead when the machine is busy.
	test := []string{"-count=1", fmt.Sprintf("-short=%v", !f.long), "-timeout=0", "-exec=" + wrapper}
	r := newReport(w)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.p)
	for _, p := range pkgs {
		g.Go(func() error {
			return r.goTest(ctx, static, slices.Concat(test, []string{"-run=" + exactly(p.funcs), p.path})...)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return r.closeGuest(f.kernel)
}

// closeGuest closes the report of a guest run, which fails also when nothing
// has passed: then the tests have not seen the kernel.
func (r *report) closeGuest(kernel string) error {
	r.close("guest-" + kernel)
	switch {
	case !r.ok():
		return errFailed
	case r.passed == 0:
		return fmt.Errorf("%w: kernel %s: everything was skipped", errFailed, kernel)
	}
	return nil
}

// build builds the wrapper and the commands for the guest, and returns what
// -exec wants.
func (f guestFlags) build(ctx context.Context) (string, error) {
	root, err := goOutput(ctx, nil, "list", "-m", "-f={{.Dir}}")
	if err != nil {
		return "", err
	}
	const module = "github.com/kallscope/kallscope"
	bin := filepath.Join(root, "bin")
	if _, err := goOutput(ctx, static, "build", "-trimpath", "-o="+bin+"/", module+"/cmd/kallscope",
		module+"/internal/cmd/vmrun", module+"/internal/cmd/workload"); err != nil {
		return "", err
	}
	kernel, err := kernels.Find(f.kernel)
	if err != nil {
		return "", err
	}
	words := []string{filepath.Join(bin, "vmrun"), "-kernel", f.kernel, "-modules", f.modules, "-timeout", f.timeout.String()}
	words = append(words, "-copy", kernel.Image+":/boot/vmlinuz") // package kimage compares it with the running kernel
	for _, name := range []string{"kallscope", "workload"} {
		words = append(words, "-copy", filepath.Join(bin, name)+":/bin/"+name)
	}
	for i, word := range words {
		words[i] = "'" + word + "'" // -exec splits at spaces outside quotes
	}
	return strings.Join(words, " "), nil
}
