package vm

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/kallscope/kallscope/internal/vm/guest"
)

// initPackage is the program that is built when this one cannot be init.
const initPackage = "github.com/kallscope/kallscope/internal/cmd/guestinit"

// bothSides is set when this program has called GuestMain.
var bothSides atomic.Bool

// GuestMain makes this program able to be the guest's init. Call it before
// anything else in main or TestMain. Inside a guest it does not return;
// elsewhere it returns at once, and guests started by this process use the
// running program as their init if it is statically linked.
func GuestMain() {
	guest.Main()
	bothSides.Store(true)
}

// initProgram returns the host path of the guest's init.
func (c *Cmd) initProgram() (string, error) {
	if c.Init != "" {
		return c.Init, checkStatic(c.Init)
	}
	if bothSides.Load() {
		self, err := os.Executable()
		if err == nil && checkStatic(self) == nil {
			return self, nil
		}
	}
	return buildInit()
}

// buildInit builds guestinit. The go command's own cache makes every build but
// the first take a fifth of a second.
func buildInit() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build init: %w", err)
	}
	out := filepath.Join(cache, "kallscope", "guestinit")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, initPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build init: %w\n%s(run inside the kallscope module, or call vm.GuestMain in your main)", err, text)
	}
	return out, nil
}

// checkStatic makes sure that file is a program that a guest without
// libraries can run.
func checkStatic(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		if _, ok := errors.AsType[*elf.FormatError](err); ok {
			return fmt.Errorf("%s: not a Linux program: %w", file, err)
		}
		return err
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return fmt.Errorf("%s: built for %v, the guest is x86-64 (build with GOARCH=amd64)", file, f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s: dynamically linked, and the guest has no libraries (build with CGO_ENABLED=0 or -static)", file)
		}
	}
	return nil
}
