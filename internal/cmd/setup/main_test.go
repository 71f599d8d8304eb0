package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// fake is a machine with some packages, on which apt can install more.
type fake struct {
	machine
	has, ran []string
	broken   bool
	said     strings.Builder
}

func newFake(root bool, has ...string) *fake {
	f := &fake{has: has}
	f.machine = machine{root: root, speak: &f.said, exists: func(what string) bool { return slices.Contains(f.has, what) }, run: f.apt}
	return f
}

func (f *fake) apt(name string, args ...string) error {
	f.ran = append(f.ran, name+" "+strings.Join(args[1:], " "))
	if f.broken {
		return errors.New("apt-get: exit status 100")
	}
	for _, list := range needs {
		for _, n := range list {
			if slices.Contains(args, n.pkg) {
				f.has = append(f.has, n.what)
			}
		}
	}
	return nil
}

// idle makes apt do nothing.
func idle(f *fake) *fake {
	f.run = func(string, ...string) error { return nil }
	return f
}

func TestSetupAllThere(t *testing.T) {
	f := newFake(false, "gcc", "/usr/include/stdlib.h", "cpio")
	qt.Assert(t, qt.IsNil(f.setup([]string{"test"})))
	qt.Check(t, qt.HasLen(f.ran, 0))
	qt.Check(t, qt.Equals(f.said.String(), ""))
}

func TestSetupInstalls(t *testing.T) {
	f := newFake(true, "apt-get", "gcc", "/usr/include/bpf/bpf_helpers.h")
	qt.Assert(t, qt.IsNil(f.setup([]string{"test", "bpf"})))
	qt.Check(t, qt.DeepEquals(f.ran, []string{
		"apt-get update",
		"apt-get install -y --no-install-recommends clang-19 cpio libc6-dev llvm-19",
	}))
	qt.Check(t, qt.Equals(f.said.String(), "setup: installing clang-19, cpio, libc6-dev, llvm-19\n"))
}

func TestSetupFails(t *testing.T) {
	qemuOnly := []string{"apt-get", "qemu-system-x86_64"}
	for _, tt := range []struct {
		name string
		fake *fake
		args []string
		want string
	}{
		{"none", newFake(true), nil, "usage: .*"},
		{"unknown", newFake(true), []string{"gpu"}, `"gpu": use guest, bpf or test`},
		{"not root", newFake(false, qemuOnly...), []string{"guest"}, `missing /usr/share/keyrings/.*; run as root: apt-get install .* debian-archive-keyring`},
		{"no apt", newFake(true), []string{"guest"}, `missing qemu-system-x86_64 \(runs the guests\), .*; install it with your system's packages`},
		{"still missing", idle(newFake(true, qemuOnly...)), []string{"guest"}, ".* is missing although package debian-archive-keyring is installed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			qt.Check(t, qt.ErrorMatches(tt.fake.setup(tt.args), tt.want))
		})
	}
	f := newFake(true, qemuOnly...)
	f.broken = true
	qt.Check(t, qt.ErrorMatches(f.setup([]string{"guest"}), "apt-get: exit status 100"))
	qt.Check(t, qt.HasLen(f.ran, 1))
}

func TestExists(t *testing.T) {
	qt.Check(t, qt.IsTrue(exists("go")))
	qt.Check(t, qt.IsTrue(exists("/dev/nul*")))
	qt.Check(t, qt.IsFalse(exists("no-such-program")))
	qt.Check(t, qt.IsFalse(exists("/no/such/file")))
}

func TestRunQuietly(t *testing.T) {
	qt.Check(t, qt.IsNil(runQuietly("go", "version")))
	qt.Check(t, qt.ErrorMatches(runQuietly("go", "no-such-command"), `(?s).*go no-such-command: exit status 2\n.*unknown command.*`))
}
