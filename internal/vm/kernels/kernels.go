// Package kernels keeps Debian kernels for guests: it finds those already
// unpacked, and fetches others with apt.
//
//	kernel, err := kernels.Find("6.12")
//	cmd := vm.Command(kernel, "/bin/count")
//
// The kernels are the project's test matrix, see [Catalog]. They live in
// [Dir], one folder per kernel and release, and are never installed.
package kernels

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kallscope/kallscope/internal/vm"
)

// EnvDir names the environment variable that overrides the cache folder.
const EnvDir = "KALLSCOPE_KERNELS"

// ErrNotFetched is wrapped when a kernel of the catalog is not in the cache.
var ErrNotFetched = errors.New("not fetched")

// Source says where a kernel comes from.
type Source struct {
	// Name is what users type.
	Name string
	// Suite of Debian's archive.
	Suite string
	// Meta is the package that depends on the newest kernel.
	Meta string
}

// Catalog is the matrix, oldest first. The cloud flavour has fewer drivers
// and boots fastest; the full one has all modules.
var Catalog = []Source{
	{Name: "5.10", Suite: "bullseye", Meta: "linux-image-cloud-amd64"},
	{Name: "6.1", Suite: "bookworm", Meta: "linux-image-cloud-amd64"},
	{Name: "6.12", Suite: "bookworm-security", Meta: "linux-image-6.12-cloud-amd64"},
	{Name: "6.12-amd64", Suite: "bookworm-security", Meta: "linux-image-6.12-amd64"},
	{Name: "7.3", Suite: "trixie-backports", Meta: "linux-image-cloud-amd64"},
}

// Lookup returns the catalog's entry of a name.
func Lookup(name string) (Source, error) {
	for _, s := range Catalog {
		if s.Name == name {
			return s, nil
		}
	}
	return Source{}, fmt.Errorf("kernel %q: not one of %s", name, strings.Join(Names(), ", "))
}

// Names returns the names in the catalog.
func Names() []string {
	var names []string
	for _, s := range Catalog {
		names = append(names, s.Name)
	}
	return names
}

// Dir returns the cache folder: $KALLSCOPE_KERNELS, else kallscope/kernels in
// the user's cache folder.
func Dir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("kernel cache: %w (set %s)", err, EnvDir)
	}
	return filepath.Join(cache, "kallscope", "kernels"), nil
}

// Find returns the kernel of a catalog name from the cache, the one fetched
// last, after checking its image against the manifest; or the kernel at a path
// (see [vm.OpenKernel]) if name has a slash. It never uses the network: a
// kernel that is not there wraps [ErrNotFetched].
func Find(name string) (vm.Kernel, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return vm.OpenKernel(name)
	}
	if _, err := Lookup(name); err != nil {
		return vm.Kernel{}, err
	}
	m, err := newest(name)
	if err != nil {
		return vm.Kernel{}, err
	}
	return m.kernel()
}
