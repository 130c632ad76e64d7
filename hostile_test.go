package p4lb_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Each declaration that uses package unsafe states in a line "Hostile input: …"
// which values a hostile file, program or packet controls there. Sizes and offsets are
// constants and need no such line.
func TestUnsafeIsArgued(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if use := unsafeUse(decl); use != nil && !argued(f, decl) {
				t.Errorf("%v: unsafe.%s without a line \"Hostile input: ...\" in its declaration", fset.Position(use.Pos()), use.Sel.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unsafeUse returns the first use of unsafe in a function or a type that is not
// a size or an offset.
func unsafeUse(decl ast.Decl) (use *ast.SelectorExpr) {
	if g, ok := decl.(*ast.GenDecl); ok && g.Tok != token.TYPE {
		return nil
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || use != nil {
			return use == nil
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "unsafe" && s.Sel.Name != "Sizeof" && s.Sel.Name != "Offsetof" {
			use = s
		}
		return true
	})
	return use
}

// argued reports whether a comment of a declaration has the line.
func argued(f *ast.File, decl ast.Decl) bool {
	from := decl.Pos()
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc != nil {
			from = d.Doc.Pos()
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			from = d.Doc.Pos()
		}
	}
	for _, c := range f.Comments {
		if c.Pos() >= from && c.End() <= decl.End() && strings.Contains(c.Text(), "Hostile input:") {
			return true
		}
	}
	return false
}
