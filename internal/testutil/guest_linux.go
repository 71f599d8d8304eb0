package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Guest skips a test that needs a kernel of its own, unless it runs in a guest:
//
//	go test -exec 'vmrun -kernel 6.12' ./attach
func Guest(tb testing.TB) {
	tb.Helper()
	cmdline, _ := os.ReadFile("/proc/cmdline")
	if !strings.Contains(string(cmdline), "KALLSCOPE_VM=1") {
		tb.Skip("runs in a guest only: go test -exec 'vmrun -kernel 6.12'")
	}
}

// Release returns the version of the guest's kernel, as in "6.12".
func Release(tb testing.TB) string {
	tb.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	must(tb, err)
	major, rest, _ := strings.Cut(string(release), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// NotOn skips a test for lack of something, but fails where the kernel is one
// of those that have it: a skip is a claim.
func NotOn(tb testing.TB, missing error, releases ...string) {
	tb.Helper()
	for _, r := range releases {
		if Release(tb) == r {
			tb.Fatalf("this kernel (%s) should have it: %v", r, missing)
		}
	}
}

// Cover makes a file unreadable until the test ends: an empty folder is mounted
// over it.
func Cover(tb testing.TB, path string) {
	tb.Helper()
	info, err := os.Stat(path)
	must(tb, err)
	over := tb.TempDir()
	if !info.IsDir() {
		over = filepath.Join(over, "empty")
		must(tb, os.WriteFile(over, nil, 0o600))
	}
	must(tb, unix.Mount(over, path, "", unix.MS_BIND, ""))
	tb.Cleanup(func() { must(tb, unix.Unmount(path, 0)) })
}

// Sysctl sets a kernel parameter until the test ends.
func Sysctl(tb testing.TB, name, value string) {
	tb.Helper()
	path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
	old, err := os.ReadFile(path)
	must(tb, err)
	must(tb, os.WriteFile(path, []byte(value), 0o600))
	tb.Cleanup(func() { must(tb, os.WriteFile(path, old, 0o600)) })
}
