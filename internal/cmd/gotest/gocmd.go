package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// eachLine calls f with every line of in, of any length.
func eachLine(in io.Reader, f func(line []byte)) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 {
			f(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// goCommand returns a go command that ends in order when ctx does.
func goCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goOutput runs a go command and returns its standard output.
func goOutput(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := goCommand(ctx, env, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// goTest runs go test -json and reports its events. The error is not nil when
// it could not be run; the report knows of failed tests.
func (r *report) goTest(ctx context.Context, env []string, args ...string) error {
	cmd := goCommand(ctx, env, append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := r.read(out); err != nil {
		return err
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.mu.Lock()
		r.broken = true
		r.mu.Unlock()
		return ctx.Err()
	}
	return err
}

// runTests is gotest run.
func runTests(ctx context.Context, args []string, w io.Writer) error {
	r := newReport(w)
	if err := r.goTest(ctx, nil, args...); err != nil {
		return err
	}
	r.close("tests")
	if !r.ok() {
		return errFailed
	}
	return nil
}
