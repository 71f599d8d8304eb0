// Package vmtest helps tests that need a guest.
package vmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kallscope/kallscope/internal/vm"
	"github.com/kallscope/kallscope/internal/vm/kernels"
)

// NeedEnv names the environment variable that makes a test fail, not skip,
// when there is no emulator or no kernel.
const NeedEnv = "KALLSCOPE_NEED_VM"

// Kernel returns the kernel of a name (see [kernels.Find]). The test is skipped
// if it cannot be booted here, or fails if $KALLSCOPE_NEED_VM is 1; in short
// mode it is skipped anyway.
func Kernel(tb testing.TB, name string) vm.Kernel {
	tb.Helper()
	if testing.Short() {
		tb.Skip("boots a guest: not in short mode")
	}
	if _, err := vm.FindQEMU(); err != nil {
		missing(tb, err)
	}
	k, err := kernels.Find(name)
	if err != nil {
		missing(tb, err)
	}
	return k
}

func missing(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv(NeedEnv) == "1" {
		tb.Fatalf("%s=1, but: %v", NeedEnv, err)
	}
	tb.Skipf("needs a guest: %v", err)
}

// Build builds the Go package at path as a static program for guests and
// returns its file.
func Build(tb testing.TB, path string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", out, path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", path, err, text)
	}
	return out
}
