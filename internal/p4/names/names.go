// Package names returns the control plane's names of the parts of a checked
// program. BMv2 documents and P4Info must use the same names for tables, fields and
// pipes, so both use this package. The names are p4c's.
package names

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// Declared returns the full name of a declaration: prefix, followed by the @name or
// else the declared name. A @name that starts with a dot is absolute.
func Declared(prefix string, as syntax.Annotations, name *syntax.Name) string {
	n := name.Value
	if s, ok := as.Text("name"); ok {
		n = s
	}
	if rest, ok := strings.CutPrefix(n, "."); ok {
		return rest
	}
	if prefix == "" {
		return n
	}
	return prefix + "." + n
}

// Block returns the prefix of the names in a block of the architecture: the name of
// its declaration, or of the copy that p4c creates for its type arguments.
func Block(b types.Body) string {
	if len(b.TypeArgs) > 0 || len(b.CtorParams) > 0 {
		return b.Name.Value + "_0"
	}
	return b.Name.Value
}

// Key returns the name of an element of a table's key: its @name, or its text.
func Key(info *types.Info, k *syntax.KeyElem) string {
	if s, ok := k.Annotations.Text("name"); ok {
		return s
	}
	return Path(info, k.X)
}

// Path returns the control plane's name of the place x, or "" if x is not a place.
func Path(info *types.Info, x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.Name:
		return x.Value
	case *syntax.IntLit:
		return literal(x)
	case *syntax.SelectorExpr:
		return member(info, x)
	case *syntax.IndexExpr:
		if b, i := Path(info, x.X), Path(info, x.Index); b != "" && i != "" {
			return b + "[" + i + "]"
		}
	case *syntax.SliceExpr:
		if x.Width != nil {
			return ""
		}
		if b, h, lo := Path(info, x.X), Path(info, x.Hi), Path(info, x.Lo); b != "" && h != "" && lo != "" {
			return b + "[" + h + ":" + lo + "]"
		}
	case *syntax.BinaryExpr:
		if x.Op == syntax.And {
			if a, b := Path(info, x.X), Path(info, x.Y); a != "" && b != "" {
				return a + " & " + b
			}
		}
	case *syntax.CallExpr:
		if call := info.Calls[x]; call != nil && call.Builtin == "isValid" {
			if b := Path(info, call.Recv); b != "" {
				return b + ".$valid$"
			}
		}
	}
	return ""
}

func member(info *types.Info, x *syntax.SelectorExpr) string {
	name := x.Sel.Value
	if s, ok := types.Underlying(info.Types[syntax.Unparen(x.X)].Type).(*types.Struct); ok {
		if i := s.FieldIndex(name); i >= 0 && s.Fields[i].Decl != nil {
			f := s.Fields[i].Decl
			name = Declared("", f.Annotations, f.Name)
			if absolute, ok := f.Annotations.Text("name"); ok && strings.HasPrefix(absolute, ".") {
				return absolute[1:]
			}
		}
	}
	if b := Path(info, x.X); b != "" {
		return b + "." + name
	}
	return ""
}

// literal returns a number in its original base, without width, underscores and
// leading zeros.
func literal(x *syntax.IntLit) string {
	text := strings.ToLower(x.Text)
	for prefix, base := range map[string]int{"0x": 16, "0b": 2, "0o": 8} {
		if strings.HasPrefix(text[strings.IndexAny(text, "ws")+1:], prefix) {
			return prefix + x.Value.Text(base)
		}
	}
	return x.Value.String()
}

// Pipes lists the distinct programs in the arguments of TNA's package Switch, and
// the index of the program of each pipe. For other packages, both are empty.
func Pipes(info *types.Info, call *types.Call) (pipes []syntax.Expr, of []int) {
	if pkg, ok := call.Result.(*types.Package); !ok || pkg.Name != "Switch" && pkg.Name != "MultiParserSwitch" {
		return nil, nil
	}
	for _, arg := range call.Args {
		if arg == nil {
			continue
		}
		k := slices.IndexFunc(pipes, func(p syntax.Expr) bool {
			x, ok1 := syntax.Unparen(p).(*syntax.Name)
			y, ok2 := syntax.Unparen(arg).(*syntax.Name)
			return ok1 && ok2 && info.Uses[x] == info.Uses[y]
		})
		if k < 0 {
			k = len(pipes)
			pipes = append(pipes, arg)
		}
		of = append(of, k)
	}
	return pipes, of
}

// Pipe returns the name of the k-th of several pipes.
func Pipe(pipe syntax.Expr, k int) string {
	if n, ok := syntax.Unparen(pipe).(*syntax.Name); ok {
		return n.Value
	}
	return fmt.Sprintf("pipe%d", k)
}

// Tofino2 reports whether a program is compiled for Tofino 2, where 192 bits of port
// metadata precede the packet. tna.p4 serves both chips, so the architecture alone
// does not identify the chip.
func Tofino2(info *types.Info) bool {
	o := info.Top["PORT_METADATA_SIZE"]
	if o == nil {
		return false
	}
	d, ok := o.Decl.(*syntax.ConstDecl)
	if !ok {
		return false
	}
	n := types.Number(info.Types[syntax.Unparen(d.Value)].Value)
	return n != nil && n.IsInt64() && n.Int64() == 192
}
