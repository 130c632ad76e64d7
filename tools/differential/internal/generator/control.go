package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// standardMetadata returns the part of v1model's standard metadata that programs
// use.
func standardMetadata() *source.Struct {
	bit := func(n int) source.Bits { return source.Bits{Width: n} }
	return &source.Struct{Name: "standard_metadata_t", Fields: []source.Field{
		{Name: "ingress_port", Type: bit(9)}, {Name: "egress_spec", Type: bit(9)}, {Name: "egress_port", Type: bit(9)},
		{Name: "instance_type", Type: bit(32)}, {Name: "packet_length", Type: bit(32)},
		{Name: "mcast_grp", Type: bit(16)}, {Name: "egress_rid", Type: bit(16)}, {Name: "checksum_error", Type: bit(1)},
		{Name: "parser_error", Type: &source.Enum{Name: "error", Members: append(append([]string(nil), coreErrors...), userErrors...)}},
	}}
}

func (g *generator) std(name string) *source.Expr {
	if t := g.p.Tofino; t != nil {
		for _, v := range []*source.Var{t.In, t.TM, t.Dprsr, t.Out, t.OutDprsr} {
			for i, f := range v.Type.(*source.Struct).Fields {
				if f.Name == name {
					return source.Select(v.Ref(), i)
				}
			}
		}
	}
	x := g.p.Std.Ref()
	for i, f := range x.Type.(*source.Struct).Fields {
		if f.Name == name {
			return source.Select(x, i)
		}
	}
	panic("no field " + name)
}

// controls builds the controls after the parser.
func (g *generator) controls() {
	if g.p.Tofino == nil {
		g.p.Std = &source.Var{Name: "sm", Type: standardMetadata()}
	}
	g.p.Verify, g.p.Compute, g.p.Deparser = new(source.Block), new(source.Block), new(source.Block)
	if t := g.p.Tofino; t != nil {
		t.EgressDeparser = new(source.Block)
	}
	g.subControls()
	g.p.Ingress = g.control("Ing", 14)
	g.p.Egress = g.control("Egr", 5)
	g.checksums()
	g.p.Deparser.Add(source.Emit(g.headers.in), source.Emit(g.headers.result))
	if t := g.p.Tofino; t != nil {
		t.EgressDeparser.Add(source.Emit(g.p.Hdr.Ref()))
	}
	for i := 2; i < len(g.p.Hdr.Type.(*source.Struct).Fields); i++ {
		g.p.Deparser.Add(source.Emit(source.Select(g.p.Hdr.Ref(), i)))
	}
}

// control builds ingress or egress.
func (g *generator) control(name string, budget int) *source.Callable {
	c := &source.Callable{Name: name, Body: new(source.Block)}
	ingress := name == "Ing"
	g.actions, g.tables = nil, nil
	g.with(func() {
		g.where, g.result = inControl, nil
		b := c.Body
		if ingress {
			// Without the first header, the fields are undefined.
			b.Add(source.If(source.Not(source.IsValid(g.headers.in)), &source.Block{Stmts: []source.Stmt{g.drop(true), source.Exit()}}, nil))
			b.Add(source.Assign(g.std(g.portField()), g.port()))
		} else if g.p.Tofino == nil {
			b.Add(source.If(source.Not(source.IsValid(g.headers.in)), &source.Block{Stmts: []source.Stmt{source.Exit()}}, nil))
		}
		g.add(g.p.Meta.Ref(), true)
		g.add(g.headers.in, true)
		g.readable(ingress)
		if ingress {
			b.Add(source.Assign(g.headers.result, source.List(g.headers.result.Type.(*source.Struct), false, g.values(g.headers.result.Type.(*source.Struct), 1))))
		}
		g.add(g.headers.result, true)
		g.declareExterns(c)
		g.declareParts(c)
		g.declareActions(c)
		g.declareTables(c)
		g.where, g.budget = inControl, budget
		g.fill(b, budget)
		for _, t := range g.tables {
			b.Add(source.Apply(t))
		}
		g.tables = nil
		g.finish(b, ingress)
		g.copies(b, ingress)
	})
	return c
}

// values returns a value for each field of a header.
func (g *generator) values(t *source.Struct, depth int) []*source.Expr {
	var list []*source.Expr
	for _, f := range t.Fields {
		list = append(list, g.value(f.Type, depth))
	}
	return list
}

