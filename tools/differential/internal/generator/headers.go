package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// A headers holds the headers of a program. in is the first header of every packet.
// result is valid from the beginning of ingress. The others may be invalid.
type headers struct {
	in, result *source.Expr
	optional   []*source.Expr
	stack      *source.Expr
	union      *source.Expr
	members    []*source.Expr // members of the union
	varbit     *source.Expr
	guarded    []*source.Expr // headers that are known to be valid here and must stay valid
}

// headerType declares a header type of whole bytes.
func (g *generator) headerType(name string, n int) *source.Struct {
	t := &source.Struct{Name: name, Kind: source.HeaderKind}
	bits := 0
	for range n {
		typ := g.fieldType(false)
		switch e := typ.(type) {
		case source.Bits:
			bits += e.Width
		case source.Bool:
			bits++
		case *source.Enum:
			if e.Under == nil {
				typ = source.Bits{Width: 8}
				bits += 8
			} else {
				bits += e.Under.Width
			}
		}
		t.Fields = append(t.Fields, source.Field{Name: g.name("f"), Type: typ})
	}
	if bits%8 != 0 {
		t.Fields = append(t.Fields, source.Field{Name: g.name("pad"), Type: source.Bits{Width: 8 - bits%8}})
	}
	g.p.DeclareType(t)
	return t
}

// layout declares the headers and the metadata.
func (g *generator) layout() {
	hdr := &source.Struct{Name: "headers_t"}
	add := func(name string, t source.Type) int {
		hdr.Fields = append(hdr.Fields, source.Field{Name: name, Type: t})
		return len(hdr.Fields) - 1
	}
	in := g.headerType("in_t", 2+g.r.IntN(5))
	in.Fields = append([]source.Field{{Name: "sel", Type: source.Bits{Width: 8}}}, in.Fields...)
	inAt := add("h_in", in)
	result := g.headerType("res_t", 2+g.r.IntN(6))
	g.sum = len(result.Fields)
	result.Fields = append(result.Fields, source.Field{Name: "sum", Type: source.Bits{Width: 16}})
	resultAt := add("h_res", result)
	var optional []int
	for range 1 + g.r.IntN(2) {
		optional = append(optional, add(g.name("h_opt"), g.headerType(g.name("opt_t"), 1+g.r.IntN(4))))
	}
	if g.one(3) {
		optional = append(optional, add(g.name("h_opt"), hdr.Fields[optional[0]].Type))
	}
	stack, union, varbit := -1, -1, -1
	if g.one(3) {
		g.p.Use("header stack")
		t := &source.Struct{Name: "item_t", Kind: source.HeaderKind, Fields: []source.Field{{Name: "last", Type: source.Bits{Width: 1}}, {Name: "x", Type: source.Bits{Width: 7}}}}
		if g.one(2) {
			t.Fields = append(t.Fields, source.Field{Name: "y", Type: source.Bits{Width: pick(g, []int{8, 16, 64}), Signed: g.one(3)}})
		}
		g.p.DeclareType(t)
		stack = add("stk", &source.Stack{Elem: t, Size: 2 + g.r.IntN(3)})
	}
	if g.one(4) {
		g.p.Use("header union")
		t := &source.Struct{Name: "un_t", Kind: source.UnionKind}
		for range 2 {
			t.Fields = append(t.Fields, source.Field{Name: g.name("u"), Type: g.headerType(g.name("mem_t"), 1+g.r.IntN(2))})
		}
		g.p.DeclareType(t)
		union = add("un", t)
	}
	if g.one(5) {
		g.p.Use("varbit")
		t := &source.Struct{Name: "var_t", Kind: source.HeaderKind, Fields: []source.Field{{Name: "len", Type: source.Bits{Width: 8}}, {Name: "data", Type: source.Varbit{Max: 32}}}}
		g.p.DeclareType(t)
		varbit = add("vb", t)
	}
	copied := -1
	if g.p.Tofino != nil && g.one(3) {
		g.mirror = &mirror{late: g.p.Arch == source.T2NA && g.one(3)}
		if g.one(2) {
			bit := func(n int) source.Field { return source.Field{Name: g.name("f"), Type: source.Bits{Width: n}} }
			t := &source.Struct{Name: "mir_t", Kind: source.HeaderKind, Fields: []source.Field{bit(8), bit(pick(g, []int{8, 16, 32})), bit(5), bit(3)}}
			g.p.DeclareType(t)
			copied = add("h_mir", t)
		}
	}
	g.p.DeclareType(hdr)
	meta := &source.Struct{Name: "meta_t"}
	for range 3 + g.r.IntN(5) {
		f := source.Field{Name: g.name("m"), Type: g.fieldType(true)}
		if g.p.Arch == source.V1model && g.one(3) {
			f.Notes = "@field_list(1) "
		}
		meta.Fields = append(meta.Fields, f)
	}
	for _, w := range []int{8, 16, 32} { // places to which slices and small results can be assigned
		meta.Fields = append(meta.Fields, source.Field{Name: g.name("m"), Type: source.Bits{Width: w}})
	}
	g.p.DeclareType(meta)
	g.p.Hdr, g.p.Meta = &source.Var{Name: "hdr", Type: hdr}, &source.Var{Name: "meta", Type: meta}

	h := g.p.Hdr.Ref()
	g.headers = headers{in: source.Select(h, inAt), result: source.Select(h, resultAt)}
	for _, i := range optional {
		g.headers.optional = append(g.headers.optional, source.Select(h, i))
	}
	if stack >= 0 {
		g.headers.stack = source.Select(h, stack)
	}
	if union >= 0 {
		g.headers.union = source.Select(h, union)
		g.headers.members = []*source.Expr{source.Select(g.headers.union, 0), source.Select(g.headers.union, 1)}
	}
	if copied >= 0 {
		g.mirror.header = source.Select(h, copied)
	}
	if varbit >= 0 {
		g.headers.varbit = source.Select(h, varbit)
	}
}

