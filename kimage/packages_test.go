package kimage

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/testutil"
)

const madeModules = "lib/modules/6.12.0-made/kernel/"

// moduleFiles are three modules, each compressed in another way, and what is
// none.
func moduleFiles() []testutil.DebFile {
	ko := makeModule()
	return []testutil.DebFile{
		{Name: madeModules + "a-b.ko", Content: ko},
		{Name: madeModules + "x/c.ko.xz", Content: packXZ(ko)},
		{Name: madeModules + "x/d.ko.zst", Content: packZstd(ko)},
		{Name: "lib/modules/6.12.0-made/modules.order", Content: []byte("a")},
	}
}

func kernelFiles(k *made) []testutil.DebFile {
	return []testutil.DebFile{
		{Name: "boot/config-6.12.0-made", Content: []byte("CONFIG_FPROBE=y\n")},
		{Name: "boot/vmlinuz-6.12.0-made", Content: bzImage(packGzip(k.elf()))},
	}
}

func writePackage(t *testing.T, files ...testutil.DebFile) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.deb")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, testutil.Deb(t, packXZ, files...), 0o600)))
	return path
}

// checkModules goes over the modules, twice: the second time from the start.
func checkModules(t *testing.T, im *Image) {
	t.Helper()
	for range 2 {
		var names []string
		for m, err := range im.Modules() {
			qt.Assert(t, qt.IsNil(err))
			names = append(names, m.Name())
			symbols, err := m.Symbols()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(symbols, 3))
			_, err = m.BTF()
			qt.Assert(t, qt.IsNil(err))
		}
		qt.Check(t, qt.DeepEquals(names, []string{"a_b", "c", "d"}))
	}
}

func TestPackages(t *testing.T) {
	k := makeKernel(modern, x86Base)
	kernel, modules := kernelFiles(k), moduleFiles()
	one := writePackage(t, append(append([]testutil.DebFile{}, kernel...), modules...)...)
	// In the order that usr/lib/modules/VER has since 7.3.
	behind := writePackage(t, append(append([]testutil.DebFile{}, modules...), kernel...)...)
	binary, rest := writePackage(t, kernel...), writePackage(t, modules...)
	for name, paths := range map[string][]string{"one": {one}, "kernel last": {behind}, "two": {binary, rest}, "two, kernel last": {rest, binary}} {
		t.Run(name, func(t *testing.T) {
			im, err := Open(paths[0], paths[1:]...)
			qt.Assert(t, qt.IsNil(err))
			defer im.Close()
			checkSymbols(t, im, k.symbols)
			config, err := im.Config()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(string(config), "CONFIG_FPROBE=y\n"))
			checkModules(t, im)
		})
	}
}

// TestKernelWithPackages: a kernel file, and modules from a package.
func TestKernelWithPackages(t *testing.T) {
	k := makeKernel(modern, x86Base)
	path := filepath.Join(t.TempDir(), "vmlinux")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, k.elf(), 0o600)))
	im, err := Open(path, writePackage(t, moduleFiles()...))
	qt.Assert(t, qt.IsNil(err))
	defer im.Close()
	checkModules(t, im)
	_, err = im.Config()
	qt.Check(t, qt.ErrorIs(err, ErrAbsent))
}

func TestModulesStop(t *testing.T) {
	k := makeKernel(modern, x86Base)
	im, err := Open(writePackage(t, append(kernelFiles(k), moduleFiles()...)...))
	qt.Assert(t, qt.IsNil(err))
	defer im.Close()
	for m, err := range im.Modules() {
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(m.Name(), "a_b"))
		break
	}
	checkModules(t, im)
}

func TestPackageErrors(t *testing.T) {
	k := makeKernel(modern, x86Base)
	rest := writePackage(t, moduleFiles()...)
	_, err := Open(rest)
	qt.Check(t, qt.ErrorMatches(err, ".*package.deb: not a Linux kernel: no boot/vmlinuz-.* in the package, 3 modules; from 7.3 on .*"))

	other := writePackage(t, testutil.DebFile{Name: "boot/vmlinuz-1", Content: []byte("no kernel")})
	_, err = Open(other)
	qt.Check(t, qt.ErrorMatches(err, ".*package.deb: boot/vmlinuz-1: not a Linux kernel: .*"))

	whole, err := os.ReadFile(writePackage(t, append(kernelFiles(k), moduleFiles()...)...))
	qt.Assert(t, qt.IsNil(err))
	for _, n := range []int{len(whole) / 2, len(whole) - 200} {
		im, err := New(bytes.NewReader(whole[:n]), int64(n))
		if err != nil {
			continue
		}
		for _, e := range im.Modules() {
			err = e
		}
		qt.Check(t, qt.IsNotNil(err), qt.Commentf("%d of %d bytes", n, len(whole)))
		qt.Check(t, qt.IsNil(im.Close()))
	}
}
