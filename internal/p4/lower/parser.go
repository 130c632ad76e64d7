package lower

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// lowerParser lowers a parser block.
func (l *lowerer) lowerParser(name string, inst *instance, args ...value) *bmv2.Parser {
	l.block = parserBlock
	p := inst.typ.(*types.Parser)
	out := &bmv2.Parser{Name: name, ID: l.nextID("parsers"), InitState: "start", ParseStates: []*bmv2.ParseState{}}
	l.cfg.Parsers = append(l.cfg.Parsers, out)
	c := l.inCode(func() {
		e := inst.env.child()
		for i, prm := range p.Decl.Params {
			e.bind(l.info.Defs[prm], args[i])
		}
		l.parserBody(inst, p, e, nil)
	})
	s := &states{l: l, out: out, names: map[string]int{}}
	list := l.prune(c.list)
	s.label = map[*label]string{}
	for _, i := range list {
		if i.kind == iLabel {
			base := i.label.name
			if base == "" {
				base = s.base + "_join"
			} else {
				s.base = base
			}
			s.label[i.label] = s.fresh(base)
		}
	}
	if len(list) == 0 || list[0].kind != iLabel {
		s.open(s.fresh("start"))
	}
	for _, i := range list {
		s.add(i)
	}
	s.close(nil)
	if len(s.out.ParseStates) > 0 {
		s.out.InitState = s.out.ParseStates[0].Name
	}
	return out
}

// packet returns an instance that represents the parser's packet_in or the
// deparser's packet_out.
func (l *lowerer) packet(p *syntax.Param) *instance {
	t, _ := l.info.Defs[p].Type.(*types.Extern)
	return &instance{typ: t, name: p.Name.Value, at: p}
}

// parserBody lowers the locals and states. Accept continues at done, or ends the
// parser if done is nil.
func (l *lowerer) parserBody(inst *instance, p *types.Parser, e *env, done *label) {
	l.instanceLocals(inst, p.Decl.Locals)
	for _, d := range p.Decl.Locals {
		l.at = d
		switch d := d.(type) {
		case *syntax.InstDecl:
		case *syntax.ValueSetDecl:
			l.valueSet(d, inst, e)
		default:
			l.localDecl(d, e)
		}
	}
	for _, s := range p.Decl.States {
		name := names.Declared("", s.Annotations, s.Name)
		if done != nil {
			name = inst.name + "." + name
		}
		e.bind(l.info.Defs[s], &label{name: name, used: true})
	}
	for _, s := range p.Decl.States {
		if s.Name.Value == "start" {
			l.jump(l.stateLabel(l.info.Defs[s], e, done))
		}
	}
	l.enter(p.Decl, func() {
		for _, s := range p.Decl.States {
			l.state(s, e, done)
		}
	})
}

func (l *lowerer) state(s *syntax.StateDecl, e *env, done *label) {
	l.spend(costStmt)
	lb, _ := e.lookup(l.info.Defs[s])
	l.emitLabel(lb.(*label))
	body := e.child()
	l.stmts(s.Stmts, body)
	saved := l.at
	l.at = s
	defer func() { l.at = saved }()
	switch t := s.Transition.(type) {
	case nil:
		l.add(&instr{kind: iAccept})
	case *syntax.Name:
		l.goTo(l.info.Uses[t], t, e, done)
	case *syntax.SelectExpr:
		// BMv2 selects on fields only, so other keys are copied to variables. The
		// keyset is one string of bytes.
		var vals []value
		for _, a := range t.Args {
			vals = append(vals, l.evalNext(vals, a, body))
		}
		var keys []*ex
		for i, a := range t.Args {
			keys = append(keys, l.selectKeys(vals[i], a)...)
		}
		in := &instr{kind: iSelect, keys: keys, at: t}
		for _, c := range t.Cases {
			in.cases = append(in.cases, l.selectCases(c, keys, body, done)...)
		}
		l.add(in)
	}
}

// goTo continues at a state. In BMv2, and in p4c's output for Tofino, a rejected
// packet continues to the ingress with the parser's error. So reject ends the parser
// as accept does.
func (l *lowerer) goTo(o *types.Object, at *syntax.Name, e *env, done *label) {
	lb := l.stateLabel(o, e, done)
	if lb == nil {
		l.add(&instr{kind: iAccept})
		return
	}
	l.jump(lb)
}

// stateLabel returns the label of the state o, or nil if the transition ends the
// parser.
func (l *lowerer) stateLabel(o *types.Object, e *env, done *label) *label {
	if o == nil {
		return nil
	}
	if v, ok := e.lookup(o); ok {
		return v.(*label)
	}
	if o.Name == "accept" {
		return done
	}
	return nil
}

