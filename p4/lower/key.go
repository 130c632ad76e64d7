package lower

import (
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// A tableKey is one element of the key.
type tableKey struct {
	elem   *syntax.KeyElem
	kind   string
	name   string
	typ    types.Type
	st     scalar
	target bmv2.FieldRef
	mask   *big.Int
	temp   *field // set in front of each application, nil where the key is a field
	value  *ex
}

// declareKey decides how the key's element reaches BMv2.
func (l *lowerer) declareKey(t *table, k *syntax.KeyElem) *tableKey {
	key := &tableKey{elem: k, kind: k.Match.Value, name: l.keyName(k), typ: t.env.typeOf(k.X)}
	st, ok := scalarOf(key.typ)
	if !ok {
		l.unsupported(k, "a key of type %s", key.typ)
	}
	key.st = st
	switch key.kind {
	case "exact", "lpm", "ternary", "range", "optional", "selector":
	case "atcam_partition_index", "dleft_hash": // how the hardware finds it
		key.kind = "exact"
	default:
		l.unsupported(k, "the match kind %s", key.kind)
	}
	if !l.directKey(key, t.env) {
		key.temp = l.temp(st)
		key.target = bmv2.FieldRef{Header: key.temp.header, Field: key.temp.name}
	}
	return key
}

// directKey recognises keys that BMv2 can read in place: fields, validity bits
// and fields under a constant mask.
func (l *lowerer) directKey(key *tableKey, e *env) bool {
	x := syntax.Unparen(key.elem.X)
	if c, ok := x.(*syntax.CallExpr); ok {
		call := l.info.Calls[c]
		if call == nil || call.Kind != types.BuiltinCall || call.Builtin != "isValid" {
			return false
		}
		h, ok := l.pure(call.Recv, e).(*header)
		if ok {
			key.target = bmv2.FieldRef{Header: h.name, Field: "$valid$"}
			key.value = &ex{op: opValid, h: h, st: boolean}
		}
		return ok
	}
	if b, ok := x.(*syntax.BinaryExpr); ok && b.Op == syntax.And {
		mask, ok := l.info.Types[syntax.Unparen(b.Y)].Value.(*big.Int)
		f, isField := l.pure(b.X, e).(*field)
		if ok && isField && mask != nil {
			key.target, key.mask = bmv2.FieldRef{Header: f.header, Field: f.name}, wrap(mask, scalar{width: f.st.width})
			key.value = fieldEx(f)
			return true
		}
		return false
	}
	switch x.(type) {
	case *syntax.Name, *syntax.SelectorExpr, *syntax.IndexExpr:
		if f, ok := l.pure(x, e).(*field); ok && !f.st.varbit {
			key.target = bmv2.FieldRef{Header: f.header, Field: f.name}
			key.value = fieldEx(f)
			return true
		}
	}
	return false
}

// pure evaluates x if that needs no code, and gives nil otherwise.
func (l *lowerer) pure(x syntax.Expr, e *env) (v value) {
	code := l.sub(func() { v = l.eval(x, e) })
	if len(code) > 0 {
		return nil
	}
	return v
}

// keyValue computes a key that BMv2 cannot read in place.
func (l *lowerer) keyValue(k *tableKey, e *env) *ex {
	return cast(l.scalar(k.elem.X, e), k.st)
}

// keyName is the control plane's name of a key: its @name, or what it reads as.
func (l *lowerer) keyName(k *syntax.KeyElem) string {
	if a := k.Annotations.Get("name"); a != nil {
		if s, ok := annotationString(a); ok {
			return s
		}
	}
	return l.pathName(k.X)
}

// pathName writes the place x as the control plane sees it, "" where it is none.
func (l *lowerer) pathName(x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.Name:
		return x.Value
	case *syntax.IntLit:
		return literalName(x)
	case *syntax.SelectorExpr:
		return l.memberName(x)
	case *syntax.IndexExpr:
		if b, i := l.pathName(x.X), l.pathName(x.Index); b != "" && i != "" {
			return b + "[" + i + "]"
		}
	case *syntax.SliceExpr:
		if x.Width != nil {
			return ""
		}
		if b, h, lo := l.pathName(x.X), l.pathName(x.Hi), l.pathName(x.Lo); b != "" && h != "" && lo != "" {
			return b + "[" + h + ":" + lo + "]"
		}
	case *syntax.BinaryExpr:
		if x.Op == syntax.And {
			if a, b := l.pathName(x.X), l.pathName(x.Y); a != "" && b != "" {
				return a + " & " + b
			}
		}
	case *syntax.CallExpr:
		if call := l.info.Calls[x]; call != nil && call.Builtin == "isValid" {
			if b := l.pathName(call.Recv); b != "" {
				return b + ".$valid$"
			}
		}
	}
	return ""
}

// literalName is a number without width, underscores and leading zeros, in the
// base that it is written in.
func literalName(x *syntax.IntLit) string {
	text := strings.ToLower(x.Text)
	for prefix, base := range map[string]int{"0x": 16, "0b": 2, "0o": 8} {
		if strings.HasPrefix(text[strings.IndexAny(text, "ws")+1:], prefix) {
			return prefix + x.Value.Text(base)
		}
	}
	return x.Value.String()
}

func (l *lowerer) memberName(x *syntax.SelectorExpr) string {
	name := x.Sel.Value
	if s, ok := underlying(l.info.Types[syntax.Unparen(x.X)].Type).(*types.Struct); ok {
		if i := s.FieldIndex(name); i >= 0 && s.Fields[i].Decl != nil {
			f := s.Fields[i].Decl
			name = controlPlaneName("", f.Annotations, f.Name)
			if a := f.Annotations.Get("name"); a != nil {
				if v, ok := annotationString(a); ok && v != "" && v[0] == '.' {
					return v[1:]
				}
			}
		}
	}
	if b := l.pathName(x.X); b != "" {
		return b + "." + name
	}
	return ""
}

func (k *tableKey) emit() *bmv2.TableKey {
	out := &bmv2.TableKey{MatchType: k.kind, Name: k.name, Target: k.target}
	if k.kind == "optional" {
		out.MatchType = bmv2.MatchTernary
	}
	if k.mask != nil {
		out.Mask = bmv2.HexString(k.mask, bytesOf(k.st.width))
	}
	return out
}
