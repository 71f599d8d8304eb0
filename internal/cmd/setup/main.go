// Setup installs what the project's targets need from Debian's packages.
//
//	setup guest   run guests: QEMU
//	setup bpf     compile the BPF programs: clang and its headers
//	setup test    run the tests: a C compiler for the race detector, cpio
//
// What is there already costs a look. What is missing is installed by root with
// apt; anyone else is told the command. Exit status: 0 all is there, 2 it is not.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// need is one thing that must be there: a program in PATH, or a file.
type need struct {
	what    string
	pkg     string // Debian's package that has it
	because string
}

var needs = map[string][]need{
	"guest": {
		{"qemu-system-x86_64", "qemu-system-x86", "runs the guests"},
		{"/usr/share/keyrings/debian-archive-keyring.*", "debian-archive-keyring", "checks Debian's kernels"},
	},
	"bpf": {
		{"clang-19", "clang-19", "compiles the BPF programs"},
		{"llvm-strip-19", "llvm-19", "strips the BPF objects"},
		{"/usr/include/bpf/bpf_helpers.h", "libbpf-dev", "has the BPF headers"},
	},
	"test": {
		{"gcc", "gcc", "builds with the race detector"},
		{"/usr/include/stdlib.h", "libc6-dev", "builds with the race detector"},
		{"cpio", "cpio", "reads our archives too"},
	},
}

func main() {
	m := machine{exists: exists, root: os.Geteuid() == 0, run: runQuietly, speak: os.Stderr}
	if err := m.setup(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "setup: %v\n", err)
		os.Exit(2)
	}
}

// machine is what setup touches.
type machine struct {
	exists func(what string) bool
	root   bool
	run    func(name string, args ...string) error
	speak  io.Writer
}

func (m *machine) setup(names []string) error {
	if len(names) == 0 {
		return errors.New("usage: setup NAME..., guest, bpf or test")
	}
	var missing []need
	for _, name := range names {
		list, ok := needs[name]
		if !ok {
			return fmt.Errorf("%q: use guest, bpf or test", name)
		}
		for _, n := range list {
			if !m.exists(n.what) {
				missing = append(missing, n)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages(missing)...)
	switch {
	case !m.exists("apt-get"):
		return fmt.Errorf("missing %s; install it with your system's packages", list(missing))
	case !m.root:
		return fmt.Errorf("missing %s; run as root: apt-get %s", list(missing), strings.Join(install, " "))
	}
	fmt.Fprintf(m.speak, "setup: installing %s\n", strings.Join(packages(missing), ", "))
	// Another apt may be at work, right after a machine has started.
	const wait = "-oDPkg::Lock::Timeout=300"
	if err := m.run("apt-get", wait, "update"); err != nil {
		return err
	}
	if err := m.run("apt-get", append([]string{wait}, install...)...); err != nil {
		return err
	}
	for _, n := range missing {
		if !m.exists(n.what) {
			return fmt.Errorf("%s is missing although package %s is installed", n.what, n.pkg)
		}
	}
	return nil
}

func packages(missing []need) []string {
	var pkgs []string
	for _, n := range missing {
		pkgs = append(pkgs, n.pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

func list(missing []need) string {
	var s []string
	for _, n := range missing {
		s = append(s, fmt.Sprintf("%s (%s)", n.what, n.because))
	}
	return strings.Join(s, ", ")
}
