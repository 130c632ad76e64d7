package plain

import (
	"github.com/goccy/go-yaml/ast"
)

// Unplain is the line of the first anchor, alias or tag of a YAML file, 0 where
// it has none. Nothing that p4lb reads needs them, and a tag of nothing is more
// than the YAML package can decode.
func Unplain(f *ast.File) int {
	line := 0
	for _, doc := range f.Docs {
		if doc.Body != nil {
			ast.Walk(plainVisitor{&line}, doc.Body)
		}
	}
	return line
}

type plainVisitor struct{ line *int }

// Visit looks at one node, and at none below what is not plain.
func (v plainVisitor) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.TagType, ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		if *v.line == 0 {
			*v.line = n.GetToken().Position.Line
		}
		return nil
	}
	return v
}
