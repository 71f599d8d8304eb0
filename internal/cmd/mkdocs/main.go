// Mkdocs writes the generated part of docs: reasons.md, from the table of
// reasons, and commands/, from what each command prints for --help.
//
//	mkdocs          write below docs
//	mkdocs -check   say which files are not up to date
//
// It runs in the root of the module. Exit status: 0 done, 1 something is not up
// to date, 2 wrong usage or an error.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var errStale = errors.New("not up to date; run make docs")

func main() {
	err := run(os.Args[1:], os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errStale):
		fmt.Fprintf(os.Stderr, "mkdocs: %v\n", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "mkdocs: %v\n", err)
	os.Exit(2)
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("mkdocs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing, say what is not up to date")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("takes no arguments")
	}
	want, err := pages()
	if err != nil {
		return err
	}
	if *check {
		return compare("docs", want)
	}
	return write("docs", want)
}

// pages returns all generated files by their path below docs.
func pages() (map[string][]byte, error) {
	files, err := commandPages(".")
	if err != nil {
		return nil, err
	}
	files["reasons.md"] = reasonsPage()
	return files, nil
}

// write makes the generated files, and removes those of commands that are gone.
func write(dir string, want map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(dir, commandsDir)); err != nil {
		return err
	}
	for name, text := range want {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare names every file that differs from what it should be.
func compare(dir string, want map[string][]byte) error {
	var stale []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(have, want[name]) {
			stale = append(stale, filepath.Join(dir, name))
		}
	}
	have, err := filepath.Glob(filepath.Join(dir, commandsDir, "*"))
	if err != nil {
		return err
	}
	for _, file := range have {
		if want[filepath.Join(commandsDir, filepath.Base(file))] == nil {
			stale = append(stale, file)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(stale, ", "), errStale)
	}
	return nil
}
