package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/names"
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
	key := &tableKey{elem: k, kind: k.Match.Value, name: names.Key(l.info, k), typ: t.env.typeOf(k.X)}
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
