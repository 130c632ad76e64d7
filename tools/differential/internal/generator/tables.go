package generator

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// declareTables declares the tables of a control, with their actions.
func (g *generator) declareTables(c *source.Callable) {
	for range g.r.IntN(3) {
		t := &source.Table{Name: g.name("t")}
		for range 1 + g.r.IntN(3) {
			g.tableAction(c, t)
		}
		g.keys(t)
		t.Default = g.invoke(t)
		t.FixedDefault = g.one(3)
		if len(t.Keys) > 0 && g.one(4) {
			g.profile(c, t)
		}
		if len(t.Keys) > 0 {
			g.entries(t)
		}
		if g.p.Tofino == nil && !g.sub && g.one(4) { // each instance of the control has its own counters
			g.p.Use("direct counter")
			t.Counted = true
			name := g.name("dc")
			c.Decls = append(c.Decls, source.Object("direct_counter(CounterType.packets) %s;", name))
			t.Properties = append(t.Properties, "counters = "+name)
		}
		c.Tables = append(c.Tables, t)
		g.tables = append(g.tables, t)
	}
}

// tableAction adds an action to a table. It is either a new one whose parameters
// the control plane sets, or one of the control's actions with bound arguments.
func (g *generator) tableAction(c *source.Callable, t *source.Table) {
	if g.one(3) {
		a := pick(g, c.Actions)
		for _, r := range t.Actions {
			if r.Action == a {
				return
			}
		}
		if args := g.arguments(a.Params, 1); args != nil {
			loose := true
			for _, p := range a.Params {
				loose = loose && p.Dir != source.NoDir
			}
			if loose {
				t.Actions = append(t.Actions, source.ActionRef{Action: a, Bound: args})
				return
			}
		}
	}
	a := &source.Callable{Name: g.name("ta"), Body: new(source.Block)}
	for range g.r.IntN(4) {
		var typ source.Type = source.Bits{Width: pick(g, widths), Signed: g.one(5)}
		if typ.(source.Bits).Width == 1 {
			typ = source.Bits{Width: 1}
		}
		if g.one(8) {
			typ = source.Bool{}
		}
		a.Params = append(a.Params, source.Param{Var: &source.Var{Name: g.name("d"), Type: typ}})
	}
	if len(a.Params) > 0 {
		g.p.Use("action data")
	}
	g.with(func() {
		g.where, g.budget = inAction, 5
		for _, p := range a.Params {
			g.add(p.Var.Ref(), false)
		}
		g.fill(a.Body, 1+g.r.IntN(3))
		g.assign(a.Body)
	})
	g.where = inControl
	c.Actions = append(c.Actions, a)
	t.Actions = append(t.Actions, source.ActionRef{Action: a})
}

func (g *generator) keys(t *source.Table) {
	n := g.r.IntN(4)
	kinds := []string{"exact", "exact", "ternary", "lpm", "range", "optional"}
	if g.p.Arch != source.V1model {
		kinds = kinds[:5]
	}
	hasLPM := false
	for range n {
		kind := pick(g, kinds)
		if kind == "lpm" && hasLPM {
			kind = "exact"
		}
		k := source.Key{Kind: kind, Name: g.name("k")}
		switch {
		case g.one(10) && (kind == "exact" || kind == "optional"):
			k.X = g.boolean(1)
		case g.one(2):
			k.X = g.bits(source.Bits{Width: pick(g, []int{2, 4, 8, 8, 9, 16, 32})}, 1)
		default:
			w := g.likely()
			w.Signed = false
			k.X = g.bits(w, 1)
		}
		if g.one(4) && kind == "exact" {
			if b, ok := k.X.Type.(source.Bits); ok && b.Width > 3 && k.X.IsLvalue() && !strings.Contains(k.X.Text, ":") {
				k.Mask = g.number(b.Width)
			}
		}
		for strings.Contains(k.X.Text, "&") { // the mask is in Mask
			k.X = g.leaf(source.Bits{Width: k.Bits().Width})
		}
		if _, ok := k.X.Type.(source.Bits); !ok {
			k.X = source.Parens(k.X)
		}
		hasLPM = hasLPM || kind == "lpm"
		t.Calls = t.Calls || strings.Contains(k.X.Text, functionPrefix)
		g.p.Use("key " + kind)
		if k.Mask != nil {
			g.p.Use("key mask")
		}
		t.Keys = append(t.Keys, k)
	}
}

// profile gives a table an action profile or selector with members and groups. The
// control plane sets all arguments of its actions.
func (g *generator) profile(c *source.Callable, t *source.Table) {
	for _, a := range t.Actions {
		if len(a.Bound) > 0 {
			return
		}
	}
	p := &source.Profile{Name: g.name("prof")}
	t.Profile = p
	for range 1 + g.r.IntN(4) {
		p.Members = append(p.Members, g.invoke(t))
	}
	g.p.Use("action profile")
	if g.one(2) {
		g.p.Use("action selector")
		p.Algorithm = pick(g, []string{"crc16", "crc32"})
		if g.p.Tofino != nil {
			p.Algorithm = "CRC16"
			for i := range p.Members { // the chip's choice among members is not documented, so they are equal
				p.Members[i] = p.Members[0]
			}
		}
		for range 1 + g.r.IntN(2) {
			t.Keys = append(t.Keys, source.Key{Kind: "selector", Name: g.name("k"), X: g.leaf(source.Bits{Width: pick(g, []int{8, 16, 32})})})
		}
		for range 1 + g.r.IntN(2) {
			var list []int
			for i := range p.Members {
				if g.one(2) || i == 0 && len(p.Members) == 1 {
					list = append(list, i)
				}
			}
			if len(list) > 0 {
				p.Groups = append(p.Groups, list)
			}
		}
	}
	c.Decls = append(c.Decls, p.Object(g.p.Arch))
	t.Properties = append(t.Properties, p.Implementation(g.p.Arch))
}

