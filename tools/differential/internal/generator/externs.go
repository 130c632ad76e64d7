package generator

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// An externs holds the objects that the statements of a control may use.
type externs struct {
	registers []*source.Register
	actions   []*source.RegisterAction // actions that are not executed yet
	counters  []*source.Counter
	meters    []*source.Meter
	names     map[any]string // names of the objects, without the control's name
	hashes    []hashObject
}

type hashObject struct {
	name, algorithm string
	t               source.Bits
}

const cells = 4 // cells of each register and counter

// declareExterns declares registers, counters and hashes.
func (g *generator) declareExterns(c *source.Callable) {
	g.externs = externs{names: map[any]string{}}
	index := source.Bits{Width: 32}
	for range g.r.IntN(3) {
		t := source.Bits{Width: pick(g, []int{8, 16, 32, 32, 48, 64, 128}), Signed: g.one(4)}
		if g.p.Tofino != nil {
			t.Width = pick(g, []int{8, 16, 32})
		}
		name := g.name("reg")
		r := &source.Register{Name: c.Name + "." + name, Type: t, Size: cells, Initial: new(big.Int)}
		g.p.Registers = append(g.p.Registers, r)
		g.externs.names[r] = name
		if g.p.Tofino != nil {
			r.Initial = g.number(t.Width - 1)
			g.declareAction(c, r, name, t)
			continue
		}
		c.Decls = append(c.Decls, source.Object("register<%s>(%d) %s;", t, cells, name))
		g.externs.registers = append(g.externs.registers, r)
	}
	if g.one(2) {
		name := g.name("cnt")
		n := &source.Counter{Name: c.Name + "." + name, Size: cells}
		g.p.Counters = append(g.p.Counters, n)
		g.externs.names[n] = name
		g.externs.counters = append(g.externs.counters, n)
		text := fmt.Sprintf("counter(%d, CounterType.packets) %s;", cells, name)
		if g.p.Tofino != nil {
			text = fmt.Sprintf("Counter<bit<32>, %s>(%d, CounterType_t.PACKETS) %s;", index, cells, name)
		}
		c.Decls = append(c.Decls, source.Object("%s", text))
	}
	if g.one(3) {
		g.declareMeter(c)
	}
	if g.p.Tofino != nil && g.one(2) {
		h := pick(g, []hashObject{{"", "CRC16", source.Bits{Width: 16}}, {"", "CRC32", source.Bits{Width: 32}}})
		h.name = g.name("hash")
		g.externs.hashes = append(g.externs.hashes, h)
		c.Decls = append(c.Decls, source.Object("Hash<%s>(HashAlgorithm_t.%s) %s;", h.t, h.algorithm, h.name))
	}
}

// declareMeter declares a meter, in which some cells have rates.
func (g *generator) declareMeter(c *source.Callable) {
	name := g.name("mtr")
	m := &source.Meter{Name: c.Name + "." + name, Red: 2}
	text := fmt.Sprintf("meter(%d, MeterType.packets) %s;", cells, name)
	if g.p.Tofino != nil {
		m.Red = 3
		text = fmt.Sprintf("Meter<bit<32>>(%d, MeterType_t.PACKETS) %s;", cells, name)
	}
	for range cells {
		var bursts []int
		if !g.one(3) {
			bursts = []int{g.r.IntN(4), g.r.IntN(6)}
		}
		m.Bursts = append(m.Bursts, bursts)
	}
	c.Decls = append(c.Decls, source.Object("%s", text))
	g.p.Meters = append(g.p.Meters, m)
	g.externs.meters, g.externs.names[m] = append(g.externs.meters, m), name
}

// declareAction declares a register of Tofino with its action.
func (g *generator) declareAction(c *source.Callable, r *source.Register, name string, t source.Bits) {
	g.p.Use("RegisterAction")
	a := &source.RegisterAction{
		Name: g.name("ra"), Of: r, Body: new(source.Block),
		Value: &source.Var{Name: g.name("value"), Type: t}, Result: &source.Var{Name: g.name("rv"), Type: t},
	}
	g.with(func() {
		g.add(a.Value.Ref(), true)
		a.Body.Add(source.Assign(a.Result.Ref(), g.bits(t, 1)))
		then := &source.Block{Stmts: []source.Stmt{source.Assign(a.Value.Ref(), g.bits(t, 2))}}
		a.Body.Add(source.If(source.Compare("<", a.Value.Ref(), g.bits(t, 1)), then, nil))
		if g.one(2) {
			a.Body.Add(source.Assign(a.Value.Ref(), g.bits(t, 1)))
		}
		if g.one(2) {
			a.Body.Add(source.Assign(a.Result.Ref(), a.Value.Ref()))
		}
	})
	c.Decls = append(c.Decls, a.Object(name, source.Bits{Width: 32}))
	g.externs.actions = append(g.externs.actions, a)
}

// cell returns the index of an existing cell.
func (g *generator) cell() *source.Expr {
	if x := g.small(2); x != nil && !g.one(3) {
		return source.Cast(source.Bits{Width: 32}, x)
	}
	return source.Literal(source.Bits{Width: 32}, big.NewInt(int64(g.r.IntN(cells))), 10, false)
}

