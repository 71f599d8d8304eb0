package policy

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// maxLines is where a file wants to be split.
const maxLines = 450

func TestFilesAreShort(t *testing.T) {
	for _, f := range source(t) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines; split it before it passes %d", f.path, f.lines, maxLines)
		}
	}
}

func TestPackageComments(t *testing.T) {
	docs := map[string]string{}
	names := map[string]string{}
	for _, f := range source(t) {
		if f.isTest() {
			continue
		}
		names[f.dir()] = f.ast.Name.Name
		if f.ast.Doc != nil && docs[f.dir()] == "" {
			docs[f.dir()] = f.ast.Doc.Text()
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		want := "Package " + names[dir] + " "
		if names[dir] == "main" {
			base := path.Base(dir)
			want = strings.ToUpper(base[:1]) + base[1:] + " "
		}
		if !strings.HasPrefix(docs[dir], want) {
			t.Errorf("package %s: its comment does not begin with %q", dir, want)
		}
	}
}

// layers are what may not be reached from where, through any number of packages
// of ours.
var layers = []struct {
	from   func(dir string) bool
	never  func(dir string) bool
	reason string
}{
	{isPublic, below("internal/observe"), "nothing public imports internal/observe"},
	{isLeaf, isComposed, "leaves never import what is composed of them"},
	{is("."), below("attach"), "attach imports the root, not the other way round"},
}

func is(dir string) func(string) bool { return func(d string) bool { return d == dir } }

func below(dir string) func(string) bool {
	return func(d string) bool { return d == dir || strings.HasPrefix(d, dir+"/") }
}

func isPublic(dir string) bool {
	return !below("internal")(dir) && !below("cmd")(dir)
}

var leaves = []string{
	"internal/bpf", "internal/btfscan", "internal/container", "internal/deb", "internal/expr", "internal/feature",
	"internal/inflate", "internal/module", "internal/nameindex", "internal/pattern", "internal/tracefs", "internal/vm",
	"kallsyms", "kimage",
}

func isLeaf(dir string) bool {
	return slices.ContainsFunc(leaves, func(leaf string) bool { return below(leaf)(dir) })
}

func isComposed(dir string) bool {
	return dir == "." || below("attach")(dir) || below("cmd")(dir) || below("internal/observe")(dir) || below("internal/render")(dir)
}

func TestLayers(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range source(t) {
		if !f.isTest() {
			imports[f.dir()] = append(imports[f.dir()], f.imports()...)
		}
	}
	for _, layer := range layers {
		for _, dir := range slices.Sorted(maps.Keys(imports)) {
			if !layer.from(dir) {
				continue
			}
			if chain := reach(imports, dir, layer.never, map[string]bool{}); chain != nil {
				t.Errorf("%s: %s", strings.Join(chain, " imports "), layer.reason)
			}
		}
	}
}

// reach returns the packages from dir to one that is accepted, nil if there is
// no way.
func reach(imports map[string][]string, dir string, accept func(string) bool, seen map[string]bool) []string {
	seen[dir] = true
	for _, next := range imports[dir] {
		if accept(next) {
			return []string{dir, next}
		}
		if seen[next] {
			continue
		}
		if chain := reach(imports, next, accept, seen); chain != nil {
			return append([]string{dir}, chain...)
		}
	}
	return nil
}

func TestReach(t *testing.T) {
	imports := map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"d"}, "d": nil}
	qt.Check(t, qt.DeepEquals(reach(imports, "a", is("d"), map[string]bool{}), []string{"a", "c", "d"}))
	qt.Check(t, qt.IsNil(reach(imports, "b", is("e"), map[string]bool{})))
}

// gotest guest finds kernel tests by the names of their files.
func TestKernelTestsAreFound(t *testing.T) {
	for _, f := range source(t) {
		if strings.HasSuffix(f.path, "_linux_test.go") || !f.isTest() {
			continue
		}
		if calls(f.ast, "testutil", "Guest") {
			t.Errorf("%s calls testutil.Guest; tests for guests belong in *_linux_test.go", f.path)
		}
	}
}

func TestBPFSourceIsLicensed(t *testing.T) {
	found := 0
	paths(t, func(name string) {
		if ext := path.Ext(name); ext != ".c" && ext != ".h" {
			return
		}
		found++
		text, err := os.ReadFile(filepath.Join(root, name))
		qt.Assert(t, qt.IsNil(err))
		first, _, _ := strings.Cut(string(text), "\n")
		qt.Check(t, qt.StringContains(first, "SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause"), qt.Commentf("%s", name))
	})
	qt.Check(t, qt.IsTrue(found >= 2))
	for _, file := range []string{"LICENSE", "LICENSES/GPL-2.0.txt", "LICENSES/BSD-2-Clause.txt"} {
		_, err := os.Stat(filepath.Join(root, file))
		qt.Check(t, qt.IsNil(err))
	}
}
