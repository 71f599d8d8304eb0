//go:build !race

// The race detector makes unpacking ten times slower and finds nothing there.

package kimage_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/inflate"
	"github.com/kallscope/kallscope/internal/vm/kernels"
	"github.com/kallscope/kallscope/kimage"
)

// cached returns the kernels in the cache, or skips.
func cached(tb testing.TB) []kernels.Manifest {
	tb.Helper()
	list, err := kernels.List()
	qt.Assert(tb, qt.IsNil(err))
	if len(list) == 0 {
		tb.Skip("no kernels in the cache: go run ./internal/cmd/kernels fetch")
	}
	return list
}

func openFiles(tb testing.TB, paths ...string) *kimage.Image {
	tb.Helper()
	im, err := kimage.Open(paths[0], paths[1:]...)
	qt.Assert(tb, qt.IsNil(err))
	tb.Cleanup(func() { qt.Check(tb, qt.IsNil(im.Close())) })
	return im
}

// TestDebianPackages: from the packages, the kernel is that of the unpacked
// file, and all modules are there, built for it. 5.10 is one package,
// 7.3 two.
func TestDebianPackages(t *testing.T) {
	for _, m := range cached(t) {
		if m.Name != "5.10" && m.Name != "7.3" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			debs, err := filepath.Glob(filepath.Join(m.Dir(), "debs/*.deb"))
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Not(qt.HasLen(debs, 0)))
			im := openFiles(t, debs...)
			checkFacts(t, im, openFiles(t, filepath.Join(m.Dir(), m.Image)), m.Release)

			var got []string
			for mod, err := range im.Modules() {
				qt.Assert(t, qt.IsNil(err))
				if got = append(got, mod.Name()); len(got)%50 == 1 {
					checkModule(t, mod, m.Release)
				}
			}
			want := unpackedModules(t, m.Dir())
			qt.Check(t, qt.IsTrue(len(want) > 500))
			qt.Check(t, qt.IsTrue(slices.Equal(slices.Sorted(slices.Values(got)), want)), qt.Commentf("%d modules in packages, %d unpacked", len(got), len(want)))
		})
	}
}

func checkFacts(t *testing.T, im, file *kimage.Image, release string) {
	t.Helper()
	got, err := im.Symbols()
	qt.Assert(t, qt.IsNil(err))
	want, err := file.Symbols()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got.Len(), want.Len()))
	for i, s := range got.All() {
		qt.Assert(t, qt.Equals(s, want.Symbol(i)))
	}
	r, err := im.Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(r, release))
	config, err := im.Config()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(regexp.MustCompile(`(?m)^CONFIG_KPROBES=y$`).Match(config)))
}

func checkModule(t *testing.T, m *kimage.Module, release string) {
	t.Helper()
	r, err := m.Release()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(r, release), qt.Commentf(m.Name()))
	symbols, err := m.Symbols()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.HasLen(symbols, 0)))
	_, err = m.Sites()
	qt.Assert(t, qt.IsNil(err))
	if _, err = m.BTF(); err != nil { // Debian's 5.10 has none in modules
		qt.Assert(t, qt.ErrorIs(err, kimage.ErrAbsent))
		qt.Check(t, qt.StringContains(release, "5.10."))
	}
}

func unpackedModules(t *testing.T, dir string) (names []string) {
	t.Helper()
	isModule := regexp.MustCompile(`\.ko(\.xz)?$`)
	for _, below := range []string{"lib/modules", "usr/lib/modules"} {
		err := filepath.WalkDir(filepath.Join(dir, below), func(path string, _ os.DirEntry, err error) error {
			if err == nil && isModule.MatchString(path) {
				m, err := kimage.OpenModule(path)
				qt.Assert(t, qt.IsNil(err))
				names = append(names, m.Name())
			}
			return nil
		})
		qt.Assert(t, qt.IsNil(err))
	}
	slices.Sort(names)
	return names
}

// TestTime: from vmlinuz to all addresses takes little more than unpacking.
func TestTime(t *testing.T) {
	for _, m := range cached(t) {
		if m.Name != "6.12" {
			continue
		}
		path := filepath.Join(m.Dir(), m.Image)
		data, err := os.ReadFile(path)
		qt.Assert(t, qt.IsNil(err))
		payload, size := payloadOf(t, data)
		bare, whole := time.Hour, time.Hour
		for range 5 {
			start := time.Now()
			_, err := inflate.All(payload, inflate.Options{Format: inflate.Zstd, Size: size, Max: size})
			qt.Assert(t, qt.IsNil(err))
			bare = min(bare, time.Since(start))

			start = time.Now()
			_, err = openFiles(t, path).Symbols()
			qt.Assert(t, qt.IsNil(err))
			whole = min(whole, time.Since(start))
		}
		t.Logf("%s: %v, of which unpacking takes %v", m.Release, whole, bare)
		qt.Check(t, qt.IsTrue(whole < 2*bare), qt.Commentf("%v, %v of it unpacking", whole, bare))
	}
}

// payloadOf returns the compressed kernel in a bzImage and its size unpacked.
func payloadOf(t *testing.T, b []byte) ([]byte, int64) {
	t.Helper()
	u32 := func(at int) int { return int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16 | int(b[at+3])<<24 }
	at := (int(b[0x1f1])+1)*512 + u32(0x248)
	end := at + u32(0x24c) - 4
	return b[at:end], int64(u32(end))
}

func BenchmarkSymbols(b *testing.B) {
	for _, m := range cached(b) {
		b.Run(m.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				im, err := kimage.Open(filepath.Join(m.Dir(), m.Image))
				qt.Assert(b, qt.IsNil(err))
				_, err = im.Symbols()
				qt.Assert(b, qt.IsNil(err))
				qt.Assert(b, qt.IsNil(im.Close()))
			}
		})
	}
}

// BenchmarkModules unpacks all modules of a cloud package and reads their
// symbols.
func BenchmarkModules(b *testing.B) {
	for _, m := range cached(b) {
		if m.Name != "6.12" {
			continue
		}
		debs, err := filepath.Glob(filepath.Join(m.Dir(), "debs/*.deb"))
		qt.Assert(b, qt.IsNil(err))
		for b.Loop() {
			im, err := kimage.Open(debs[0], debs[1:]...)
			qt.Assert(b, qt.IsNil(err))
			for mod, err := range im.Modules() {
				qt.Assert(b, qt.IsNil(err))
				_, err = mod.Symbols()
				qt.Assert(b, qt.IsNil(err))
			}
			qt.Assert(b, qt.IsNil(im.Close()))
		}
	}
}
