// Kallscope finds and watches Linux kernel functions.
//
//	kallscope list    'tcp_*'             the functions that match
//	kallscope resolve 'syscall:openat'    id, name and address, for programs
//	kallscope count   'tcp_*' -d 5        count calls
//	kallscope snapshot -o FILE            this kernel's facts, for use elsewhere
//	kallscope features                    what this kernel can do
//	kallscope bench   resolve             measure ways to find functions
//
// Exit status: 0 done, 1 nothing matched, 2 wrong usage or an error, 130
// interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitDone        = 0
	exitNoMatch     = 1
	exitError       = 2
	exitInterrupted = 130
)

// gcPercent keeps the process small beside the kernel it watches: the tables
// are read once and stay.
const gcPercent = 10

// Errors that only choose an exit status: what there was to say is said.
var (
	errNoMatch     = errors.New("nothing matched")
	errInterrupted = errors.New("interrupted")
)

func main() {
	debug.SetGCPercent(gcPercent)
	os.Exit(run(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// stdio is data in, data out and speech.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// run is the whole program.
func run(args []string, s stdio) int {
	cmd := newRoot(s)
	cmd.SetArgs(args)
	err := cmd.Execute()
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errNoMatch):
		return exitNoMatch
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(s.err, "interrupted before everything was attached; nothing stays attached")
		return exitInterrupted
	}
	fmt.Fprintf(s.err, "kallscope: %v\n", err)
	return exitError
}

func newRoot(s stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "kallscope",
		Short: "Find and watch Linux kernel functions at scale",
		Long: `Find and watch Linux kernel functions at scale.

Patterns, the same for every command:
  tcp_*                    glob, in vmlinux and all modules
  /^tcp_(send|recv)msg$/   regular expression
  kvm:vmx_*  vmlinux:foo   in one module; only in the kernel image
  syscall:openat           system call, without the architecture's prefix
  #1234  nf_tables#77      BTF id
  0xffffffff81000000       address
  !tcp_*                   exclude (or -x)

Exit status: 0 done, 1 nothing matched, 2 error, 130 interrupted.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; see 'kallscope --help'", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(newList(s), newResolve(s), newCount(s), newSnapshot(s), newFeatures(s), newWhy(s), newBench(s))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	return root
}

// version returns the module's version, as built.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
