package lower

import (
	"fmt"
	"math/big"
	"sort"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// declareKey decides how BMv2 reads an element of the key. If inPlace is set and
// the element is a field, BMv2 reads the field. Otherwise, it reads a variable that
// is set before the table. inPlace is false if any element of the key calls a
// function, because all elements are then evaluated in order before the lookup. p4c
// decides in the same way (KeySideEffect). As a result, a mask in a key with a call
// applies to the value and not to the lookup, in both compilers.
func (l *lowerer) declareKey(t *table, k *syntax.KeyElem, inPlace bool) *tableKey {
	key := &tableKey{elem: k, kind: k.Match.Value, name: names.Key(l.info, k), typ: t.env.typeOf(k.X)}
	st, ok := scalarOf(key.typ)
	if !ok {
		l.unsupported(k, "a key of type %s", key.typ)
	}
	key.st = st
	if isNothing(key.typ) {
		key.absent = true
		return key
	}
	switch key.kind {
	case "exact", "lpm", "ternary", "range", "optional", "selector":
	case "atcam_partition_index", "dleft_hash": // they concern only how the hardware searches
		key.kind = "exact"
	default:
		l.unsupported(k, "the match kind %s", key.kind)
	}
	if !inPlace || !l.directKey(key, t.env) {
		key.temp = l.temp(st)
		key.target = bmv2.FieldRef{Header: key.temp.header, Field: key.temp.name}
	}
	return key
}

// directKey recognises keys that BMv2 can read directly: fields, validity bits, and
// fields under a constant mask.
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
		of, mask := b.X, l.number(b.Y)
		if mask == nil {
			of, mask = b.Y, l.number(b.X)
		}
		f, isField := l.pure(of, e).(*field)
		if isField && mask != nil {
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

// calls reports whether x contains a call other than isValid and constants such as
// minSizeInBits.
func (l *lowerer) calls(x syntax.Expr) bool {
	found := false
	syntax.Inspect(x, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && l.info.Types[c].Value == nil {
			if call := l.info.Calls[c]; call != nil && !(call.Kind == types.BuiltinCall && call.Builtin == "isValid") {
				found = true
			}
		}
		return !found
	})
	return found
}

// number returns the value of x if x is a number known at compile time, or nil.
func (l *lowerer) number(x syntax.Expr) *big.Int {
	n, _ := l.info.Types[syntax.Unparen(x)].Value.(*big.Int)
	return n
}

// pure evaluates x, or returns nil if that needs code.
func (l *lowerer) pure(x syntax.Expr, e *env) (v value) {
	code := l.sub(func() { v = l.eval(x, e) })
	if len(code) > 0 {
		return nil
	}
	return v
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

// actionData returns the constant arguments for the control plane's parameters: the
// last n arguments of the call.
func (l *lowerer) actionData(call *types.Call, e *env, n int) []string {
	data := []string{}
	for k, p := range call.Type.Params {
		if p.Dir != syntax.NoDir || isNothing(e.subst(p.Type)) {
			continue
		}
		var arg syntax.Expr
		if k < len(call.Args) {
			arg = call.Args[k]
		}
		v, _ := l.argument(arg, call.Type, k, e).(*ex)
		if v == nil || !v.isConst() {
			l.errorf(l.at, "argument %s of action %s must be a constant", p.Name, call.Callee.Name)
			continue
		}
		if st, ok := scalarOf(e.subst(p.Type)); ok {
			v = cast(v, scalar{width: st.width})
		}
		data = append(data, bmv2.HexString(v.v, 0))
	}
	if len(data) > n {
		data = data[len(data)-n:]
	}
	return data
}

// entries adds the program's own entries, in order of priority.
func (l *lowerer) entries(t *table) {
	if t.decl.Entries == nil {
		return
	}
	t.out.Entries = []*bmv2.Entry{}
	seen := map[string]bool{} // keys so far, if entries are not ordered by priority
	for i, en := range l.byPriority(t) {
		l.at = en
		call := l.info.ActionRefs[en.Action]
		if call == nil {
			continue
		}
		a := t.find(call.Callee)
		if a == nil {
			continue
		}
		out := &bmv2.Entry{SourceInfo: l.source(en), Priority: i + 1, ActionEntry: &bmv2.ActionEntry{
			ActionID: a.out.ID, ActionData: l.actionData(call, t.env, len(a.out.RuntimeData)),
		}}
		out.IsConst = en.Const && !t.decl.Entries.Const
		if an := en.Annotations.Get("priority"); an != nil && len(an.Exprs) == 1 {
			if lit, ok := an.Exprs[0].(*syntax.IntLit); ok {
				out.Priority = int(lit.Value.Int64())
			}
		}
		keys := en.Keys
		if len(keys) == 1 {
			if list, ok := syntax.Unparen(keys[0]).(*syntax.ListExpr); ok && len(t.keys) == len(list.Elems) {
				keys = list.Elems
			}
		}
		id := ""
		for k, key := range t.keys {
			if k < len(keys) && key.kind != "selector" && !key.absent {
				m, match := l.matchKey(key, keys[k], t.env)
				out.MatchKey = append(out.MatchKey, m)
				id += match
			}
		}
		if t.out.MatchType == "exact" || t.out.MatchType == "lpm" {
			if seen[id] {
				l.errorf(en, "an earlier entry of table %s has the same key: remove one", t.name)
			}
			seen[id] = true
		}
		t.out.Entries = append(t.out.Entries, out)
	}
	l.at = t.decl
}

// byPriority returns the entries in the order in which they match. Without
// priorities, this is the written order. With priorities, the largest matches
// first, unless largest_priority_wins is false.
func (l *lowerer) byPriority(t *table) []*syntax.Entry {
	list := append([]*syntax.Entry(nil), t.decl.Entries.List...)
	largest, delta := true, int64(1)
	if p := t.decl.Property("largest_priority_wins"); p != nil {
		largest = l.scalar(p.Value, t.env).isTrue()
	}
	if p := t.decl.Property("priority_delta"); p != nil {
		if v := l.scalar(p.Value, t.env); v.isConst() {
			delta = v.v.Int64()
		}
	}
	prio := map[*syntax.Entry]int64{}
	any, current := false, int64(0)
	for i, en := range list {
		if en.Priority != nil {
			any = true
			current = l.scalar(en.Priority, t.env).v.Int64()
		} else if i > 0 {
			if largest {
				current -= delta
			} else {
				current += delta
			}
		}
		prio[en] = current
	}
	if any {
		sort.SliceStable(list, func(i, j int) bool {
			a, b := prio[list[i]], prio[list[j]]
			return a != b && a > b == largest
		})
	}
	return list
}

// matchKey lowers one keyset of an entry. It also returns a text that identifies
// the packets matched by an exact or lpm key: equal texts match the same packets.
func (l *lowerer) matchKey(k *tableKey, x syntax.Expr, e *env) (*bmv2.MatchKey, string) {
	x = syntax.Unparen(x)
	value, mask, last := l.keyset(x, k.st, e)
	n := bytesOf(k.st.width)
	hex := func(v *big.Int) string { return bmv2.HexString(wrap(v, scalar{width: k.st.width}), n) }
	out := &bmv2.MatchKey{MatchType: k.kind, Key: hex(value)}
	switch k.kind {
	case "exact":
		if mask != nil && wrap(mask, scalar{width: k.st.width}).Cmp(maskOf(k.st.width)) != 0 || last != nil {
			l.errorf(x, "an exact key takes one value")
		}
	case "lpm":
		length, ok := prefixLength(mask, k.st.width)
		if !ok {
			l.errorf(x, "the mask of an lpm key must be a prefix")
		}
		out.PrefixLength = length
	case "ternary", "optional":
		out.MatchType = bmv2.MatchTernary
		if mask == nil {
			mask = maskOf(k.st.width)
		} else if _, masked := x.(*syntax.MaskExpr); masked && k.kind == "optional" {
			l.errorf(x, "an optional key takes a value or _, not a value under a mask")
		}
		out.Mask = hex(mask)
	case "range":
		out.Key, out.Start, out.End = "", hex(value), hex(value)
		if last != nil {
			out.End = hex(last)
		} else if mask != nil {
			out.End = hex(maskOf(k.st.width))
		}
	}
	compared := l.underMask(k, value, mask, x)
	return out, fmt.Sprintf("%s/%d;", hex(compared), out.PrefixLength)
}

// underMask returns the bits of an entry's value that the switch compares. For a
// masked key (key = { h.a & 0x0F: exact; }), the switch ignores the other bits of
// the value. By the specification, such an entry would never match.
func (l *lowerer) underMask(k *tableKey, value, mask *big.Int, x syntax.Expr) *big.Int {
	if k.mask == nil || k.kind == "range" {
		return value
	}
	asked := wrap(value, scalar{width: k.st.width})
	if mask != nil {
		asked.And(asked, mask)
	}
	compared := new(big.Int).And(asked, k.mask)
	if compared.Cmp(asked) != 0 {
		n := bytesOf(k.st.width)
		l.report(x, true, "key %s: the entry %s has bits outside of the mask %s, which %s ignores: it matches %s",
			k.name, bmv2.HexString(asked, n), bmv2.HexString(k.mask, n), l.arch.traits().target, bmv2.HexString(compared, n))
	}
	return compared
}

// keyset evaluates a constant keyset: a value, a value with a mask, or a range that
// ends at last.
func (l *lowerer) keyset(x syntax.Expr, st scalar, e *env) (value, mask, last *big.Int) {
	number := func(x syntax.Expr) *big.Int {
		v := l.scalar(x, e)
		if !v.isConst() {
			l.unsupported(x, "a keyset that is not constant")
		}
		return v.v
	}
	switch x := x.(type) {
	case *syntax.DefaultExpr, *syntax.DontCare:
		return new(big.Int), new(big.Int), nil
	case *syntax.MaskExpr:
		return number(x.X), number(x.Mask), nil
	case *syntax.RangeExpr:
		return number(x.Lo), nil, number(x.Hi)
	}
	return number(x), nil, nil
}

// prefixLength returns the length of the prefix of width bits that mask describes;
// a nil mask is the full one.
func prefixLength(mask *big.Int, width int) (int, bool) {
	if mask == nil {
		return width, true
	}
	m := wrap(mask, scalar{width: width})
	n := 0
	for n < width && m.Bit(width-1-n) == 1 {
		n++
	}
	want := new(big.Int).Lsh(maskOf(n), uint(width-n))
	return n, m.Cmp(want) == 0
}
