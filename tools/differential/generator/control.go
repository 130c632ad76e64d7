package generator

import (
	"math/big"

	. "github.com/p4lb/p4lb/tools/differential/source"
)

// standardMetadata is the part of v1model's standard metadata that programs use.
func standardMetadata() *Struct {
	bit := func(n int) Bits { return Bits{Width: n} }
	return &Struct{Name: "standard_metadata_t", Fields: []Field{
		{Name: "ingress_port", Type: bit(9)}, {Name: "egress_spec", Type: bit(9)}, {Name: "egress_port", Type: bit(9)},
		{Name: "instance_type", Type: bit(32)}, {Name: "packet_length", Type: bit(32)},
		{Name: "mcast_grp", Type: bit(16)}, {Name: "egress_rid", Type: bit(16)}, {Name: "checksum_error", Type: bit(1)},
		{Name: "parser_error", Type: &Enum{Name: "error", Members: append(append([]string(nil), coreErrors...), userErrors...)}},
	}}
}

func (g *generator) std(name string) *Expr {
	if t := g.p.Tofino; t != nil {
		for _, v := range []*Var{t.In, t.TM, t.Dprsr, t.Out, t.OutDprsr} {
			for i, f := range v.Type.(*Struct).Fields {
				if f.Name == name {
					return Select(v.Ref(), i)
				}
			}
		}
	}
	x := g.p.Std.Ref()
	for i, f := range x.Type.(*Struct).Fields {
		if f.Name == name {
			return Select(x, i)
		}
	}
	panic("no field " + name)
}

// controls builds the controls after the parser.
func (g *generator) controls() {
	if g.p.Tofino == nil {
		g.p.Std = &Var{Name: "sm", Type: standardMetadata()}
	}
	g.p.Verify, g.p.Compute, g.p.Deparser = new(Block), new(Block), new(Block)
	g.p.Ingress = g.control("Ing", 14)
	g.p.Egress = g.control("Egr", 5)
	g.checksums()
	g.p.Deparser.Add(Emit(g.headers.in), Emit(g.headers.result))
	if t := g.p.Tofino; t != nil {
		t.EgressDeparser = &Block{Stmts: []Stmt{Emit(g.p.Hdr.Ref())}}
	}
	for i := 2; i < len(g.p.Hdr.Type.(*Struct).Fields); i++ {
		g.p.Deparser.Add(Emit(Select(g.p.Hdr.Ref(), i)))
	}
}

// control builds ingress or egress.
func (g *generator) control(name string, budget int) *Callable {
	c := &Callable{Name: name, Body: new(Block)}
	ingress := name == "Ing"
	g.actions, g.tables = nil, nil
	g.with(func() {
		g.where, g.result = inControl, nil
		b := c.Body
		if ingress {
			// Without the first header nothing is defined.
			b.Add(If(Not(IsValid(g.headers.in)), &Block{Stmts: []Stmt{g.drop(), Exit()}}, nil))
			b.Add(Assign(g.std(g.portField()), g.port()))
		} else if g.p.Tofino == nil {
			b.Add(If(Not(IsValid(g.headers.in)), &Block{Stmts: []Stmt{Exit()}}, nil))
		}
		g.add(g.p.Meta.Ref(), true)
		g.add(g.headers.in, true)
		g.readable(ingress)
		if ingress {
			b.Add(Assign(g.headers.result, List(g.headers.result.Type.(*Struct), false, g.values(g.headers.result.Type.(*Struct), 1))))
		}
		g.add(g.headers.result, true)
		g.declareExterns(c)
		g.declareActions(c)
		g.declareTables(c)
		g.where, g.budget = inControl, budget
		g.fill(b, budget)
		for _, t := range g.tables {
			b.Add(Apply(t))
		}
		g.tables = nil
		g.finish(b, ingress)
	})
	return c
}

// values returns a value for each field of a header.
func (g *generator) values(t *Struct, depth int) []*Expr {
	var list []*Expr
	for _, f := range t.Fields {
		list = append(list, g.value(f.Type, depth))
	}
	return list
}

// readable adds the standard metadata that both sides know.
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
	names := []string{"ingress_port", "instance_type", "packet_length"}
	if ingress {
		names = append(names, "parser_error")
	} else {
		names = []string{"egress_port", "instance_type", "egress_rid"}
	}
	for _, n := range names {
		x := g.std(n)
		if n == "parser_error" {
			g.places = append(g.places, place{Equal(x, EnumLiteral(x.Type.(*Enum), g.r.IntN(len(coreErrors)+2)), false), false})
			g.places[len(g.places)-1].x = Parens(g.places[len(g.places)-1].x)
			continue
		}
		g.places = append(g.places, place{x, false})
	}
}

// portField is the field that ingress writes the port to.
func (g *generator) portField() string {
	if g.p.Tofino != nil {
		return "ucast_egress_port"
	}
	return "egress_spec"
}

// port returns a port to send to.
func (g *generator) port() *Expr {
	if g.one(3) {
		if n := g.small(2); n != nil {
			return Cast(Bits{Width: 9}, n)
		}
	}
	return Literal(Bits{Width: 9}, big.NewInt(int64(1+g.r.IntN(4))), 10, false)
}

// drop returns mark_to_drop.
func (g *generator) drop() Stmt {
	if g.p.Tofino != nil {
		return Assign(g.std("drop_ctl"), Literal(Bits{Width: 3}, big.NewInt(1), 10, false))
	}
	spec, group := g.std("egress_spec"), g.std("mcast_grp")
	a := Assign(spec, Literal(Bits{Width: 9}, big.NewInt(511), 10, false))
	z := Assign(group, Literal(Bits{Width: 16}, new(big.Int), 10, false))
	return Do("mark_to_drop(sm);", func(m *Machine) { Run(m, a, z) })
}

// finish shows what the control has computed in the result header.
func (g *generator) finish(b *Block, ingress bool) {
	t := g.headers.result.Type.(*Struct)
	for i, f := range t.Fields {
		list := g.find(func(p place) bool { return same(p.x.Type, f.Type) })
		if w, ok := f.Type.(Bits); ok && !w.Signed {
			b.Add(Assign(Select(g.headers.result, i), g.bits(w, 1)))
		} else if len(list) > 0 {
			b.Add(Assign(Select(g.headers.result, i), pick(g, list).x))
		}
	}
}

// declareActions declares actions: without and with parameters of all kinds.
func (g *generator) declareActions(c *Callable) {
	for range 1 + g.r.IntN(3) {
		a := &Callable{Name: g.name("act"), Params: g.params(g.r.IntN(3)), Body: new(Block)}
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
