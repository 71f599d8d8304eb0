package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/kallscope/kallscope/internal/vm/kernels"
)

var errHelp = flag.ErrHelp

type options struct {
	kernel  string
	program []string
	modules []string
	memory  int
	cpus    int
	timeout time.Duration
	params  []string
	sysctl  map[string]string
	icount  bool
	noMount []string
	uid     int
	env     []string
	copy    map[string]string
	fetch   map[string]string
	verbose bool
}

const usage = `usage: vmrun [flags] [--] PROGRAM [ARG...]

Run a static program as root in a virtual machine. Kernels: %s,
or the path of a vmlinuz.

`

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{sysctl: map[string]string{}, copy: map[string]string{}, fetch: map[string]string{}}
	fs := flag.NewFlagSet("vmrun", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, usage, strings.Join(kernels.Names(), ", "))
		fs.PrintDefaults()
	}
	o.define(fs)
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if o.program = fs.Args(); len(o.program) == 0 {
		return o, errors.New("no program given (vmrun -h shows the usage)")
	}
	if o.timeout == 0 {
		o.timeout = testTimeout(o.program[1:])
	}
	return o, nil
}

func (o *options) define(fs *flag.FlagSet) {
	fs.StringVar(&o.kernel, "kernel", "6.12", "`name` or path of the kernel")
	fs.Func("modules", "load modules, separated by commas, or all", list(&o.modules))
	fs.IntVar(&o.memory, "mem", 0, "memory in `MiB` (default: 512 and thrice the files)")
	fs.IntVar(&o.cpus, "cpus", 1, "`number` of CPUs")
	fs.DurationVar(&o.timeout, "timeout", 0, "end the guest after this `time` (default: 5m, or what go test says)")
	fs.Func("append", "more kernel `parameters`", words(&o.params))
	fs.Func("sysctl", "set `NAME=VALUE`; may be repeated", pairs(o.sysctl, "="))
	fs.BoolVar(&o.icount, "icount", false, "let guest time count instructions")
	fs.Func("no-mount", "leave out file systems, such as tracefs, by `name`", list(&o.noMount))
	fs.IntVar(&o.uid, "uid", 0, "run as this `user` id")
	fs.Func("env", "set `NAME=VALUE`, or pass on NAME; may be repeated", func(s string) error {
		o.env = append(o.env, s)
		return nil
	})
	fs.Func("copy", "copy `HOST[:GUEST]` into the guest; may be repeated", o.addCopy)
	fs.Func("fetch", "bring `GUEST:HOST` back; may be repeated", pairs(o.fetch, ":"))
	fs.BoolVar(&o.verbose, "v", false, "show the kernel log")
}

// addCopy takes HOST or HOST:GUEST.
func (o *options) addCopy(s string) error {
	host, guest, ok := strings.Cut(s, ":")
	host, err := filepath.Abs(host)
	if err != nil {
		return err
	}
	if !ok {
		guest = host
	}
	o.copy[guest] = host
	return nil
}

// pairs takes what is on both sides of sep.
func pairs(to map[string]string, sep string) func(string) error {
	return func(s string) error {
		left, right, ok := strings.Cut(s, sep)
		if !ok || left == "" || right == "" {
			return fmt.Errorf("want A%sB", sep)
		}
		to[left] = right
		return nil
	}
}

func list(to *[]string) func(string) error {
	return func(s string) error {
		for w := range strings.SplitSeq(s, ",") {
			if w != "" {
				*to = append(*to, w)
			}
		}
		return nil
	}
}

func words(to *[]string) func(string) error {
	return func(s string) error {
		*to = append(*to, strings.Fields(s)...)
		return nil
	}
}
