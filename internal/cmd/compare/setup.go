//go:build linux

package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kallscope/kallscope/internal/vm/kernels"
)

//go:embed libbpf/*.c
var libbpfSource embed.FS

// Where things are in the guest.
const (
	guestRunner    = "/compare/compare"
	guestKallscope = "/compare/kallscope"
	guestMulti     = "/compare/multi"
	guestMultiBPF  = "/compare/multi.bpf.o"
	guestBPFTrace  = "/usr/bin/bpftrace"
)

// root is an unpacked set of Debian packages. It is never updated: remove the
// folder for newer ones.
type root struct {
	name, suite string
	packages    []string
	shown       string // the package whose version is shown
}

var (
	bpftraceRoot = root{"bpftrace", "bookworm", []string{"bpftrace"}, "bpftrace"}
	// Bookworm's own libbpf, 1.1, cannot attach to "*": it passes on names that
	// have no site. A static program needs the C library of the same suite.
	libbpfRoot = root{"libbpf", "trixie", []string{
		"libbpf-dev", "libelf-dev", "zlib1g-dev", "libc6-dev", "libgcc-14-dev",
	}, "libbpf-dev"}
	// Trixie's libelf.a lacks a part of itself, eu_search_tree_init.
	libelfRoot = root{"libelf", "bookworm", []string{"libelf-dev"}, "libelf-dev"}
)

// setup builds and fetches what the guest needs and returns the files to copy,
// and the versions of the others.
func setup(ctx context.Context, stderr io.Writer) (files map[string]string, versions []string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(cache, "kallscope", "compare")
	files = map[string]string{
		guestRunner:    filepath.Join(dir, "bin", "compare"),
		guestKallscope: filepath.Join(dir, "bin", "kallscope"),
		guestMulti:     filepath.Join(dir, "bin", "multi"),
		guestMultiBPF:  filepath.Join(dir, "bin", "multi.bpf.o"),
	}
	if err := buildGo(ctx, filepath.Join(dir, "bin")); err != nil {
		return nil, nil, err
	}
	for _, r := range []root{bpftraceRoot, libbpfRoot, libelfRoot} {
		version, err := r.unpack(ctx, dir, stderr)
		if err != nil {
			return nil, nil, err
		}
		if r.name == libelfRoot.name {
			continue
		}
		versions = append(versions, fmt.Sprintf("%s %s (%s)", r.name, version, r.suite))
	}
	if err := buildMulti(ctx, dir, filepath.Join(dir, "bin")); err != nil {
		return nil, nil, err
	}
	return files, versions, addProgram(files, filepath.Join(dir, bpftraceRoot.name), guestBPFTrace)
}

// buildGo builds this program and kallscope, static.
func buildGo(ctx context.Context, dir string) error {
	const module = "github.com/kallscope/kallscope/"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", dir+"/", module+"cmd/kallscope", module+"internal/cmd/compare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	return command(cmd)
}

// buildMulti compiles the program of libbpf to dir, against the packages below
// roots.
func buildMulti(ctx context.Context, roots, dir string) error {
	sysroot := filepath.Join(roots, libbpfRoot.name)
	libelf := filepath.Join(roots, libelfRoot.name, "usr/lib/x86_64-linux-gnu/libelf.a")
	src, err := os.MkdirTemp("", "kallscope-multi-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(src)
	if err := os.CopyFS(src, libbpfSource); err != nil {
		return err
	}
	src = filepath.Join(src, "libbpf")
	include := filepath.Join(sysroot, "usr/include")
	bpf := exec.CommandContext(ctx, "clang-19", "-target", "bpf", "-O2", "-g", "-nostdinc",
		"-isystem", include, "-isystem", filepath.Join(include, "x86_64-linux-gnu"),
		"-c", filepath.Join(src, "multi.bpf.c"), "-o", filepath.Join(dir, "multi.bpf.o"))
	if err := command(bpf); err != nil {
		return err
	}
	return command(exec.CommandContext(ctx, "clang-19", "--sysroot="+sysroot, "-O2", "-static",
		filepath.Join(src, "multi.c"), "-o", filepath.Join(dir, "multi"), "-lbpf", libelf, "-lz"))
}

func command(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// unpack makes the folder of the packages below dir, unless it is there, and
// returns the version of the package that matters.
func (r root) unpack(ctx context.Context, dir string, stderr io.Writer) (string, error) {
	final := filepath.Join(dir, r.name)
	list := final + ".json"
	var unpacked []string
	data, err := os.ReadFile(list)
	if err == nil {
		if err := json.Unmarshal(data, &unpacked); err != nil {
			return "", fmt.Errorf("%s: %w (remove it and start again)", list, err)
		}
		return r.version(unpacked), nil
	}
	fmt.Fprintf(stderr, "fetching %s from %s\n", strings.Join(r.packages, ", "), r.suite)
	if err := os.RemoveAll(final); err != nil {
		return "", err
	}
	if unpacked, err = kernels.Packages(ctx, final, r.suite, r.packages...); err != nil {
		return "", err
	}
	if data, err = json.MarshalIndent(unpacked, "", "\t"); err != nil {
		return "", err
	}
	return r.version(unpacked), os.WriteFile(list, append(data, '\n'), 0o644)
}

// version finds that of the package which is shown in names such as
// "libbpf-dev_1%3a1.5.0-3_amd64", and leaves out the epoch.
func (r root) version(unpacked []string) string {
	for _, p := range unpacked {
		if rest, ok := strings.CutPrefix(p, r.shown+"_"); ok {
			version, _, _ := strings.Cut(rest, "_")
			if plain, err := url.PathUnescape(version); err == nil {
				version = plain
			}
			if _, plain, ok := strings.Cut(version, ":"); ok {
				version = plain
			}
			return version
		}
	}
	return "of unknown version"
}