// readable adds the standard metadata that the evaluator models.
func (g *generator) readable(ingress bool) {
	if g.p.Tofino != nil {
		names := []string{"ingress_port", "resubmit_flag"}
		if !ingress {
			names = []string{"egress_port", "egress_rid"}
		}
		for _, n := range names {
			g.places = append(g.places, place{g.std(n), false})
		}
		return
	}
	names := []string{"ingress_port", "instance_type", "packet_length", "checksum_error"}
	if ingress {
		names = append(names, "parser_error")
	} else {
		names = []string{"egress_port", "instance_type", "egress_rid"}
	}
	for _, n := range names {
		x := g.std(n)
		if n == "parser_error" {
			g.places = append(g.places, place{source.Equal(x, source.EnumLiteral(x.Type.(*source.Enum), g.r.IntN(len(coreErrors)+2)), false), false})
			g.places[len(g.places)-1].x = source.Parens(g.places[len(g.places)-1].x)
			continue
		}
		g.places = append(g.places, place{x, false})
	}
}

// portField returns the field to which ingress writes the port.
func (g *generator) portField() string {
	if g.p.Tofino != nil {
		return "ucast_egress_port"
	}
	return "egress_spec"
}

// port returns a port number for sending.
func (g *generator) port() *source.Expr {
	if g.one(3) {
		if n := g.small(2); n != nil {
			return source.Cast(source.Bits{Width: 9}, n)
		}
	}
	return source.Literal(source.Bits{Width: 9}, big.NewInt(int64(1+g.r.IntN(4))), 10, false)
}

// drop returns a statement that drops the packet.
func (g *generator) drop(ingress bool) source.Stmt {
	if t := g.p.Tofino; t != nil {
		dropCtl := source.Select(t.Dprsr.Ref(), 0)
		if !ingress {
			dropCtl = source.Select(t.OutDprsr.Ref(), 0)
		}
		// 5 also drops the mirrored packet.
		return source.Assign(dropCtl, source.Literal(source.Bits{Width: 3}, big.NewInt(pick(g, []int64{1, 1, 5})), 10, false))
	}
	spec, group := g.std("egress_spec"), g.std("mcast_grp")
	a := source.Assign(spec, source.Literal(source.Bits{Width: 9}, big.NewInt(511), 10, false))
	z := source.Assign(group, source.Literal(source.Bits{Width: 16}, new(big.Int), 10, false))
	return source.Do("mark_to_drop(sm);", func(m *source.Machine) { source.Run(m, a, z) })
}

// finish copies the control's results to the result header.
func (g *generator) finish(b *source.Block, ingress bool) {
	t := g.headers.result.Type.(*source.Struct)
	for i, f := range t.Fields {
		list := g.find(func(p place) bool { return same(p.x.Type, f.Type) })
		if w, ok := f.Type.(source.Bits); ok && !w.Signed {
			b.Add(source.Assign(source.Select(g.headers.result, i), g.bits(w, 1)))
		} else if len(list) > 0 {
			b.Add(source.Assign(source.Select(g.headers.result, i), pick(g, list).x))
		}
	}
}

// declareActions declares actions: without and with parameters of all kinds.
func (g *generator) declareActions(c *source.Callable) {
	for range 1 + g.r.IntN(3) {
		a := &source.Callable{Name: g.name("act"), Params: g.params(g.r.IntN(3)), Body: new(source.Block)}
		if len(a.Params) > 0 {
			g.p.Use("action directions")
		}
		g.with(func() {
			g.where, g.budget = inAction, 5
			g.enter(a.Body, a.Params)
			g.fill(a.Body, 1+g.r.IntN(4))
		})
		g.actions = append(g.actions, a)
		c.Actions = append(c.Actions, a)
	}
	g.where = inControl
}

// subControls declares controls that ingress, egress and each other apply.
func (g *generator) subControls() {
	for range g.r.IntN(3) {
		c := &source.Callable{Name: g.name("Sub"), Params: g.params(1 + g.r.IntN(3)), Body: new(source.Block)}
		if g.one(3) { // a header that is valid before and after the call
			h := pick(g, []*source.Expr{g.headers.in, g.headers.result})
			p := source.Param{Var: &source.Var{Name: g.name("p"), Type: h.Type}, Dir: pick(g, []source.Dir{source.In, source.Out, source.InOut})}
			c.Params = append(c.Params, p)
		}
		g.sub, g.actions, g.tables, g.externs = true, nil, nil, externs{}
		g.with(func() {
			g.where, g.result, g.budget = inControl, nil, 6
			g.enter(c.Body, c.Params)
			g.declareParts(c)
			g.declareActions(c)
			g.declareTables(c)
			g.where, g.budget = inControl, 6
			g.fill(c.Body, 2+g.r.IntN(4))
		})
		g.sub = false
		g.p.Controls = append(g.p.Controls, c)
	}
}

// declareParts declares instances of controls in a control.
func (g *generator) declareParts(c *source.Callable) {
	g.parts = nil
	if len(g.p.Controls) == 0 {
		return
	}
	for range g.r.IntN(3) {
		part := source.Part{Name: g.name("part"), Of: pick(g, g.p.Controls)}
		c.Parts = append(c.Parts, part)
		g.parts = append(g.parts, part)
	}
}
