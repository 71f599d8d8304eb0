package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/vm/kernels"
)

func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	err := run(t.Context(), args, &out, &errs)
	code = status(err, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"no"}, {"path"}, {"path", "a", "b"}} {
		code, out, errs := runMain(t, args...)
		qt.Check(t, qt.Equals(code, 2))
		qt.Check(t, qt.Equals(out, ""))
		qt.Check(t, qt.Equals(errs, usage))
	}
	code, out, _ := runMain(t, "--help")
	qt.Assert(t, qt.Equals(code, 0))
	qt.Assert(t, qt.Equals(out, usage))
}

func TestNotThere(t *testing.T) {
	t.Setenv(kernels.EnvDir, t.TempDir())
	code, out, errs := runMain(t, "path", "6.12")
	qt.Assert(t, qt.Equals(code, 1))
	qt.Assert(t, qt.Equals(out, ""))
	qt.Assert(t, qt.StringContains(errs, "kernels: kernel 6.12: not fetched: "))
	code, out, errs = runMain(t, "list")
	qt.Assert(t, qt.Equals(code, 0))
	qt.Assert(t, qt.Equals(out+errs, ""))
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(kernels.EnvDir, dir)
	kernel := filepath.Join(dir, "6.1", "6.1.0-1_1")
	qt.Assert(t, qt.IsNil(os.MkdirAll(kernel, 0o755)))
	manifest := `{"name":"6.1","release":"6.1.0-1","fetched":"2026-01-02T03:04:05Z"}`
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(kernel, "manifest.json"), []byte(manifest), 0o644)))
	code, out, _ := runMain(t, "list")
	qt.Assert(t, qt.Equals(code, 0))
	qt.Assert(t, qt.Equals(out, "6.1  6.1.0-1  "+kernel+"\n"))
}
