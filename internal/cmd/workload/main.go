//go:build linux

// Without these the Go runtime reads the CPU limit of the control group with
// pread64 now and then, with them once, at the start, if there is one.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Workload gives a kernel something to do: an exact number of system calls, to
// check counts against, or a mixed load for some time.
//
//	workload -getppid N         N calls of getppid from one thread
//	workload -reads N FILE      N calls of pread64, of one byte each, from one thread
//	workload -forks N           N times fork, exec and wait
//	workload -net N             N messages there and back, by TCP and by UDP, over loopback
//	workload -d 5s              all of these, side by side, for some time
//
// What is given together runs one after the other, in this order. At the end it
// prints its process id and what it did, such as "pid 87 getppid 10000", on one
// line. Exit status: 0 done, 2 wrong usage or an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "workload: %v\n", err)
	os.Exit(2)
}

type options struct {
	getppid, reads, forks, net int
	file                       string
	duration                   time.Duration
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("workload", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.getppid, "getppid", -1, "call getppid `N` times from one thread")
	fs.IntVar(&o.reads, "reads", -1, "read a byte of FILE `N` times with pread64 from one thread")
	fs.IntVar(&o.forks, "forks", -1, "fork, exec and wait `N` times")
	fs.IntVar(&o.net, "net", -1, "send `N` messages there and back by TCP and UDP")
	fs.DurationVar(&o.duration, "d", 0, "do all of it, mixed, for this `time`")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.file = fs.Arg(0)
	switch {
	case fs.NFlag() == 0:
		return o, errors.New("nothing to do (-h shows the flags)")
	case fs.NArg() > 1 || (fs.NArg() == 1) != (o.reads >= 0):
		return o, errors.New("-reads takes one FILE, and nothing else takes arguments")
	}
	return o, nil
}

func run(args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	report := []string{fmt.Sprintf("pid %d", os.Getpid())}
	for _, step := range []struct {
		name string
		n    int
		do   func(n int) error
	}{
		{"getppid", o.getppid, getppid},
		{"reads", o.reads, func(n int) error { return reads(n, o.file) }},
		{"forks", o.forks, forks},
		{"net", o.net, messages},
	} {
		if step.n < 0 {
			continue
		}
		if err := step.do(step.n); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		report = append(report, fmt.Sprintf("%s %d", step.name, step.n))
	}
	if o.duration > 0 {
		did, err := mixed(o.duration)
		if err != nil {
			return err
		}
		report = append(report, did...)
	}
	_, err = fmt.Fprintln(stdout, strings.Join(report, " "))
	return err
}
