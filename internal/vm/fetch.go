package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// fetcher writes files that come from the guest. A file that cannot be written
// is remembered as the error, and the rest still comes.
type fetcher struct {
	to   map[string]string // guest root → host path
	may  map[string]string // the same, and may be missing
	file *os.File          // the file being written, if any
	errs []error
}

// head begins the next file. Its error is one of the connection.
func (f *fetcher) head(payload []byte) error {
	f.finish()
	var h wire.File
	if err := json.Unmarshal(payload, &h); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	if err := f.begin(h); err != nil {
		f.errs = append(f.errs, fmt.Errorf("fetch %s: %w", h.Path, err))
	}
	return nil
}

func (f *fetcher) begin(h wire.File) error {
	if _, ok := f.may[h.Root]; ok && h.Missing {
		return nil
	}
	host, err := f.hostPath(h)
	if err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode)
	if mode.IsDir() {
		return os.MkdirAll(host, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		return err
	}
	f.file, err = os.OpenFile(host, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm()|0o200)
	return err
}

// hostPath maps a path of the guest to one below the root that was asked for,
// whatever the guest says.
func (f *fetcher) hostPath(h wire.File) (string, error) {
	root, ok := f.to[h.Root]
	if !ok {
		root, ok = f.may[h.Root]
	}
	if !ok {
		return "", errors.New("not asked for")
	}
	if h.Missing {
		return "", fmt.Errorf("in the guest: %w", fs.ErrNotExist)
	}
	rel, ok := strings.CutPrefix(path.Clean(h.Path), path.Clean(h.Root))
	if rel = strings.TrimPrefix(rel, "/"); !ok || (rel != "" && !filepath.IsLocal(rel)) {
		return "", fmt.Errorf("not below %s", h.Root)
	}
	return filepath.Join(root, filepath.FromSlash(rel)), nil
}

func (f *fetcher) data(p []byte) error {
	if f.file == nil {
		return nil
	}
	if _, err := f.file.Write(p); err != nil {
		f.errs = append(f.errs, fmt.Errorf("fetch: %w", err))
		f.finish()
	}
	return nil
}

func (f *fetcher) finish() {
	if f.file == nil {
		return
	}
	if err := f.file.Close(); err != nil {
		f.errs = append(f.errs, fmt.Errorf("fetch: %w", err))
	}
	f.file = nil
}

// close ends the last file and returns all errors.
func (f *fetcher) close() error {
	f.finish()
	return errors.Join(f.errs...)
}