func (g *generator) invoke(t *source.Table) source.Invoke {
	do := source.Invoke{Action: g.r.IntN(len(t.Actions))}
	for _, p := range t.Actions[do.Action].Loose() {
		n := 1
		if b, ok := p.Var.Type.(source.Bits); ok {
			n = b.Width
		}
		do.Args = append(do.Args, g.number(n))
	}
	return do
}

// entries gives a table const or run-time entries, which differ in their matches.
func (g *generator) entries(t *source.Table) {
	fixed := g.one(2) && t.Profile == nil
	if fixed {
		g.p.Use("const entries")
	} else {
		g.p.Use("run-time entries")
	}
	ordered := t.Ordered()
	t.Priorities = fixed && ordered && g.one(2) && g.p.Arch == source.V1model
	if t.Priorities {
		t.Properties = append(t.Properties, "largest_priority_wins = false")
	}
	seen := map[string]bool{}
	for i := range 1 + g.r.IntN(6) {
		e := &source.Entry{Do: g.target(t)}
		id := ""
		for _, k := range t.Keys {
			if k.Kind == "selector" {
				e.Match = append(e.Match, source.Match{Any: true})
				continue
			}
			c := g.match(k)
			e.Match = append(e.Match, c)
			v := c.Value
			if k.Mask != nil && !t.Calls {
				v = new(big.Int).And(v, k.Mask)
			}
			id += fmt.Sprintf("%v %v %v %v;", v, c.Mask, c.High, c.Any)
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		if ordered {
			g.p.Use("priorities")
			e.Priority = 1 + i
			if !fixed || t.Priorities {
				e.Priority = 10*g.r.IntN(50) + i + 1
			}
		}
		if fixed {
			t.Const = append(t.Const, e)
		} else {
			t.Runtime = append(t.Runtime, e)
		}
	}
}

// target returns the action, member or group of an entry.
func (g *generator) target(t *source.Table) source.Invoke {
	p := t.Profile
	switch {
	case p == nil:
		return g.invoke(t)
	case len(p.Groups) > 0 && g.one(2):
		return source.Invoke{Action: g.r.IntN(len(p.Groups)), Group: true}
	}
	return source.Invoke{Action: g.r.IntN(len(p.Members))}
}

// match returns a condition on a key. It uses few bits, so that hits are likely.
func (g *generator) match(k source.Key) source.Match {
	w := k.Bits().Width
	v, ones := g.number(w), source.Ones(w)
	if k.Mask != nil && !g.one(4) {
		v.And(v, k.Mask)
	}
	c := source.Match{Value: v}
	switch k.Kind {
	case "lpm":
		c.Prefix = g.r.IntN(w + 1)
		if g.one(2) {
			c.Prefix = g.r.IntN(min(w, 4) + 1)
		}
		c.Mask = new(big.Int).Lsh(ones, uint(w-c.Prefix))
		c.Mask.And(c.Mask, ones)
		v.And(v, c.Mask)
	case "ternary":
		c.Mask = g.number(w)
		if g.one(3) {
			c.Mask = ones
		}
		v.And(v, c.Mask)
	case "range":
		c.High = g.number(w)
		if c.High.Cmp(v) < 0 {
			c.Value, c.High = c.High, c.Value
		}
	case "optional":
		c.Any = g.one(3)
		if c.Any {
			c.Value = new(big.Int)
		}
	}
	return c
}

// tableStatement applies a table that is not applied yet.
func (g *generator) tableStatement(b *source.Block) {
	if g.where != inControl || len(g.tables) == 0 || g.loops > 0 {
		return
	}
	t := g.tables[0]
	g.tables = g.tables[1:]
	g.p.Use("table")
	switch g.r.IntN(4) {
	case 0:
		g.p.Use("hit")
		b.Add(source.If(source.Hit(t, g.one(2)), g.nested(), g.nested()))
	case 1:
		g.p.Use("switch action_run")
		var labels []string
		var bodies []*source.Block
		for _, r := range t.Actions {
			if g.one(4) {
				continue
			}
			labels = append(labels, r.Action.Name)
			if g.one(5) {
				bodies = append(bodies, nil)
			} else {
				bodies = append(bodies, g.nested())
			}
		}
		if len(labels) == 0 || g.one(2) {
			labels, bodies = append(labels, ""), append(bodies, g.nested())
		} else if bodies[len(bodies)-1] == nil {
			bodies[len(bodies)-1] = g.nested()
		}
		b.Add(source.SwitchAction(t, labels, bodies))
	default:
		b.Add(source.Apply(t))
	}
}
