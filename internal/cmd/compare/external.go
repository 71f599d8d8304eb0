//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pollEvery is how often the runner looks whether a tool is attached.
	pollEvery = 5 * time.Millisecond
	// manyFunctions tells the link that matters from those by which tools try
	// what the kernel can do.
	manyFunctions = 100
	// looks is how often in a row, every 10 ms, a tool must be seen asleep
	// before it gets SIGINT: bpftrace misses one that comes before it waits for
	// events.
	looks = 50
	// giveUp ends a run that hangs.
	giveUp = 3 * time.Minute
)

// external returns the run of a tool that attaches until it gets SIGINT.
func external(argv func(pattern string) []string) func(*round) error {
	return func(r *round) error {
		args := argv(r.pattern)
		cmd := exec.Command(args[0], args[1:]...)
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		s, err := attachAndStop(cmd, r.first)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output.Bytes())
		}
		return r.add(s)
	}
}

func attachAndStop(cmd *exec.Cmd, count bool) (s sample, err error) {
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if s.Functions, err = waitAttached(ended); err != nil {
		_ = cmd.Process.Kill()
		return s, err
	}
	s.Attach = time.Since(begin).Seconds()
	s.RSS = peakRSS(cmd.Process.Pid)
	if count {
		if s.Enabled, err = enabledFunctions(); err != nil {
			return s, err
		}
	}
	waitAsleep(cmd.Process.Pid)
	begin = time.Now()
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		return s, err
	}
	select {
	case err = <-ended:
	case <-time.After(giveUp):
		_ = cmd.Process.Kill()
		err = fmt.Errorf("runs on %v after SIGINT", giveUp)
	}
	s.Stop = time.Since(begin).Seconds()
	return s, err
}

// waitAttached waits until there is a link with many functions.
func waitAttached(ended chan error) (int, error) {
	deadline := time.After(giveUp)
	for poll := time.Tick(pollEvery); ; {
		select {
		case err := <-ended:
			ended <- err
			return 0, fmt.Errorf("ended before it was attached: %w", errors.Join(errors.New("no link"), err))
		case <-deadline:
			return 0, fmt.Errorf("not attached after %v", giveUp)
		case <-poll:
			if n := largestLink(); n >= manyFunctions {
				return n, nil
			}
		}
	}
}

func waitAsleep(pid int) {
	deadline := time.Now().Add(giveUp)
	for n := 0; n < looks && time.Now().Before(deadline); n++ {
		time.Sleep(10 * time.Millisecond)
		if !asleep(pid) {
			n = 0
		}
	}
}

// asleep reports whether the first thread of a process waits for something, and
// false when there is no process.
func asleep(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// pid (name) state ...
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] == 'S'
}

var vmHWM = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peakRSS returns KiB. The figure of wait4(2) will not do: it begins with the
// memory of this process, from which the tool was started.
func peakRSS(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if m := vmHWM.FindSubmatch(status); m != nil {
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	return 0
}
