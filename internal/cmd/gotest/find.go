package main

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// testPackage is a package and some of its test functions.
type testPackage struct {
	path  string
	funcs []string
}

// find returns the functions whose name begins with one of the prefixes, in the
// test files that want accepts, by package.
func find(ctx context.Context, patterns []string, want func(file string) bool, prefixes ...string) ([]testPackage, error) {
	out, err := goOutput(ctx, nil, append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var pkgs []testPackage
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		found := testPackage{path: p.ImportPath}
		for _, file := range append(p.TestGoFiles, p.XTestGoFiles...) {
			if !want(file) {
				continue
			}
			funcs, err := functions(filepath.Join(p.Dir, file), prefixes)
			if err != nil {
				return nil, err
			}
			found.funcs = append(found.funcs, funcs...)
		}
		if len(found.funcs) > 0 {
			pkgs = append(pkgs, found)
		}
	}
	return pkgs, nil
}

// functions returns the names of functions in a file.
func functions(file string, prefixes []string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name == "TestMain" {
			continue
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(fn.Name.Name, prefix) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names, nil
}

// exactly returns the pattern for -run and the like that matches these alone.
func exactly(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
