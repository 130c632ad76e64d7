package generator

import (
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// userErrors lists the errors that programs declare, coreErrors the errors of
// core.p4 in order.
var (
	coreErrors = []string{"NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout", "ParserInvalidArgument"}
	userErrors = []string{"OneError", "OtherError"}
)

// parser builds the parser. The state start extracts the first header; the other
// states extract the other headers, in an order that selects determine.
func (g *generator) parser() {
	p := &source.Parser{Name: "P"}
	g.p.Parser = p
	g.p.Declare("error { %s, %s }", userErrors[0], userErrors[1])
	g.where, g.budget, g.result = inParser, 12, nil
	p.Head = "(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm)"
	if g.p.Arch != source.V1model {
		p.Head = "(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig)"
	}
	if g.p.Tofino != nil {
		g.egressParser()
	}
	kinds := g.parseKinds()
	names := []string{"start"}
	for range kinds[1:] {
		names = append(names, g.name("st"))
	}
	names = append(names, "accept")
	g.with(func() {
		g.add(g.p.Meta.Ref(), true)
		if g.one(2) {
			v := &source.Var{Name: g.name("v"), Type: g.bitsType()}
			p.Decls = append(p.Decls, source.Declare(v, g.literal(v.Type.(source.Bits)), ""))
			g.add(v.Ref(), true)
		}
		for i, extract := range kinds {
			s := &source.State{Name: names[i], Body: new(source.Block)}
			n := len(g.places)
			p.States = append(p.States, s)
			looped := extract(s, names[i+1])
			if i == 0 {
				n = len(g.places) // from here on, the first header is known
			}
			g.fill(s.Body, g.r.IntN(3))
			if g.one(5) && i > 0 && g.p.Tofino == nil {
				g.p.Use("verify")
				s.Body.Add(source.Verify(source.Logic("||", source.Equal(source.Slice(source.Select(g.headers.in, 0), 7, 6), g.literal(source.Bits{Width: 2}), true), g.boolean(1)), pick(g, []string{"PacketTooShort", "OneError", "OtherError"})))
			}
			if !looped {
				g.transition(s, names[i+1:])
			}
			g.places = g.places[:n]
		}
	})
}

// parseKinds returns one function for each state. It adds the state's extraction
// and reports whether it has also added the transition.
func (g *generator) parseKinds() []func(s *source.State, next string) bool {
	plain := func(h, union *source.Expr) func(*source.State, string) bool {
		return func(s *source.State, _ string) bool {
			if x := g.lvalue(source.Bits{Width: 8}); x != nil && union == nil && g.one(3) {
				sub := g.subParser(h.Type.(*source.Struct))
				s.Body.Add(source.CallParser(sub, []*source.Expr{h, x}))
				g.add(h, true)
				return false
			}
			s.Body.Add(source.Extract(h, union, false, nil))
			g.add(h, true)
			return false
		}
	}
	list := []func(*source.State, string) bool{func(s *source.State, _ string) bool {
		if g.p.Tofino != nil {
			s.Body.Add(source.TofinoStart(g.p)...)
			s.Body.Add(g.clearMetadata())
		}
		s.Body.Add(source.Extract(g.headers.in, nil, false, nil))
		g.add(g.headers.in, true)
		return false
	}}
	for _, h := range g.headers.optional {
		list = append(list, plain(h, nil))
	}
	if g.headers.stack != nil {
		list = append(list, g.parseStack)
	}
	if g.headers.union != nil {
		list = append(list, plain(pick(g, g.headers.members), g.headers.union))
	}
	if g.headers.varbit != nil {
		list = append(list, g.parseVarbit)
	}
	if g.one(3) {
		list = append(list, func(s *source.State, _ string) bool {
			g.p.Use("advance")
			s.Body.Add(source.Advance(source.Literal(source.Bits{Width: 32}, big.NewInt(int64(8*(1+g.r.IntN(3)))), 10, false)))
			return false
		})
	}
	g.r.Shuffle(len(list)-1, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return list
}

// parseStack extracts elements until one is the last.
func (g *generator) parseStack(s *source.State, next string) bool {
	g.p.Use("parser loop")
	s.Body.Add(source.Extract(g.headers.stack, nil, true, nil))
	last := source.Select(source.Last(g.headers.stack), 0)
	s.On = []*source.Expr{last}
	s.Cases = []source.SelectCase{
		{Sets: []source.Keyset{{Value: new(big.Int)}}, Next: s.Name},
		{Sets: []source.Keyset{{Value: big.NewInt(1)}}, Next: next},
	}
	if g.one(3) {
		g.p.Use("lastIndex")
		s.On = append(s.On, source.LastIndex(g.headers.stack))
		n := int64(g.headers.stack.Type.(*source.Stack).Size)
		s.Cases = []source.SelectCase{
			{Sets: []source.Keyset{{Any: true}, {Value: big.NewInt(n - 1)}}, Next: next},
			{Sets: []source.Keyset{{Value: new(big.Int)}, {Any: true}}, Next: s.Name},
			{Sets: []source.Keyset{{Any: true}}, Next: next},
		}
	}
	return true
}

// parseVarbit extracts the header with a varbit. The packet contains its length.
// Only v1model gets lengths above the maximum, because TNA does not define their
// error.
func (g *generator) parseVarbit(s *source.State, _ string) bool {
	w := 3
	if g.p.Tofino != nil {
		w = 2
	}
	size := source.Binary("*", source.Cast(source.Bits{Width: 32}, source.Lookahead(source.Bits{Width: w})), source.Literal(source.Bits{Width: 32}, big.NewInt(8), 10, false))
	s.Body.Add(source.Extract(g.headers.varbit, nil, false, size))
	return false
}

// transition adds a transition to one of the following states.
func (g *generator) transition(s *source.State, names []string) {
	if len(names) == 1 || g.one(6) {
		s.Next = names[0]
		return
	}
	g.p.Use("select")
	next := func() string { return names[min(g.r.IntN(3)*g.r.IntN(2), len(names)-1)] }
	if g.one(5) && len(g.p.Parser.Sets) == 0 {
		g.valueSet(s, next)
		return
	}
	for range 1 + g.r.IntN(2) {
		if g.one(2) {
			s.On = append(s.On, source.Select(g.headers.in, 0))
			continue
		}
		t := g.likely()
		for t.Signed || t.Width > 64 {
			t = g.bitsType()
		}
		s.On = append(s.On, g.bits(t, 2))
	}
	for range 1 + g.r.IntN(3) {
		c := source.SelectCase{Next: next()}
		for _, x := range s.On {
			c.Sets = append(c.Sets, g.keyset(x.Type.(source.Bits).Width))
		}
		s.Cases = append(s.Cases, c)
	}
	if g.one(8) {
		g.p.Use("select without match")
		return
	}
	s.Cases = append(s.Cases, source.SelectCase{Sets: []source.Keyset{{Any: true}}, Next: names[0]})
}

func (g *generator) keyset(w int) source.Keyset {
	switch g.r.IntN(6) {
	case 0:
		return source.Keyset{Any: true}
	case 1, 2:
		g.p.Use("select mask")
		return source.Keyset{Value: g.number(w), Mask: g.number(w)}
	case 3:
		g.p.Use("select range")
		a, b := g.number(w), g.number(w)
		if a.Cmp(b) > 0 {
			a, b = b, a
		}
		return source.Keyset{Value: a, High: b}
	}
	return source.Keyset{Value: g.number(w)}
}

// valueSet adds a select on a value set.
func (g *generator) valueSet(s *source.State, next func() string) {
	g.p.Use("value set")
	t := source.Bits{Width: 8}
	s.On = []*source.Expr{source.Select(g.headers.in, 0)}
	if g.one(3) {
		t.Width = g.bitsType().Width
		s.On = []*source.Expr{g.bits(t, 2)}
	}
	v := &source.ValueSet{Name: g.name("vs"), Type: t, Size: 4}
	g.p.Parser.Sets = append(g.p.Parser.Sets, v)
	for range g.r.IntN(4) {
		m := source.Keyset{Value: g.number(t.Width), Mask: g.number(t.Width)}
		if g.one(2) {
			m.Mask = source.Ones(t.Width)
		}
		v.Members = append(v.Members, m)
	}
	s.Cases = []source.SelectCase{
		{Sets: []source.Keyset{{Set: v}}, Next: next()},
		{Sets: []source.Keyset{g.keyset(t.Width)}, Next: next()},
		{Sets: []source.Keyset{{Any: true}}, Next: next()},
	}
}

// packet returns a random packet, which is usually long enough.
func (g *generator) packet() Input {
	n := 40 + g.r.IntN(200)
	if g.one(10) && (g.p.Tofino == nil || g.one(3)) {
		n = g.r.IntN(60)
	}
	data := make([]byte, n)
	for i := range data {
		switch g.r.IntN(4) {
		case 0:
			data[i] = byte(g.r.IntN(4))
		default:
			data[i] = byte(g.r.Uint32())
		}
	}
	return Input{Port: uint32(1 + g.r.IntN(3)), Data: data}
}

// clearMetadata initialises all metadata, because Tofino's architecture leaves them
// undefined.
func (g *generator) clearMetadata() source.Stmt {
	t := g.p.Meta.Type.(*source.Struct)
	return source.Assign(g.p.Meta.Ref(), zeros(t))
}

// zeros returns a list of zeros of a type.
func zeros(t *source.Struct) *source.Expr {
	var list []*source.Expr
	for _, f := range t.Fields {
		switch f := f.Type.(type) {
		case source.Bits:
			list = append(list, source.Literal(f, new(big.Int), 10, true))
		case source.Bool:
			list = append(list, source.BoolLiteral(false))
		case *source.Enum:
			list = append(list, source.EnumLiteral(f, 0))
		case *source.Struct:
			list = append(list, zeros(f))
		}
	}
	return source.List(t, false, list)
}

// egressParser extracts the two headers that ingress always sends. A packet
// mirrored by ingress lacks the result header, unless the mirror copies the packet
// as it leaves.
func (g *generator) egressParser() {
	in, result := source.Extract(g.headers.in, nil, false, nil), source.Extract(g.headers.result, nil, false, nil)
	start := &source.State{Name: "start", Body: new(source.Block), Next: "accept"}
	start.Body.Add(source.TofinoEgressStart()...)
	start.Body.Add(g.clearMetadata())
	p := &source.Parser{
		Name: "EgP", States: []*source.State{start},
		Head: "(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg)",
	}
	g.p.Tofino.EgressParser = p
	if g.mirror == nil {
		start.Body.Add(in, result)
		return
	}
	state := func(name string, body ...source.Stmt) {
		s := &source.State{Name: name, Body: new(source.Block), Next: "accept"}
		s.Body.Add(body...)
		p.States = append(p.States, s)
	}
	port := g.std("egress_port")
	start.Next, start.On = "", []*source.Expr{port}
	to := func(n int64, next string) source.SelectCase {
		return source.SelectCase{Sets: []source.Keyset{{Value: big.NewInt(n)}}, Next: next}
	}
	start.Cases = []source.SelectCase{to(ingressMirrorPort, "received"), to(egressMirrorPort, "sent"), {Sets: []source.Keyset{{Any: true}}, Next: "normal"}}
	var before []source.Stmt
	if g.mirror.header != nil {
		before = append(before, source.Extract(g.mirror.header, nil, false, nil))
	}
	blank := result
	if !g.mirror.late {
		blank = source.Assign(g.headers.result, zeros(g.headers.result.Type.(*source.Struct)))
	}
	state("normal", in, result)
	state("received", append(before, in, blank)...)
	state("sent", append(before, in, result)...)
}

// subParser declares a parser that extracts a header of type t for another parser.
func (g *generator) subParser(t *source.Struct) *source.Parser {
	g.p.Use("parser in parser")
	h, x := &source.Var{Name: g.name("p"), Type: t}, &source.Var{Name: g.name("p"), Type: source.Bits{Width: 8}}
	p := &source.Parser{Name: g.name("SubP"), Params: []source.Param{{Var: h, Dir: source.Out}, {Var: x, Dir: source.InOut}}}
	p.Head = "(packet_in pkt, out " + t.Name + " " + h.Name + ", inout bit<8> " + x.Name + ")"
	first := &source.State{Name: "start", Body: new(source.Block)}
	second := &source.State{Name: g.name("st"), Body: new(source.Block), Next: "accept"}
	p.States = []*source.State{first, second}
	saved := g.places
	g.places = nil
	g.add(x.Ref(), true)
	g.fill(first.Body, g.r.IntN(2))
	first.Body.Add(source.Extract(h.Ref(), nil, false, nil))
	g.add(h.Ref(), true)
	g.fill(first.Body, g.r.IntN(3))
	defer func() { g.places = saved }()
	first.On = []*source.Expr{g.bits(source.Bits{Width: 8}, 1)}
	next := func() string { return pick(g, []string{"accept", second.Name}) }
	for range 1 + g.r.IntN(2) {
		first.Cases = append(first.Cases, source.SelectCase{Sets: []source.Keyset{g.keyset(8)}, Next: next()})
	}
	first.Cases = append(first.Cases, source.SelectCase{Sets: []source.Keyset{{Any: true}}, Next: next()})
	if g.one(2) {
		second.Body.Add(source.Advance(source.Literal(source.Bits{Width: 32}, big.NewInt(8), 10, false)))
	}
	g.places = nil // the variables of the first state are not visible here
	g.add(x.Ref(), true)
	g.add(h.Ref(), true)
	g.fill(second.Body, g.r.IntN(3))
	g.p.Parser.Subs = append(g.p.Parser.Subs, p)
	return p
}
