package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// copies asks for copies of packets, drops and digests, at the end of a control.
func (g *generator) copies(b *source.Block, ingress bool) {
	number := func(w int, n int64) *source.Expr {
		return source.Literal(source.Bits{Width: w}, big.NewInt(n), 10, false)
	}
	g.p.Sessions[5] = 3
	g.p.Groups[1] = []source.Replica{{Port: 1, RID: 7}, {Port: 2, RID: 8}}
	maybe := func(feature string, n int, s ...source.Stmt) {
		if g.one(n) {
			g.p.Use(feature)
			b.Add(source.If(source.Logic("&&", g.first(ingress), g.boolean(1)), &source.Block{Stmts: s}, nil))
		}
	}
	maybe("drop", 8, g.drop(ingress))
	if ingress {
		maybe("multicast", 6, source.Assign(g.std(g.groupField()), number(16, 1)))
	}
	if g.p.Tofino != nil {
		g.tofinoCopies(maybe, ingress)
		return
	}
	if !ingress {
		maybe("clone", 6, source.Clone("E2E", 5))
		g.recirculate(b)
		return
	}
	maybe("clone", 6, source.Clone("I2E", 5))
	maybe("resubmit", 6, source.Again("resubmit"))
	t, data := g.digest()
	maybe("digest", 4, source.SendDigest(t, "", data))
}

// digest returns the type and content of a digest.
func (g *generator) digest() (*source.Struct, []*source.Expr) {
	in := g.headers.in.Type.(*source.Struct)
	t := &source.Struct{Name: "digest_t"}
	var data []*source.Expr
	for i, f := range in.Fields[:1+g.r.IntN(2)] {
		t.Fields = append(t.Fields, f)
		data = append(data, source.Select(g.headers.in, i))
	}
	g.p.DeclareType(t)
	return t, data
}

// first holds in the first pass of a packet, so that copies end.
func (g *generator) first(ingress bool) *source.Expr {
	name, w := "instance_type", 32
	if g.p.Tofino != nil {
		name, w = "resubmit_flag", 1
		if !ingress {
			name, w = "egress_rid", 16
		}
	}
	return source.Equal(g.std(name), source.Literal(source.Bits{Width: w}, new(big.Int), 10, false), false)
}

func (g *generator) groupField() string {
	if g.p.Tofino != nil {
		return "mcast_grp_a"
	}
	return "mcast_grp"
}

// tofinoCopies sets the types of copies, which the deparser looks at.
func (g *generator) tofinoCopies(maybe func(string, int, ...source.Stmt), ingress bool) {
	if !ingress {
		return
	}
	t := g.p.Tofino
	ask := func(feature string, n int, field, object string, s source.Stmt) {
		x := g.std(field)
		one := source.Literal(x.Type.(source.Bits), big.NewInt(1), 10, false)
		maybe(feature, n, source.Assign(x, one))
		if g.p.Features[feature] {
			t.DeparserDecls = append(t.DeparserDecls, source.Object("%s", object))
			g.p.Deparser.Add(source.If(source.Equal(x, one, false), &source.Block{Stmts: []source.Stmt{s}}, nil))
		}
	}
	ask("resubmit", 6, "resubmit_type", "Resubmit(1) resubmit;", source.EmitResubmit("resubmit"))
	d, data := g.digest()
	ask("digest", 4, "digest_type", "Digest<digest_t>(1) digests;", source.SendDigest(d, "digests", data))
}

// recirculate sends the packet back while a bit of its first header is set, and
// clears the bit.
func (g *generator) recirculate(b *source.Block) {
	if !g.one(6) {
		return
	}
	g.p.Use("recirculate")
	bit := source.Slice(source.Select(g.headers.in, 0), 7, 7)
	one := source.Literal(source.Bits{Width: 1}, big.NewInt(1), 10, true)
	zero := source.Literal(source.Bits{Width: 1}, new(big.Int), 10, true)
	then := &source.Block{Stmts: []source.Stmt{source.Assign(bit, zero), source.Again("recirculate")}}
	b.Add(source.If(source.Equal(bit, one, false), then, nil))
}
