package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kallscope/kallscope/internal/vm"
)

// goTestDefault is the -test.timeout that the go command passes when the user
// gave none: not a wish, so vm's own default holds.
const goTestDefault = 10 * time.Minute

// bootTime is what a guest may take beside the tests themselves.
const bootTime = 30 * time.Second

// outputFlags of a test binary name files that it writes, relative to
// -test.outputdir or else the working directory.
var outputFlags = []string{
	"blockprofile", "coverprofile", "cpuprofile", "memprofile",
	"mutexprofile", "testlogfile", "trace",
}

// testFlags returns the flags of a test binary, without "test.".
func testFlags(args []string) map[string]string {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if rest, ok := strings.CutPrefix(name, "test."); ok && a[0] == '-' {
			flags[rest] = value
		}
	}
	return flags
}

// testTimeout returns the time limit that fits -test.timeout, zero if there is
// none. The tests' own limit should come first: it shows where they hang.
func testTimeout(args []string) time.Duration {
	d, err := time.ParseDuration(testFlags(args)["timeout"])
	if err != nil || d <= 0 || d == goTestDefault {
		return 0
	}
	return d + bootTime
}

// addTestFiles copies testdata in, and brings back what the flags of a test
// binary make it write.
func addTestFiles(cmd *vm.Cmd) {
	testdata := filepath.Join(cmd.Dir, "testdata")
	if info, err := os.Stat(testdata); err == nil && info.IsDir() {
		cmd.Files[testdata] = testdata
	}
	flags := testFlags(cmd.Args[1:])
	for _, name := range outputFlags {
		if file := flags[name]; file != "" {
			file = outputPath(cmd.Dir, flags["outputdir"], file)
			cmd.FetchOptional[file] = file
		}
	}
	if dir := flags["gocoverdir"]; dir != "" {
		dir = outputPath(cmd.Dir, "", dir)
		cmd.Files[dir], cmd.FetchOptional[dir] = dir, dir
	}
}

func outputPath(wd, outputDir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(resolve(wd, outputDir), file)
}

func resolve(wd, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(wd, dir)
}

// passOn are the environment variables that go along, by prefix.
var passOn = []string{"KALLSCOPE_", "GO", "NO_COLOR=", "TERM="}

// environment returns the guest's environment: its own defaults, what goes
// along from the host's, and what -env adds.
func environment(o options, host []string) []string {
	env := vm.DefaultEnv(o.uid)
	for _, kv := range host {
		if slices.ContainsFunc(passOn, func(p string) bool { return strings.HasPrefix(kv, p) }) {
			env = append(env, kv)
		}
	}
	for _, kv := range o.env {
		if !strings.Contains(kv, "=") {
			kv += "=" + os.Getenv(kv)
		}
		env = append(env, kv)
	}
	return env
}
