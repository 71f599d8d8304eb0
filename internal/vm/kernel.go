package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotKernel is wrapped when a file is not a kernel that can be booted.
var ErrNotKernel = errors.New("not an x86 boot image (bzImage)")

// Kernel is a kernel that can be booted, and its modules.
type Kernel struct {
	// Release is what uname -r will say.
	Release string
	// Dir is where its packages were unpacked.
	Dir string
	// Image is the compressed kernel, vmlinuz.
	Image string
	// ModulesDir is the folder lib/modules/RELEASE, empty if there is none.
	ModulesDir string
	// ModuleCache keeps decompressed modules; empty means none is kept.
	ModuleCache string
}

// imagePlaces are where Debian's packages have the kernel; from 7.3 on it is
// in linux-binary-RELEASE, below usr/lib/modules.
var imagePlaces = []string{
	"boot/vmlinuz-*",
	"usr/lib/modules/*/vmlinuz",
	"lib/modules/*/vmlinuz",
	"vmlinuz",
}

// OpenKernel returns the kernel at path: a vmlinuz, or the folder into which
// one kernel's packages were unpacked. Modules are found by the release, which
// is read from the image.
func OpenKernel(path string) (Kernel, error) {
	image, root, err := findImage(path)
	if err != nil {
		return Kernel{}, fmt.Errorf("open kernel: %w", err)
	}
	release, err := ImageRelease(image)
	if err != nil {
		return Kernel{}, fmt.Errorf("open kernel: %w", err)
	}
	return Kernel{Release: release, Dir: root, Image: image, ModulesDir: findModules(root, release)}, nil
}

// findImage returns the image and the root of the unpacked packages.
func findImage(path string) (image, root string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", "", err
	}
	if !info.IsDir() {
		return path, rootOf(path), nil
	}
	var found []string
	for _, pattern := range imagePlaces {
		m, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return "", "", err
		}
		found = append(found, m...)
	}
	switch len(found) {
	case 0:
		return "", "", fmt.Errorf("no vmlinuz in %s: %w", path, fs.ErrNotExist)
	case 1:
		return found[0], path, nil
	}
	return "", "", fmt.Errorf("%d kernels in %s: name one, such as %s", len(found), path, found[0])
}

// rootOf returns the folder that boot/ or lib/modules/ of an image is in.
func rootOf(image string) string {
	dir := filepath.Dir(image)
	if filepath.Base(dir) == "boot" {
		return filepath.Dir(dir)
	}
	parts := strings.Split(dir, string(filepath.Separator))
	if i := slices.Index(parts, "modules"); i > 0 && parts[i-1] == "lib" {
		return strings.TrimSuffix(strings.Join(parts[:i-1], string(filepath.Separator)), "/usr")
	}
	return dir
}

func findModules(root, release string) string {
	for _, lib := range []string{"lib", "usr/lib"} {
		dir := filepath.Join(root, lib, "modules", release)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// ImageRelease checks that file is a bzImage and returns the release in its
// header. See Documentation/arch/x86/boot.rst in the kernel tree: boot_flag is
// at 0x1fe, "HdrS" at 0x202, and kernel_version at 0x20e points to the text,
// less 0x200.
func ImageRelease(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	release, err := headerRelease(head[:n])
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return release, nil
}

func headerRelease(head []byte) (string, error) {
	if len(head) < 0x210 || head[0x1fe] != 0x55 || head[0x1ff] != 0xaa || string(head[0x202:0x206]) != "HdrS" {
		return "", ErrNotKernel
	}
	at := int(binary.LittleEndian.Uint16(head[0x20e:])) + 0x200
	if at >= len(head) {
		return "", fmt.Errorf("version text at %#x: %w", at, ErrNotKernel)
	}
	release, _, _ := bytes.Cut(head[at:], []byte{' '})
	if len(release) == 0 || len(release) > 64 {
		return "", fmt.Errorf("version text of %d bytes: %w", len(release), ErrNotKernel)
	}
	return string(release), nil
}