func (l *lowerer) selectKeys(v value, at syntax.Expr) []*ex {
	if a, ok := v.(*aggregate); ok {
		return slices.Concat(lists.Map(a.elems, func(el value) []*ex { return l.selectKeys(el, at) })...)
	}
	x := l.toEx(v, at)
	switch {
	case x.op == opField && !x.st.bool, x.op == opLast:
		return []*ex{x}
	case x.op == opLookahead:
		return []*ex{x}
	}
	if x.st.width == 0 {
		x = cast(x, code32)
	}
	t := l.temp(x.st)
	l.set(t, x)
	return []*ex{fieldEx(t)}
}

// selectCases lowers one case. It splits a range into masks.
func (l *lowerer) selectCases(c *syntax.SelectCase, keys []*ex, e *env, done *label) []selectCase {
	next := l.stateLabel(l.info.Uses[c.Next], e, done)
	x := syntax.Unparen(c.Key)
	if n, ok := x.(*syntax.Name); ok {
		if o := l.info.Uses[n]; o != nil && o.Kind == types.ValueSetObj {
			v, _ := e.lookup(o)
			return []selectCase{{vset: v.(string), next: next}}
		}
	}
	if isDefault(x) {
		return []selectCase{{next: next}}
	}
	parts := l.keysetParts(x, keys, e)
	combos := [][]byteKey{nil}
	for i, k := range keys {
		var grown [][]byteKey
		alts := l.alternatives(parts[i], k.st, e)
		if len(alts)*len(combos) > maxKeysets {
			l.unsupported(x, "a keyset with ranges that become more than %d values with masks (docs/limits.md)", maxKeysets)
		}
		l.spend(len(alts) * len(combos) * (i + 1))
		for _, alt := range alts {
			for _, c := range combos {
				grown = append(grown, append(append([]byteKey(nil), c...), alt))
			}
		}
		combos = grown
	}
	return lists.Map(combos, func(c []byteKey) selectCase { return selectCase{bytes: c, next: next} })
}

func isDefault(x syntax.Expr) bool {
	switch x.(type) {
	case *syntax.DefaultExpr, *syntax.DontCare:
		return true
	}
	return false
}

// keysetParts lists the keyset of each key, with structs flattened.
func (l *lowerer) keysetParts(x syntax.Expr, keys []*ex, e *env) []any {
	var parts []any
	var add func(x syntax.Expr)
	add = func(x syntax.Expr) {
		x = syntax.Unparen(x)
		if list, ok := x.(*syntax.ListExpr); ok {
			for _, el := range list.Elems {
				add(el)
			}
			return
		}
		if a, ok := l.constantOf(x, e).(*aggregate); ok {
			for _, el := range a.elems {
				parts = append(parts, el)
			}
			return
		}
		parts = append(parts, x)
	}
	add(x)
	if len(parts) != len(keys) {
		l.unsupported(x, "a keyset of %d values for %d keys", len(parts), len(keys))
	}
	return parts
}

func (l *lowerer) constantOf(x syntax.Expr, e *env) value {
	if tv := l.info.Types[x]; tv.Value != nil {
		return l.constant(tv.Value, e.subst(tv.Type))
	}
	return nil
}

// alternatives returns the pairs of value and mask that together match one keyset.
func (l *lowerer) alternatives(part any, st scalar, e *env) []byteKey {
	full := constEx(maskOf(st.width), scalar{width: st.width})
	key := func(v, m *big.Int) byteKey {
		u := scalar{width: st.width}
		k := byteKey{value: constEx(wrap(v, u), u), width: st.width, mask: full}
		if m != nil {
			k.mask = constEx(wrap(m, u), u)
		}
		return k
	}
	x, ok := part.(syntax.Expr)
	if !ok {
		v, _ := part.(*ex)
		if v == nil || !v.isConst() {
			l.unsupported(l.at, "a keyset that is not constant")
		}
		return []byteKey{key(v.v, nil)}
	}
	value, mask, last := l.keyset(x, st, e)
	if last == nil {
		return []byteKey{key(value, mask)}
	}
	return lists.Map(prefixes(value, last, st.width), func(p [2]*big.Int) byteKey { return key(p[0], p[1]) })
}

// prefixes returns the fewest value/mask pairs that cover lo..hi.
func prefixes(lo, hi *big.Int, width int) [][2]*big.Int {
	var out [][2]*big.Int
	one := big.NewInt(1)
	at := new(big.Int).Set(lo)
	for at.Cmp(hi) <= 0 {
		bits := 0
		for bits < width && at.Bit(bits) == 0 {
			end := new(big.Int).Add(at, maskOf(bits+1))
			if end.Cmp(hi) > 0 {
				break
			}
			bits++
		}
		mask := new(big.Int).AndNot(maskOf(width), maskOf(bits))
		out = append(out, [2]*big.Int{new(big.Int).Set(at), mask})
		at.Add(at, new(big.Int).Lsh(one, uint(bits)))
	}
	return out
}

