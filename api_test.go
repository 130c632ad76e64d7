package p4lb_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// publicPackages are the folders of the packages that other modules may import.
var publicPackages = []string{".", "codegen", "controller", "examples", "fitting", "p4src", "templates", "tools/bench", "tools/conformance"}

// TestPublicPackages keeps the front door small: other packages are internal,
// and the root has at most 12 folders.
func TestPublicPackages(t *testing.T) {
	var found []string
	for _, f := range goFiles(t) {
		dir := path.Dir(f)
		if strings.HasSuffix(f, "_test.go") || slices.Contains(strings.Split(dir, "/"), "internal") || slices.Contains(found, dir) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Name.Name != "main" {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, publicPackages) {
		t.Errorf("importable packages are %v, want %v", found, publicPackages)
	}
	folders, err := fs.Glob(os.DirFS("."), "*")
	if err != nil {
		t.Fatal(err)
	}
	folders = slices.DeleteFunc(folders, func(name string) bool {
		info, err := os.Stat(name)
		return err != nil || !info.IsDir() || strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "build", "dist", "results"}, name)
	})
	if len(folders) > 12 {
		t.Errorf("the root has %d folders, want at most 12: %v", len(folders), folders)
	}
}

// TestPublicSignatures: exported declarations of the public packages have doc
// comments, and their signatures name no internal type except in an alias.
func TestPublicSignatures(t *testing.T) {
	for _, dir := range []string{".", "codegen", "controller", "fitting"} {
		files := token.NewFileSet()
		for _, f := range goFiles(t) {
			if path.Dir(f) != dir || strings.HasSuffix(f, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(files, f, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range publicProblems(files, parsed) {
				t.Error(problem)
			}
		}
	}
}

// publicProblems returns the exported names of a file without a doc comment or
// with an internal type in their signature.
func publicProblems(files *token.FileSet, f *ast.File) []string {
	inside := map[string]bool{}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err == nil && strings.HasPrefix(name, module+"/internal/") {
			inside[path.Base(name)] = true
		}
	}
	var problems []string
	add := func(n ast.Node, name, what string) {
		problems = append(problems, files.Position(n.Pos()).String()+": "+name+" "+what)
	}
	var check func(name string, n ast.Node)
	check = func(name string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType:
				for _, field := range n.Fields.List {
					if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
						check(name, field.Type)
					}
				}
				return false
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && inside[x.Name] {
					add(n, name, "shows the internal type "+x.Name+"."+n.Sel.Name+": declare an alias")
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d)) {
				continue
			}
			if d.Doc == nil && !interfaceMethod(d) {
				add(d, d.Name.Name, "has no doc comment")
			}
			for _, list := range []*ast.FieldList{d.Type.Params, d.Type.Results} {
				if list == nil {
					continue
				}
				for _, field := range list.List {
					check(d.Name.Name, field.Type)
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() {
					continue
				}
				if d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					add(spec, spec.Name.Name, "has no doc comment")
				}
				if !spec.Assign.IsValid() {
					check(spec.Name.Name, spec.Type)
				}
			}
		}
	}
	return problems
}

// receiver returns the name of the type of a method's receiver.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	for {
		switch x := expr.(type) {
		case *ast.StarExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// interfaceMethod reports whether a method only implements a well-known interface and
// needs no documentation.
func interfaceMethod(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}, d.Name.Name)
}
