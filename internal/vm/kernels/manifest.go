package kernels

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kallscope/kallscope/internal/vm"
)

// manifestName is the file that makes a folder of the cache complete.
const manifestName = "manifest.json"

// Manifest describes one kernel in the cache.
type Manifest struct {
	// Name is the catalog's.
	Name string `json:"name"`
	// Release is what uname -r says.
	Release string `json:"release"`
	// Suite and Packages (NAME_VERSION) are where it came from.
	Suite    string   `json:"suite"`
	Packages []string `json:"packages"`
	// Image is the path of vmlinuz below the folder, SHA256 its checksum.
	Image  string `json:"image"`
	SHA256 string `json:"sha256"`
	// Fetched is when.
	Fetched time.Time `json:"fetched"`

	dir string
}

// Dir returns the folder of the unpacked packages, debs/ among them.
func (m Manifest) Dir() string { return m.dir }

// List returns what is in the cache, by name and then newest first. A cache
// that does not exist is empty.
func List() ([]Manifest, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", manifestName))
	if err != nil {
		return nil, err
	}
	var list []Manifest
	for _, f := range files {
		m, err := readManifest(f)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Manifest) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.Fetched.Compare(a.Fetched))
	})
	return list, nil
}

func newest(name string) (Manifest, error) {
	list, err := List()
	if err != nil {
		return Manifest{}, err
	}
	i := slices.IndexFunc(list, func(m Manifest) bool { return m.Name == name })
	if i < 0 {
		dir, _ := Dir()
		return Manifest{}, fmt.Errorf("kernel %s: %w: not in %s (go run ./internal/cmd/kernels fetch %s)", name, ErrNotFetched, dir, name)
	}
	return list[i], nil
}

func readManifest(file string) (Manifest, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	m := Manifest{dir: filepath.Dir(file)}
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w (remove the folder and fetch again)", file, err)
	}
	return m, nil
}

// newManifest describes the kernel unpacked in dir.
func newManifest(dir string) (Manifest, error) {
	k, err := vm.OpenKernel(dir)
	if err != nil {
		return Manifest{}, err
	}
	image, err := filepath.Rel(dir, k.Image)
	if err != nil {
		return Manifest{}, err
	}
	sum, err := checksum(k.Image)
	if err != nil {
		return Manifest{}, err
	}
	return Manifest{Release: k.Release, Image: image, SHA256: sum, Fetched: time.Now().UTC(), dir: dir}, nil
}

func (m Manifest) write() error {
	data, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.dir, manifestName), append(data, '\n'), 0o644)
}

// kernel checks the image, some 10 ms, and returns what boots.
func (m Manifest) kernel() (vm.Kernel, error) {
	image := filepath.Join(m.dir, m.Image)
	sum, err := checksum(image)
	if err != nil {
		return vm.Kernel{}, m.damaged(err)
	}
	if sum != m.SHA256 {
		return vm.Kernel{}, m.damaged(errors.New("checksum differs from the manifest"))
	}
	k, err := vm.OpenKernel(image)
	if err != nil {
		return vm.Kernel{}, m.damaged(err)
	}
	k.ModuleCache = filepath.Join(m.dir, "ko")
	return k, nil
}

func (m Manifest) damaged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("image is missing: %w", err)
	}
	return fmt.Errorf("kernel %s: %w (remove %s and fetch again)", m.Name, err, m.dir)
}

func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