// validities returns the headers whose validity may be tested here.
func (g *generator) validities() []*source.Expr {
	if g.where == inFunction || g.where == inParser || g.sub {
		return nil
	}
	list := append([]*source.Expr{g.headers.in}, g.headers.optional...)
	list = append(list, g.headers.members...)
	if g.headers.union != nil {
		list = append(list, g.headers.union)
	}
	if g.headers.varbit != nil {
		list = append(list, g.headers.varbit)
	}
	if g.headers.stack != nil {
		list = append(list, g.element())
	}
	return list
}

// element returns an element of the stack, with a constant or computed index.
func (g *generator) element() *source.Expr {
	t := g.headers.stack.Type.(*source.Stack)
	if g.one(3) && g.where == inControl {
		if n := g.small(2); n != nil && t.Size == 4 {
			g.p.Use("computed index")
			return source.Index(g.headers.stack, n)
		}
	}
	return source.Index(g.headers.stack, source.Literal(source.Bits{Width: 32}, big.NewInt(int64(g.r.IntN(t.Size))), 10, false))
}

// small returns a w-bit number taken from a place, or nil if there is none.
func (g *generator) small(w int) *source.Expr {
	list := g.find(func(p place) bool { t, ok := p.x.Type.(source.Bits); return ok && !t.Signed && t.Width >= w })
	if len(list) == 0 {
		return nil
	}
	x := pick(g, list).x
	return source.Slice(x, w-1, 0)
}

// isGuarded reports whether h must stay valid here.
func (g *generator) isGuarded(h *source.Expr) bool {
	for _, x := range g.headers.guarded {
		if x == h || x.Text == h.Text {
			return true
		}
	}
	return false
}

// headerStatement makes headers valid or invalid, uses their fields, or pushes and
// pops stack elements.
func (g *generator) headerStatement(b *source.Block) {
	if g.where != inControl || g.sub {
		return
	}
	if g.headers.stack != nil && g.one(3) {
		g.stackStatement(b)
		return
	}
	list := append([]*source.Expr(nil), g.headers.optional...)
	list = append(list, g.headers.members...)
	h := pick(g, list)
	var union *source.Expr
	for _, m := range g.headers.members {
		if m == h {
			union = g.headers.union
		}
	}
	for _, m := range g.headers.members { // a member that becomes valid would make the guarded one invalid
		if union != nil && g.isGuarded(m) {
			return
		}
	}
	t := h.Type.(*source.Struct)
	switch g.r.IntN(6) {
	case 0:
		if !g.isGuarded(h) {
			g.p.Use("setInvalid")
			b.Add(source.SetValid(h, union, false))
		}
	case 1:
		if g.isGuarded(h) {
			return
		}
		g.p.Use("setValid")
		b.Add(source.SetValid(h, union, true))
		for i, f := range t.Fields {
			b.Add(source.Assign(source.Select(h, i), g.value(f.Type, 2)))
		}
	case 2:
		if !g.isGuarded(h) {
			g.p.Use("header assignment")
			x := g.aggregate(t, 2)
			for _, o := range g.headers.optional {
				if o != h && same(o.Type, t) && g.one(2) {
					x = o
				}
			}
			b.Add(source.Assign(h, x))
		}
	default:
		g.guard(b, h)
	}
}

// guard adds statements that use a header's fields under isValid().
func (g *generator) guard(b *source.Block, h *source.Expr) {
	g.p.Use("isValid")
	then := new(source.Block)
	g.headers.guarded = append(g.headers.guarded, h)
	g.with(func() {
		g.add(h, true)
		g.assign(then)
		g.fill(then, 1+g.r.IntN(3))
	})
	g.headers.guarded = g.headers.guarded[:len(g.headers.guarded)-1]
	var orElse *source.Block
	if g.one(3) {
		orElse = g.nested()
	}
	b.Add(source.If(source.IsValid(h), then, orElse))
}

func (g *generator) stackStatement(b *source.Block) {
	s := g.headers.stack
	t := s.Type.(*source.Stack)
	for _, h := range g.headers.guarded {
		if h.Type == t.Elem {
			return
		}
	}
	switch g.r.IntN(5) {
	case 0:
		g.p.Use("push_front")
		n := 1 + g.r.IntN(2)
		b.Add(source.Push(s, n))
		for i := range n {
			e := source.Index(s, source.Literal(source.Bits{Width: 32}, big.NewInt(int64(i)), 10, false))
			if g.one(2) {
				b.Add(source.Assign(e, g.aggregate(t.Elem, 2)))
			}
		}
	case 1:
		g.p.Use("pop_front")
		b.Add(source.Pop(s, 1+g.r.IntN(2)))
	case 2:
		b.Add(source.Assign(g.element(), g.aggregate(t.Elem, 2)))
	default:
		e := g.element()
		then := new(source.Block)
		g.headers.guarded = append(g.headers.guarded, e)
		g.with(func() { // the block could change the index, so use one statement, which reads it first
			for i := range t.Elem.Fields {
				b := source.Select(e, i)
				g.places = append(g.places, place{b, true})
			}
			g.assign(then)
		})
		g.headers.guarded = g.headers.guarded[:len(g.headers.guarded)-1]
		b.Add(source.If(source.IsValid(e), then, nil))
	}
}
