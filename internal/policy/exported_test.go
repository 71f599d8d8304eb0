package policy

import (
	"go/ast"
	"testing"
)

func TestExportedNamesHaveDocs(t *testing.T) {
	for _, f := range source(t) {
		if !isPublic(f.dir()) || f.isTest() {
			continue
		}
		for _, name := range undocumented(f.ast) {
			t.Errorf("%s: %s is exported and has no comment", f.path, name)
		}
	}
}

// undocumented returns the exported names of a file that have no comment.
func undocumented(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, undocumentedSpec(d, spec)...)
			}
		}
	}
	return names
}

// exportedReceiver says whether d is a function, or a method that users see.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return !ok || id.IsExported()
}

// undocumentedSpec looks at one name of a declaration. A comment above a group
// speaks for constants and variables, not for types.
func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		alone := len(d.Specs) == 1 && d.Doc != nil
		if spec.Name.IsExported() && spec.Doc == nil && !alone {
			names = append(names, spec.Name.Name)
		}
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			if id.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// calls says whether a file calls pkg.name.
func calls(f *ast.File, pkg, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == pkg {
				found = true
			}
		}
		return !found
	})
	return found
}
