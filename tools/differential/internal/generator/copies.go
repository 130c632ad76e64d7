package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// copies adds requests for copies, drops and digests at the end of a control.
func (g *generator) copies(b *source.Block, ingress bool) {
	number := func(w int, n int64) *source.Expr {
		return source.Literal(source.Bits{Width: w}, big.NewInt(n), 10, false)
	}
	g.p.Sessions[5] = 3
	if g.p.Tofino != nil {
		g.p.Sessions[ingressSession], g.p.Sessions[egressSession] = ingressMirrorPort, egressMirrorPort
	}
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
		g.tofinoCopies(b, maybe, ingress)
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

// first returns a condition that is true in the first pass of a packet, so that
// copying ends.
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

// tofinoCopies sets the metadata that tell the deparser which copies to make.
func (g *generator) tofinoCopies(b *source.Block, maybe func(string, int, ...source.Stmt), ingress bool) {
	t := g.p.Tofino
	g.mirrors(maybe, ingress)
	if !ingress {
		return
	}
	g.loopback(b)
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

// The sessions and ports of mirrors. Only mirrored packets leave by these ports.
const (
	ingressSession, ingressMirrorPort = 5, 9
	egressSession, egressMirrorPort   = 6, 10
)

// mirrors adds requests for mirrors. A mirror of egress is not mirrored again.
func (g *generator) mirrors(maybe func(string, int, ...source.Stmt), ingress bool) {
	t := g.p.Tofino
	if g.mirror == nil {
		return
	}
	dprsr, decls, deparser, session := t.Dprsr, &t.DeparserDecls, g.p.Deparser, ingressSession
	if !ingress {
		dprsr, decls, deparser, session = t.OutDprsr, &t.EgressDecls, t.EgressDeparser, egressSession
	}
	field := func(name string) *source.Expr {
		for i, f := range dprsr.Type.(*source.Struct).Fields {
			if f.Name == name {
				return source.Select(dprsr.Ref(), i)
			}
		}
		panic("no field " + name)
	}
	number := func(x *source.Expr, n int64) *source.Expr {
		return source.Literal(x.Type.(source.Bits), big.NewInt(n), 10, false)
	}
	asked := field("mirror_type")
	body := []source.Stmt{source.Assign(asked, number(asked, 1))}
	if ingress && g.mirror.late {
		x := field("mirror_io_select")
		body = append(body, source.Assign(x, number(x, 1)))
	}
	if !ingress && g.p.Arch == source.T2NA && g.one(3) {
		x := field("mirror_io_select")
		body = append(body, source.Assign(x, number(x, 0)))
	}
	if !ingress {
		port := g.std("egress_port")
		again := source.Compare("<", port, number(port, egressMirrorPort))
		body = []source.Stmt{source.If(again, &source.Block{Stmts: body}, nil)}
	}
	maybe("mirror", 1, body...)
	var header *source.Struct
	var data []*source.Expr
	if g.mirror.header != nil {
		header = g.mirror.header.Type.(*source.Struct)
		for _, f := range header.Fields {
			data = append(data, g.mirrorField(f.Type.(source.Bits)))
		}
	}
	*decls = append(*decls, source.Object("Mirror() mirror;"))
	deparser.Add(source.If(source.Equal(asked, number(asked, 1), false), &source.Block{Stmts: []source.Stmt{source.EmitMirror(header, session, data)}}, nil))
}

// mirrorField returns metadata, a field of the first header, or a constant.
func (g *generator) mirrorField(t source.Bits) *source.Expr {
	for _, x := range []*source.Expr{g.p.Meta.Ref(), g.headers.in} {
		for i, f := range x.Type.(*source.Struct).Fields {
			if f.Type == source.Type(t) && g.one(2) {
				return source.Select(x, i)
			}
		}
	}
	return g.literal(t)
}

// loopback sends the packet to the loopback port if a bit of its first header is
// set, and clears the bit.
func (g *generator) loopback(b *source.Block) {
	if !g.one(6) {
		return
	}
	port := g.std("ucast_egress_port")
	g.untilClear(b, source.Assign(port, source.Literal(source.Bits{Width: 9}, big.NewInt(int64(source.Loopback(g.p.Arch))), 10, false)))
}

// recirculate recirculates the packet if a bit of its first header is set, and
// clears the bit.
func (g *generator) recirculate(b *source.Block) {
	if !g.one(6) {
		return
	}
	g.untilClear(b, source.Again("recirculate"))
}

// untilClear runs a statement if a bit of the first header is set, and clears the
// bit.
func (g *generator) untilClear(b *source.Block, s source.Stmt) {
	g.p.Use("recirculate")
	bit := source.Slice(source.Select(g.headers.in, 0), 7, 7)
	one := source.Literal(source.Bits{Width: 1}, big.NewInt(1), 10, true)
	zero := source.Literal(source.Bits{Width: 1}, new(big.Int), 10, true)
	then := &source.Block{Stmts: []source.Stmt{source.Assign(bit, zero), s}}
	b.Add(source.If(source.Equal(bit, one, false), then, nil))
}
