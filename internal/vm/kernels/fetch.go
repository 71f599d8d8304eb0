package kernels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Result is what [Fetch] did.
type Result struct {
	Manifest
	// New is set when the kernel was not there before.
	New bool
}

// Options for [Fetch].
type Options struct {
	// Update looks for a newer kernel even if one is in the cache.
	Update bool

	// setUp replaces newAPT in tests.
	setUp func(dir, suite string) (*apt, error)
}

// release is a kernel that a suite has.
type release struct {
	// name of the release, version of its package
	name, version string
	// packages to unpack
	packages []string
}

// Fetch puts the newest kernel of a catalog name into the cache and returns
// it. A kernel already there is returned without using the network, unless
// Update is set. Packages are fetched and verified by apt with lists of its
// own; nothing is installed, and root is not needed.
func Fetch(ctx context.Context, name string, opts Options) (Result, error) {
	src, err := Lookup(name)
	if err != nil {
		return Result{}, err
	}
	if !opts.Update {
		m, err := newest(name)
		if err == nil {
			return Result{Manifest: m}, nil
		}
		if !errors.Is(err, ErrNotFetched) {
			return Result{}, err
		}
	}
	if opts.setUp == nil {
		opts.setUp = newAPT
	}
	res, err := fetch(ctx, src, opts)
	if err != nil {
		return Result{}, fmt.Errorf("fetch kernel %s: %w", name, err)
	}
	return res, nil
}

func fetch(ctx context.Context, src Source, opts Options) (Result, error) {
	dir, err := Dir()
	if err != nil {
		return Result{}, err
	}
	a, err := opts.setUp(filepath.Join(dir, ".apt", src.Suite), src.Suite)
	if err != nil {
		return Result{}, err
	}
	if err := a.update(ctx, src.Suite); err != nil {
		return Result{}, err
	}
	rel, err := a.follow(ctx, src)
	if err != nil {
		return Result{}, err
	}
	final := filepath.Join(dir, src.Name, rel.name+"_"+rel.version)
	if m, err := readManifest(filepath.Join(final, manifestName)); err == nil {
		return Result{Manifest: m}, nil
	}
	m, err := install(ctx, a, final, rel)
	if err != nil {
		return Result{}, err
	}
	m.Name, m.Suite = src.Name, src.Suite
	err = m.commit(final)
	return Result{Manifest: m, New: true}, err
}

// follow goes from the meta package to the kernel's own packages.
func (a *apt) follow(ctx context.Context, src Source) (release, error) {
	meta, err := a.show(ctx, src.Meta)
	if err != nil {
		return release{}, fmt.Errorf("suite %s: %w", src.Suite, err)
	}
	image, ok := imagePackage(meta["depends"])
	if !ok {
		return release{}, fmt.Errorf("suite %s: %s depends on no kernel, but on %q", src.Suite, src.Meta, meta["depends"])
	}
	info, err := a.show(ctx, image)
	if err != nil {
		return release{}, fmt.Errorf("suite %s: %w", src.Suite, err)
	}
	rel := release{name: strings.TrimPrefix(image, "linux-image-"), version: info["version"], packages: []string{image}}
	parts, err := a.parts(ctx, rel.name)
	if len(parts) > 0 {
		rel.packages = parts
	}
	return rel, err
}

// parts returns the packages that replace the image package, which is empty
// from 7.3 on. Older kernels have none.
func (a *apt) parts(ctx context.Context, release string) ([]string, error) {
	var pkgs []string
	for _, p := range []string{"linux-binary-", "linux-modules-", "linux-base-"} {
		_, err := a.show(ctx, p+release)
		if errors.Is(err, errNoPackage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p+release)
	}
	return pkgs, nil
}

// imagePackage returns the kernel in the Depends field of a meta package, such
// as "linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)".
func imagePackage(depends string) (string, bool) {
	for d := range strings.SplitSeq(depends, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(d), " ")
		if rest, ok := strings.CutPrefix(name, "linux-image-"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return name, true
		}
	}
	return "", false
}

// install downloads and unpacks a kernel beside its final folder. The caller
// completes and commits the manifest.
func install(ctx context.Context, a *apt, final string, rel release) (m Manifest, err error) {
	parent := filepath.Dir(final)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return m, err
	}
	part, err := os.MkdirTemp(parent, ".part-")
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(part)
		}
	}()
	debs := filepath.Join(part, "debs")
	if err := os.Mkdir(debs, 0o755); err != nil {
		return m, err
	}
	if err := a.download(ctx, debs, rel.packages); err != nil {
		return m, err
	}
	packages, err := unpack(ctx, debs, part)
	if err != nil {
		return m, err
	}
	m, err = newManifest(part)
	m.Packages = packages
	return m, err
}

// unpack unpacks all packages in debs into dir and returns their names.
func unpack(ctx context.Context, debs, dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", f, dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("unpack %s: %w\n%s", filepath.Base(f), err, out)
		}
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".deb"))
	}
	slices.Sort(names)
	return names, nil
}

// commit writes the manifest and gives the folder its final name, at once. If
// another process was faster, its folder stays.
func (m *Manifest) commit(final string) error {
	part := m.dir
	err := m.write()
	if err == nil {
		// MkdirTemp made it private.
		err = os.Chmod(part, 0o755)
	}
	if err == nil {
		err = os.Rename(part, final)
	}
	m.dir = final
	if err == nil {
		return nil
	}
	os.RemoveAll(part)
	if _, there := readManifest(filepath.Join(final, manifestName)); there == nil {
		return nil
	}
	return err
}
