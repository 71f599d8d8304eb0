//go:build linux

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// libraryDirs are where Debian's loader looks.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"}

// addProgram adds a program below root, its loader and all shared libraries that
// it needs to the files for the guest, each under the path it has below root.
func addProgram(files map[string]string, root, program string) error {
	file := filepath.Join(root, program)
	files[program] = file
	loader, err := interpreter(file)
	if err != nil {
		return err
	}
	if files[loader], err = follow(root, loader); err != nil {
		return err
	}
	return addLibraries(files, root, file)
}

func addLibraries(files map[string]string, root, file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	needed, err := f.ImportedLibraries()
	f.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range needed {
		guest, host, err := findLibrary(root, name)
		if err != nil {
			return fmt.Errorf("%s needs: %w", file, err)
		}
		if files[guest] != "" {
			continue
		}
		files[guest] = host
		if err := addLibraries(files, root, host); err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(root, name string) (guest, host string, err error) {
	for _, dir := range libraryDirs {
		guest = filepath.Join(dir, name)
		host, err = follow(root, guest)
		if !errors.Is(err, fs.ErrNotExist) {
			return guest, host, err
		}
	}
	return "", "", fmt.Errorf("library %s: not in %v below %s", name, libraryDirs, root)
}

// follow returns the file that a path below root is, with links followed in it.
func follow(root, path string) (string, error) {
	for range 10 {
		target, err := os.Readlink(filepath.Join(root, path))
		if err != nil {
			_, err = os.Stat(filepath.Join(root, path))
			return filepath.Join(root, path), err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many links", path)
}

// interpreter returns the loader that a program names.
func interpreter(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return "", fmt.Errorf("%s: names no loader", file)
	}
	name, err := section.Data()
	if err != nil || len(name) == 0 {
		return "", fmt.Errorf("%s: names no loader: %w", file, err)
	}
	return string(name[:len(name)-1]), nil
}
