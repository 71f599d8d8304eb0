package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// exists says whether a program is in PATH, or a file matches a pattern.
func exists(what string) bool {
	if filepath.IsAbs(what) {
		found, _ := filepath.Glob(what)
		return len(found) > 0
	}
	_, err := exec.LookPath(what)
	return err == nil
}

// runQuietly runs a command that asks nothing; its output is shown only if it
// fails.
func runQuietly(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
