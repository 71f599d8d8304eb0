package kernels

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Packages makes dir, in which packages of a suite are unpacked with all that
// they depend on, nothing installed, and returns what was unpacked
// (NAME_VERSION_ARCHITECTURE). It is for programs that run in guests beside
// ours. If dir is there already, it must not be used.
func Packages(ctx context.Context, dir, suite string, names ...string) (unpacked []string, err error) {
	cache, err := Dir()
	if err != nil {
		return nil, err
	}
	a, err := newAPT(filepath.Join(cache, ".apt", suite), suite)
	if err != nil {
		return nil, err
	}
	if err := a.update(ctx, suite); err != nil {
		return nil, err
	}
	all, err := a.closure(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("suite %s: %w", suite, err)
	}
	debs, err := os.MkdirTemp("", "kallscope-debs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(debs)
	if err := a.download(ctx, debs, all); err != nil {
		return nil, fmt.Errorf("suite %s: %w", suite, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return unpack(ctx, debs, dir)
}

// closure returns the packages with what they depend on, as apt would install
// them on an empty machine.
func (a *apt) closure(ctx context.Context, names []string) ([]string, error) {
	text, err := a.run(ctx, a.dir, "apt-get", append([]string{"install", "--simulate", "--no-install-recommends"}, names...)...)
	if err != nil {
		return nil, err
	}
	return simulated(text), nil
}

// simulated returns the names in lines such as "Inst zlib1g (1:1.3.1-1 …".
func simulated(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Inst" {
			names = append(names, f[1])
		}
	}
	return names
}