// data returns a list of whole bytes to hash.
func (g *generator) data() []*source.Expr {
	var list []*source.Expr
	for range 1 + g.r.IntN(3) {
		w := pick(g, []int{3, 4, 8, 8, 13, 16, 24, 32, 48})
		list = append(list, g.leaf(source.Bits{Width: w}))
		if w%8 != 0 {
			list = append(list, g.leaf(source.Bits{Width: 8 - w%8}))
		}
	}
	return list
}

// externStatement uses an object.
func (g *generator) externStatement(b *source.Block) {
	if g.where != inControl && g.where != inAction {
		g.assign(b)
		return
	}
	e := &g.externs
	switch n := g.r.IntN(5); {
	case n == 4 && len(e.meters) > 0 && (g.p.Tofino == nil || g.where == inControl && g.loops == 0):
		g.meterStatement(b)
	case n == 0 && len(e.registers) > 0:
		g.p.Use("register")
		r := pick(g, e.registers)
		if x := g.lvalue(r.Type); x != nil && g.one(2) {
			b.Add(source.ReadRegister(r, e.names[r], x, g.cell()))
			return
		}
		b.Add(source.WriteRegister(r, e.names[r], g.cell(), g.bits(r.Type.(source.Bits), 2)))
	case n <= 1 && len(e.actions) > 0 && g.where == inControl && g.loops == 0:
		a := e.actions[0]
		e.actions = e.actions[1:]
		v := &source.Var{Name: g.name("v"), Type: a.Value.Type}
		b.Add(source.Declare(v, a.Execute(g.cell()), ""))
		g.add(v.Ref(), true)
	case n == 2 && len(e.counters) > 0:
		g.p.Use("counter")
		c := pick(g, e.counters)
		b.Add(source.Count(c, e.names[c], g.cell()))
	case n == 3 && g.p.Tofino == nil:
		if x := g.lvalue(source.Bits{Width: pick(g, []int{8, 16, 32})}); x != nil {
			g.p.Use("hash")
			w := source.Bits{Width: 16}
			most := source.Literal(w, big.NewInt(int64(1+g.r.IntN(60000))), 10, true)
			b.Add(source.Hash(x, pick(g, []string{"crc16", "crc32", "csum16"}), g.leaf(w), most, g.data()))
		}
	case n == 3 && len(e.hashes) > 0 && g.where == inControl:
		h := e.hashes[0]
		e.hashes = e.hashes[1:]
		g.p.Use("hash")
		v := &source.Var{Name: g.name("v"), Type: h.t}
		b.Add(source.Declare(v, source.GetHash(h.name, h.algorithm, h.t, g.data()), ""))
		g.add(v.Ref(), true)
	default:
		g.assign(b)
	}
}

// meterStatement executes a meter on the packet. A meter of Tofino may be executed
// only once.
func (g *generator) meterStatement(b *source.Block) {
	e := &g.externs
	m := pick(g, e.meters)
	if g.p.Tofino == nil {
		if x := g.lvalue(source.Bits{Width: pick(g, []int{8, 16, 32})}); x != nil {
			g.p.Use("meter")
			b.Add(source.ExecuteMeter(m, e.names[m], g.cell(), x))
		}
		return
	}
	g.p.Use("meter")
	e.meters = nil
	v := &source.Var{Name: g.name("v"), Type: source.Bits{Width: 8}}
	b.Add(source.Declare(v, source.Colour(m, e.names[m], g.cell()), ""))
	g.add(v.Ref(), true)
}

// checksums computes a checksum in the result header and verifies a checksum.
func (g *generator) checksums() {
	r := g.headers.result
	sum := source.Select(r, g.sum)
	data := func() []*source.Expr {
		var list []*source.Expr
		for _, x := range []*source.Expr{g.headers.in, r} {
			t := x.Type.(*source.Struct)
			for i := range t.Fields {
				if f := source.Select(x, i); f.Text != sum.Text {
					list = append(list, f)
				}
			}
		}
		return list
	}
	both := source.Logic("&&", source.IsValid(g.headers.in), source.IsValid(r))
	if t := g.p.Tofino; t != nil {
		if g.one(2) {
			g.p.Use("checksum")
			t.DeparserDecls = append(t.DeparserDecls, source.Object("Checksum() sum;"))
			g.p.Deparser.Add(source.UpdateChecksum(both, sum, "sum", data()))
		}
		return
	}
	if g.one(2) {
		g.p.Use("checksum")
		g.p.Compute.Add(source.UpdateChecksum(both, sum, "", data()))
	}
	if g.one(3) {
		g.p.Use("verify_checksum")
		t := g.headers.in.Type.(*source.Struct)
		var list []*source.Expr
		for i := range t.Fields {
			list = append(list, source.Select(g.headers.in, i))
		}
		g.p.Verify.Add(source.VerifyChecksum(source.IsValid(g.headers.in), source.Select(g.p.Meta.Ref(), len(g.p.Meta.Type.(*source.Struct).Fields)-2), list))
	}
}
