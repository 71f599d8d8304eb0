package kmod

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// suffixes are those of CONFIG_MODULE_COMPRESS_*.
var suffixes = []string{".xz", ".zst", ".gz"}

func trimCompression(file string) string {
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(file, s); ok {
			return rest
		}
	}
	return file
}

// read returns the decompressed module, from the cache when it is there.
func (s *Set) read(name, file string) ([]byte, error) {
	full := filepath.Join(s.dir, filepath.FromSlash(file))
	if trimCompression(file) == file {
		return os.ReadFile(full)
	}
	if s.cache == "" {
		return decompress(full)
	}
	raw := filepath.Join(s.cache, name+".ko")
	if data, err := os.ReadFile(raw); err == nil {
		return data, nil
	}
	data, err := decompress(full)
	if err != nil {
		return nil, err
	}
	// The cache saves time only: a folder that cannot be written is no error.
	_ = writeAtomic(raw, data)
	return data, nil
}

// fill decompresses modules into the cache, several at a time. Errors show up
// again, and are reported, when a module is read.
func (s *Set) fill(names []string) {
	if s.cache == "" {
		return
	}
	var wg sync.WaitGroup
	todo := make(chan string)
	for range runtime.NumCPU() {
		wg.Go(func() {
			for n := range todo {
				s.fillOne(n)
			}
		})
	}
	for _, n := range names {
		todo <- n
	}
	close(todo)
	wg.Wait()
}

func (s *Set) fillOne(name string) {
	if _, err := os.Stat(filepath.Join(s.cache, name+".ko")); err != nil {
		_, _ = s.read(name, s.files[name])
	}
}

func decompress(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	raw, err := inflate(filepath.Ext(file), data)
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", file, err)
	}
	return raw, nil
}

func inflate(ext string, data []byte) ([]byte, error) {
	switch ext {
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case ".zst":
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.DecodeAll(data, nil)
	case ".xz":
		return inflateXZ(data)
	}
	return nil, fmt.Errorf("unknown suffix %q", ext)
}

// inflateXZ prefers xz(1): on the 1,019 modules of Debian's 7.3 cloud kernel,
// 131 MB, it took 3.3 s where ulikunitz/xz took 26 s.
func inflateXZ(data []byte) ([]byte, error) {
	if tool, err := exec.LookPath("xz"); err == nil {
		cmd := exec.Command(tool, "--decompress", "--stdout")
		cmd.Stdin = bytes.NewReader(data)
		if raw, err := cmd.Output(); err == nil {
			return raw, nil
		}
	}
	r, err := xz.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func writeAtomic(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".part-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
