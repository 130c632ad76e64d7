package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is a change to the bytes from..to of a file.
type mutant struct {
	number      int
	group, file string
	line        int
	reached     int // the line that a test must execute to reach the change
	what        string
	from, to    int
	text        string
	// body is the range of the function body around the change, with its braces. It
	// is empty if the function cannot contain a changed copy of the body.
	body [2]int
	// global is set for a change outside of functions. Profiles do not contain such
	// lines.
	global bool
	// end is added after the copy of the body: a return, if the function has no
	// results.
	end string
}

// swaps maps an operator to the one that replaces it.
var swaps = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.ADD, token.QUO: token.MUL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR, token.OR: token.AND,
}

// folderMutants returns the mutants of the files below a folder.
func folderMutants(dir, folder string) ([]*mutant, error) {
	var list []*mutant
	err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		part, err := mutants(dir, filepath.ToSlash(name))
		list = append(list, part...)
		return err
	})
	return list, err
}

// mutants returns the mutants of a file, in its order.
func mutants(dir, name string) ([]*mutant, error) {
	src, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []*mutant
	var body [2]int
	end, global, ret := token.NoPos, true, ""
	// Profiles contain the bodies of cases, but not their conditions. Tests evaluate the
	// conditions if they execute the switch.
	switches := map[ast.Expr]int{} // lines of switches by the conditions of their cases
	add := func(from, to token.Pos, text, what string) {
		p := fset.Position(from)
		reached := 0
		for x, line := range switches {
			if x.Pos() <= from && from < x.End() {
				reached = max(reached, line) // of the innermost switch
			}
		}
		if reached == 0 {
			reached = p.Line
		}
		list = append(list, &mutant{file: name, line: p.Line, reached: reached, what: what, from: p.Offset, to: fset.Position(to).Offset, text: text, body: body, global: global, end: ret})
	}
	text := func(n ast.Node) string {
		return string(src[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if body, end, global, ret = [2]int{}, n.End(), false, ""; n.Type.Results == nil {
				ret = "\nreturn"
			}
			if n.Body != nil && copies(n) {
				body = [2]int{fset.Position(n.Body.Pos()).Offset, fset.Position(n.Body.End()).Offset}
			}
		case *ast.GenDecl: // declarations of imports and types have no behaviour
			if n.Pos() >= end {
				body, global = [2]int{}, true
			}
			return n.Tok == token.VAR || n.Tok == token.CONST
		case *ast.SwitchStmt:
			for _, s := range n.Body.List {
				for _, x := range s.(*ast.CaseClause).List {
					switches[x] = fset.Position(n.Pos()).Line
				}
			}
		case *ast.BinaryExpr:
			if to, ok := swaps[n.Op]; ok && !isText(n.X) && !isText(n.Y) {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), fmt.Sprintf("%s -> %s", n.Op, to))
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add(n.Pos(), n.End(), "("+n.Value+"+1)", n.Value+" -> "+n.Value+"+1")
			}
		case *ast.IfStmt:
			if _, binary := n.Cond.(*ast.BinaryExpr); !binary {
				add(n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")", "condition negated")
			}
		case *ast.ExprStmt:
			if _, call := n.X.(*ast.CallExpr); call && !strings.HasPrefix(text(n), "panic(") {
				add(n.Pos(), n.End(), "", "call removed: "+firstLine(text(n)))
			}
		case *ast.IncDecStmt:
			add(n.TokPos, n.End(), map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok], n.Tok.String()+" reversed")
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN && len(n.Lhs) == 1 && len(n.Rhs) == 1 {
				add(n.Pos(), n.End(), "_ = "+text(n.Rhs[0]), "assignment removed: "+firstLine(text(n)))
			}
		}
		return true
	})
	return list, nil
}

// copies reports whether a copy of the body, nested in the body, has the same
// meaning. It does not if the body has labels, or a := that assigns to a parameter
// in the body's own block.
func copies(f *ast.FuncDecl) bool {
	parameters := map[string]bool{}
	for _, list := range []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results} {
		if list != nil {
			for _, field := range list.List {
				for _, name := range field.Names {
					parameters[name.Name] = true
				}
			}
		}
	}
	for _, s := range f.Body.List {
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
			for _, x := range a.Lhs {
				if id, ok := x.(*ast.Ident); ok && parameters[id.Name] {
					return false
				}
			}
		}
	}
	ok := true
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, label := n.(*ast.LabeledStmt); label {
			ok = false
		}
		return ok
	})
	return ok
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// isText reports whether x is a string constant, because + on strings has no
// inverse.
func isText(x ast.Expr) bool {
	b, ok := x.(*ast.BasicLit)
	return ok && b.Kind == token.STRING
}

// apply returns the file with the change.
func (m *mutant) apply(src []byte) []byte {
	return []byte(string(src[:m.from]) + m.text + string(src[m.to:]))
}
