package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	root   = "../.."
	module = "github.com/kallscope/kallscope"
)

// sourceFile is a Go file that a person wrote.
type sourceFile struct {
	path  string // from the root, with slashes
	lines int
	ast   *ast.File
}

func (f sourceFile) dir() string  { return path.Dir(f.path) }
func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the imported packages of this module, by folder.
func (f sourceFile) imports() []string {
	var dirs []string
	for _, spec := range f.ast.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if name == module {
			dirs = append(dirs, ".")
		} else if dir, ok := strings.CutPrefix(name, module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// paths calls f with every file of the tree but those that are not ours to
// write.
func paths(t *testing.T, f func(name string)) {
	t.Helper()
	qt.Assert(t, qt.IsNil(filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if base == "testdata" || base == "bin" || name != root && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		f(filepath.ToSlash(rel))
		return err
	})))
}

// source returns all Go files that are not generated.
func source(t *testing.T) []sourceFile {
	t.Helper()
	var files []sourceFile
	fset := token.NewFileSet()
	paths(t, func(name string) {
		if path.Ext(name) != ".go" {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		qt.Assert(t, qt.IsNil(err))
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		qt.Assert(t, qt.IsNil(err))
		if !ast.IsGenerated(f) {
			files = append(files, sourceFile{name, strings.Count(string(text), "\n"), f})
		}
	})
	qt.Assert(t, qt.IsTrue(len(files) > 50), qt.Commentf("%d files found", len(files)))
	return files
}