// valueSet declares a parser value set.
func (l *lowerer) valueSet(d *syntax.ValueSetDecl, inst *instance, e *env) {
	name := names.Declared(inst.name, d.Annotations, d.Name)
	size := l.scalar(d.Size, e)
	if !size.isConst() {
		l.errorf(d.Size, "the size of value set %s must be a constant", name)
		return
	}
	o := l.info.Defs[d]
	elem := e.subst(o.Type)
	if s, ok := elem.(*types.Set); ok {
		elem = s.Elem
	}
	l.cfg.ParseVSets = append(l.cfg.ParseVSets, &bmv2.ParseVSet{
		Name: name, ID: l.nextID("parse_vsets"), CompressedBitwidth: l.widthOf(elem), MaxSize: int(size.v.Int64()),
	})
	e.bind(o, name)
}

// widthOf returns the number of bits of all scalars in t.
func (l *lowerer) widthOf(t types.Type) int {
	if st, ok := scalarOf(t); ok {
		return st.width
	}
	n := 0
	_, parts, _ := components(t)
	for _, p := range parts {
		n += l.widthOf(p)
	}
	return n
}

func (l *lowerer) extract(x *syntax.CallExpr, call *types.Call, e *env) {
	if call.Args[0] == nil {
		// Without a destination, skip as many bytes as the header has.
		t := e.subst(call.Type.Params[0].Type)
		s, ok := types.Underlying(t).(*types.Struct)
		if !ok {
			l.unsupported(x, "extracting a %s", t)
		}
		l.prim("advance", intEx(int64(l.widthOf(s)), code32))
		return
	}
	dst := l.eval(call.Args[0], e)
	if el, ok := dst.(*element); ok && el.isHeader() {
		// The index of the stack's element is known only at run time.
		var length *ex
		if len(call.Args) > 1 {
			length = l.settled(l.scalar(call.Args[1], e))
		}
		l.eachElement(el, func(v value) {
			if length != nil {
				l.prim("extract_VL", l.extractTarget(v, x), length)
				return
			}
			l.prim("extract", l.extractTarget(v, x))
		})
		return
	}
	op, args := "extract", []any{l.extractTarget(dst, x)}
	if len(call.Args) > 1 {
		op = "extract_VL"
		args = append(args, l.scalar(call.Args[1], e))
	}
	l.prim(op, args...)
}

func (l *lowerer) extractTarget(dst value, x *syntax.CallExpr) *bmv2.Expr {
	switch d := dst.(type) {
	case *header:
		return &bmv2.Expr{Type: bmv2.TypeRegular, Name: d.name}
	case *next:
		if !d.stack.union {
			return &bmv2.Expr{Type: bmv2.TypeStack, Name: d.stack.name}
		}
		if d.member >= 0 {
			member := d.stack.elems[0].(*union).typ.Fields[d.member].Name
			return &bmv2.Expr{Type: bmv2.TypeUnionStack, Name: d.stack.name, Member: member}
		}
	}
	l.unsupported(x, "extracting to this")
	return nil
}

// lookahead reads ahead without advancing. It reads a struct as one number and
// takes the fields out of it.
func (l *lowerer) lookahead(x *syntax.CallExpr, t types.Type) value {
	width := l.widthOf(t)
	if s, ok := types.Underlying(t).(*types.Struct); ok && width == 0 {
		return l.headerLiteral(&aggregate{typ: s})
	}
	if width == 0 {
		l.unsupported(x, "a lookahead of %s", t)
	}
	tmp := l.temp(scalar{width: width})
	l.set(tmp, &ex{op: opLookahead, n: width, st: tmp.st})
	at := width
	return l.cutOut(fieldEx(tmp), t, &at)
}

// cutOut takes the parts of t from the bits of x below *at, and decreases *at.
func (l *lowerer) cutOut(x *ex, t types.Type, at *int) value {
	if isNothing(t) {
		return nothing{}
	}
	if st, ok := scalarOf(t); ok {
		*at -= st.width
		return cast(slice(x, *at+st.width-1, *at), st)
	}
	s, isStruct := types.Underlying(t).(*types.Struct)
	a := &aggregate{typ: types.Underlying(t)}
	_, parts, _ := components(t)
	for _, p := range parts {
		a.elems = append(a.elems, l.cutOut(x, p, at))
	}
	if isStruct && s.Kind == syntax.StructKindHeader {
		return l.headerLiteral(a)
	}
	return a
}
