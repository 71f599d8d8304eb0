package vm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/vm"
	"github.com/kallscope/kallscope/internal/vm/kernels"
	"github.com/kallscope/kallscope/internal/vm/vmtest"
)

// command returns a Cmd for the payload with a modest limit.
func command(t *testing.T, kernel string, args ...string) *vm.Cmd {
	t.Helper()
	k := vmtest.Kernel(t, kernel)
	cmd := vm.CommandContext(t.Context(), k, vmtest.Build(t, "./testdata/payload"), args...)
	cmd.Timeout = 2 * time.Minute
	return cmd
}

// TestKernels boots the whole matrix.
func TestKernels(t *testing.T) {
	for _, name := range kernels.Names() {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, name, "hello")
			out, err := cmd.Output()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(string(out), cmd.Kernel.Release+"\n"))
			qt.Assert(t, qt.StringContains(cmd.KernelLog(), "Linux version "+cmd.Kernel.Release))
		})
	}
}

func random(seed byte, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// TestStreams has 5 MB each on standard output and error, 1 MB on standard
// input, a file back, one missing, and an exit status.
func TestStreams(t *testing.T) {
	const size = 5_000_000
	dir := t.TempDir()
	cmd := command(t, "6.12", "mix", "5000000", "/out/sub/file")
	var stdout, stderr bytes.Buffer
	cmd.Stdin = bytes.NewReader(random(3, 1_000_000))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Fetch = map[string]string{"/out/sub": filepath.Join(dir, "back")}
	cmd.FetchOptional = map[string]string{"/nowhere/x": filepath.Join(dir, "x")}

	err := cmd.Run()
	var exit *vm.ExitError
	qt.Assert(t, qt.ErrorAs(err, &exit))
	qt.Assert(t, qt.Equals(exit.Code, 7))
	qt.Assert(t, qt.IsTrue(bytes.Equal(stdout.Bytes(), random(1, size))))
	qt.Assert(t, qt.IsTrue(bytes.Equal(stderr.Bytes(), random(2, size))))
	back, err := os.ReadFile(filepath.Join(dir, "back", "file"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(bytes.Equal(back, random(3, 1_000_000))))
	_, err = os.Stat(filepath.Join(dir, "x"))
	qt.Assert(t, qt.ErrorIs(err, fs.ErrNotExist))
}

// TestSetUp looks at what init has done, on the kernel where the port itself
// needs modules.
func TestSetUp(t *testing.T) {
	host := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(host, "a.txt"), []byte("from the host\n"), 0o644)))
	cmd := command(t, "5.10", "look", "x y", "")
	cmd.Dir = "/some/folder"
	cmd.Env = []string{"A=b c"}
	cmd.UID = 1000
	cmd.Files = map[string]string{"/data": host}
	cmd.Modules = []string{"veth", "nf-tables"}
	cmd.NoMount = []string{"tracefs"}
	cmd.Sysctl = map[string]string{"kernel.kptr_restrict": "1"}
	cmd.Append = []string{"kallscope.unknown=1"}

	out, err := cmd.Output()
	qt.Assert(t, qt.IsNil(err))
	text := string(out)
	for _, want := range []string{
		"uid 1000 gid 1000\n", "wd /some/folder\n", "args [x y ]\n", "env [A=b c]\n",
		"\nveth ", "\nnf_tables ", "\nnfnetlink ", "virtio_console ",
		" /sys/fs/bpf bpf ", " /sys/fs/cgroup cgroup2 ",
		"kptr_restrict: <nil>\n1\n", "flags: <nil>\n0x9\n", "a.txt: <nil>\nfrom the host\n",
	} {
		qt.Check(t, qt.StringContains(text, want))
	}
	qt.Check(t, qt.Not(qt.StringContains(text, "tracefs")))
	qt.Check(t, qt.Not(qt.StringContains(text, "debugfs")))
	qt.Check(t, qt.StringContains(cmd.KernelLog(), "kallscope.unknown=1"))
}

func TestPanic(t *testing.T) {
	cmd := command(t, "6.12", "panic")
	err := cmd.Run()
	var crash *vm.CrashError
	qt.Assert(t, qt.ErrorAs(err, &crash))
	qt.Assert(t, qt.ErrorIs(err, vm.ErrPanic))
	qt.Assert(t, qt.StringContains(err.Error(), "Kernel panic - not syncing: sysrq triggered crash"))
	lines := bytes.Count([]byte(crash.Log), []byte("\n")) + 1
	qt.Assert(t, qt.IsTrue(lines > 10 && lines <= 30), qt.Commentf("%d lines", lines))
}

// TestSignal interrupts the program once it has said that it listens.
func TestSignal(t *testing.T) {
	cmd := command(t, "6.12", "interrupt")
	r, w := io.Pipe()
	cmd.Stdout = w
	qt.Assert(t, qt.IsNil(cmd.Start()))
	lines := bufio.NewScanner(r)
	qt.Assert(t, qt.IsTrue(lines.Scan()))
	qt.Assert(t, qt.Equals(lines.Text(), "ready"))
	<-cmd.Started()
	qt.Assert(t, qt.IsNil(cmd.Signal(os.Interrupt)))
	qt.Assert(t, qt.IsTrue(lines.Scan()))
	qt.Assert(t, qt.Equals(lines.Text(), "interrupt"))
	var exit *vm.ExitError
	qt.Assert(t, qt.ErrorAs(cmd.Wait(), &exit))
	qt.Assert(t, qt.Equals(exit.Code, 130))
}

func TestTimeout(t *testing.T) {
	cmd := command(t, "6.12", "hello")
	cmd.Timeout = time.Second
	err := cmd.Run()
	qt.Assert(t, qt.ErrorIs(err, vm.ErrTimeout))
	qt.Assert(t, qt.ErrorMatches(err, `(?s)guest: timeout: no end after 1s .*`))
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd := vm.CommandContext(ctx, vmtest.Kernel(t, "6.12"), vmtest.Build(t, "./testdata/payload"), "interrupt")
	qt.Assert(t, qt.IsNil(cmd.Start()))
	enough := errors.New("enough")
	cancel(enough)
	qt.Assert(t, qt.ErrorIs(cmd.Wait(), enough))
	<-cmd.Started()
}

// TestNotStarted has init report what goes wrong before the program runs.
func TestNotStarted(t *testing.T) {
	cmd := command(t, "6.12", "hello")
	cmd.Sysctl = map[string]string{"kernel.no_such": "1"}
	err := cmd.Run()
	qt.Assert(t, qt.ErrorMatches(err, `guest: set sysctl kernel.no_such: .*`))
}
