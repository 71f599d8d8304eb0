//go:build linux

// Compare measures how long kallscope and other tools take from their start
// until a BPF program is attached to every function that matches a pattern, and
// how long to stop, all in one boot of one guest.
//
//	compare -kernel 6.12 -rounds 5
//	compare -kernel 7.3 -rounds 1 -icount
//
// The tools are kallscope count, Debian's bpftrace with one count for all
// functions, and a small program of libbpf's pattern attach (libbpf/multi.c).
// The floor is the system call alone, with the addresses, the cookies and the
// loaded program of kallscope, beside what attach.Attach takes for the same.
//
// Each round runs every tool once, in an order that changes from round to
// round; the ratios are between runs of the same round. The first pattern has
// -warmup rounds before that are not counted: the first program of a boot makes
// the kernel parse its BTF. A tool is attached when its kprobe.multi link is there
// with 100 functions or more, for which the runner looks every 5 ms.
//
// The others are unpacked from Debian's packages, at the first time, into
// kallscope/compare in the user's cache folder; that needs apt, clang-19 and ld.
// It must run inside the kallscope module, whose kallscope it builds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/kallscope/kallscope/internal/vm"
	"github.com/kallscope/kallscope/internal/vm/kernels"
)

// guestCommand, as the first argument, makes this program the one in the guest.
const guestCommand = "in-guest"

func main() {
	vm.GuestMain()
	var err error
	if len(os.Args) > 1 && os.Args[1] == guestCommand {
		err = guestMain(os.Args[2:], os.Stdout, os.Stderr)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "compare: %v\n", err)
	os.Exit(2)
}

type options struct {
	kernel  string
	rounds  int
	warmup  int
	icount  bool
	json    string
	tools   []string
	timeout time.Duration

	patterns []string
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{tools: toolNames()}
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, "usage: compare [flags] [PATTERN...]\n\nCompare kallscope with other tools in a guest; patterns: 'tcp_*' and '*'.\n\n")
		fs.PrintDefaults()
	}
	fs.StringVar(&o.kernel, "kernel", "6.12", "`name` or path of the kernel")
	fs.IntVar(&o.rounds, "rounds", 5, "`number` of rounds")
	fs.IntVar(&o.warmup, "warmup", 1, "`number` of rounds of the first pattern before, not counted")
	fs.BoolVar(&o.icount, "icount", false, "let guest time count instructions: 1 ns is one")
	fs.StringVar(&o.json, "json", "", "write every run as a line of JSON to `file`")
	fs.DurationVar(&o.timeout, "timeout", time.Hour, "end the guest after this `time`")
	fs.Func("tools", "run only these `tools`, separated by commas: "+strings.Join(o.tools, ","), func(s string) error {
		o.tools = strings.Split(s, ",")
		return checkTools(o.tools)
	})
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.warmup < 0 {
		return o, errors.New("-rounds must be at least 1, -warmup not negative")
	}
	if o.patterns = fs.Args(); len(o.patterns) == 0 {
		o.patterns = []string{"tcp_*", "*"}
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	kernel, err := kernels.Find(o.kernel)
	if err != nil {
		return err
	}
	files, versions, err := setup(ctx, stderr)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	samples, err := measure(ctx, o, kernel, files, stderr)
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := writeJSON(o.json, samples); err != nil {
			return err
		}
	}
	r := report{
		Command:  "go run ./internal/cmd/compare " + quote(args),
		Kernel:   kernel.Release,
		Emulator: emulatorVersion(ctx),
		Versions: versions,
		Icount:   o.icount,
		Rounds:   o.rounds,
		Patterns: o.patterns,
		Samples:  samples,
	}
	return r.write(stdout)
}

// measure boots the guest and returns what its runner found.
func measure(ctx context.Context, o options, kernel vm.Kernel, files map[string]string, stderr io.Writer) ([]sample, error) {
	args := append([]string{
		guestCommand, fmt.Sprint("-rounds=", o.rounds), fmt.Sprint("-warmup=", o.warmup), "-tools=" + strings.Join(o.tools, ","),
	}, o.patterns...)
	cmd := vm.CommandContext(ctx, kernel, guestRunner, args...)
	cmd.Files = files
	cmd.Icount = o.icount
	cmd.Timeout = o.timeout
	cmd.Stderr = stderr
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		writer.Close()
		ended <- err
	}()
	samples, err := readJSON(reader, func(s sample) { fmt.Fprintln(stderr, s) })
	_, _ = io.Copy(io.Discard, reader)
	return samples, errors.Join(<-ended, err)
}

func emulatorVersion(ctx context.Context) string {
	path, err := vm.FindQEMU()
	if err != nil {
		return "QEMU"
	}
	out, _ := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	line, _, _ = strings.Cut(line, " (")
	return strings.Replace(line, "emulator version ", "", 1)
}

// quote joins arguments as a shell takes them.
func quote(args []string) string {
	var quoted []string
	for _, a := range args {
		if strings.ContainsAny(a, "*?[]{}!$&|;<>() '\"") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted = append(quoted, a)
	}
	return strings.Join(quoted, " ")
}
