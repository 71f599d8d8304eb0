package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-quicktest/qt"
)

func TestHelpFits(t *testing.T) {
	k := build(t)
	qt.Assert(t, qt.IsNil(k.walk(func(command []string, help string) error {
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("kallscope %s --help: %d columns: %s", strings.Join(command, " "), n, line)
			}
		}
		return nil
	})))
}

// What is typed wrongly is answered with where to look.
func TestWrongUsageNamesHelp(t *testing.T) {
	k := build(t)
	qt.Assert(t, qt.IsNil(k.walk(func(command []string, _ string) error {
		path := strings.Join(append([]string{"kallscope"}, command...), " ")
		checkWrong(t, k, append(command, "--no-such-flag"), "see '"+path+" --help'")
		return nil
	})))
	checkWrong(t, k, []string{"no-such-command"}, "kallscope --help")
}

func checkWrong(t *testing.T, k *kallscopeBinary, args []string, want string) {
	t.Helper()
	cmd := exec.Command(k.path(), args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("%q: %v, want exit status 2", args, err)
	}
	qt.Check(t, qt.StringContains(stderr.String(), want), qt.Commentf("%q", args))
	qt.Check(t, qt.Equals(stdout.String(), ""), qt.Commentf("%q", args))
}

func build(t *testing.T) *kallscopeBinary {
	t.Helper()
	k, err := buildKallscope(root)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(k.remove)
	return k
}
