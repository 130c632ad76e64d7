package program

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/code"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// compile compiles a linked program to machine code if the machine allows it.
// Otherwise the closures run.
func (s *Program) compile(l *Linker, c *bmv2.Config) {
	if !asm.Supported || s.opts.Closures || s.opts.Trace != nil {
		return
	}
	k := &compiler{Writer: code.New(l.Linker), prog: s, actions: map[*action]asm.Label{}}
	if s.Tofino() {
		k.halves(c)
	} else {
		k.program(c)
	}
	if k.Len() > maxReach {
		return
	}
	addresses := k.addresses()
	bytes, err := k.Finish()
	if err != nil {
		if asm.Debug {
			panic(err)
		}
		return // run the closures
	}
	code, err := asm.Load(bytes)
	if err != nil {
		return // the system forbids executable memory
	}
	for _, a := range addresses {
		*a.of = code.Entry(k.Offset(a.label))
	}
	k.result.Code = code
	s.Compiled = k.result
	for _, t := range s.Tables {
		t.compiled(k.result.end)
	}
}

// maxReach is the distance that jumps reach on every processor.
const maxReach = 128 << 20

// begin writes the code that ends a run.
func (k *compiler) begin(c *bmv2.Config) {
	k.sources = map[*action]*bmv2.Action{}
	for i, a := range c.Actions {
		k.sources[k.prog.actions[i]] = a
	}
	k.end = k.EntryHere()
	k.Set(asm.AX, 0)
	k.Return()
}

// halves compiles the halves of the pipes of a program for Tofino. Their parts
// run separately.
func (k *compiler) halves(c *bmv2.Config) {
	k.begin(c)
	k.entries = map[*uintptr]asm.Label{}
	for _, h := range k.prog.Halves {
		k.entries[&h.Parser.entry] = k.EntryHere()
		k.parseStates(h.Parser, c, h.name+"_parser")
		k.Jump(k.end)
		if pl := h.Control; pl != nil && pl.first != nil && !circular(pl.first, (*node).successors) {
			k.entries[&pl.entry] = k.EntryHere()
			k.compileControl(pl, c)
		}
		d := h.Deparser
		k.entries[&d.prepares] = k.EntryHere()
		k.beforeHeaders(d, c, h.name+"_deparser")
		k.Jump(k.end)
		k.entries[&d.emits] = k.EntryHere()
		k.emitHeaders(d)
		k.Jump(k.end)
	}
	k.pickedActions()
}

// program compiles parser, controls and deparser of a program for v1model.
func (k *compiler) program(c *bmv2.Config) {
	k.begin(c)
	k.ingress = k.NewLabel()
	k.compileParser(c)
	k.Entry(k.ingress)
	k.putStd(&k.prog.Std.ParserError, code.StateError, 8)
	k.putStd(&k.prog.Std.ChecksumError, code.StateSumBad, 1)
	k.compileControl(k.prog.Ingress, c)
	k.egress = k.EntryHere()
	k.compileControl(k.prog.Egress, c)
	k.compileDeparser(c)
	k.pickedActions()
}

// pickedActions writes the actions of tables.
func (k *compiler) pickedActions() {
	for len(k.queue) > 0 {
		a := k.queue[0]
		k.queue = k.queue[1:]
		k.Entry(k.actions[a])
		k.argWords = a.argWords
		k.loadArgs()
		k.body(a)
		if k.exits {
			k.CmpByte(code.StateExit, 0)
			k.JumpIf(asm.NotEqual, k.end)
		}
		k.JumpTo(code.StateNext)
	}
}

// An address is a variable that receives the address of a label.
type address struct {
	of    *uintptr
	label asm.Label
}

// addresses lists the labels at which Go may enter the code.
func (k *compiler) addresses() (list []address) {
	c := &compiled{prog: k.prog, refs: k.Refs, outs: k.outs}
	k.result = c
	add := func(of *uintptr, l asm.Label) { list = append(list, address{of, l}) }
	add(&c.end, k.end)
	if !k.prog.Tofino() {
		add(&c.Ingress, k.ingress)
		add(&c.Parse, k.parse)
		add(&c.Egress, k.egress)
		add(&c.deparse, k.deparse)
	}
	for entry, l := range k.entries {
		add(entry, l)
	}
	for i, r := range k.resumes {
		add(&c.outs[i].resume, r.resume)
		add(&c.outs[i].other, r.other)
	}
	for a, l := range k.actions {
		add(&a.entry, l)
	}
	for n, l := range k.nodes {
		add(&n.entry, l)
	}
	for s, l := range k.states {
		add(&s.entry, l)
	}
	for _, a := range list {
		k.Enter(a.label)
	}
	return list
}

// putStd copies a field of the State to a standard field.
func (k *compiler) putStd(f *StdField, from asm.Mem, bytes int) {
	if !f.OK {
		return
	}
	k.LoadBytes(code.Pool[0], from, bytes)
	k.Mask(code.Pool[0], f.Mask)
	k.Store(code.Word(f.off), code.Pool[0])
}

// compileControl compiles a control, starting with its first node.
func (k *compiler) compileControl(pl *Pipeline, c *bmv2.Config) {
	if pl == nil || pl.first == nil {
		k.Jump(k.end)
		return
	}
	k.CmpByte(code.StateExit, 0) // a parser assertion has failed
	k.JumpIf(asm.NotEqual, k.end)
	src := c.Pipelines[slices.IndexFunc(c.Pipelines, func(x *bmv2.Pipeline) bool { return x.Name == pl.name })]
	if k.nodes == nil {
		k.nodes = map[*node]asm.Label{}
	}
	if circular(pl.first, (*node).successors) {
		k.call(fromControlLoop, func(p *vector.State) { pl.Apply(k.prog, p) })
		k.Jump(k.end)
		return
	}
	g := &controlGraph{graph: graph[node]{compiler: k, labels: k.nodes, last: k.end}, conditions: map[string]*bmv2.Expr{}}
	for _, x := range src.Conditionals {
		g.conditions[x.Name] = x.Expression
	}
	g.node = g.step
	g.write(pl.first)
}

// circular reports whether a control or a parser has a loop. If so, its steps must
// be counted.
func circular[N any](first *N, successors func(*N) []*N) bool {
	open := map[*N]bool{} // visited nodes: true while on the current path
	var visit func(n *N) bool
	visit = func(n *N) bool {
		if n == nil {
			return false
		}
		if on, seen := open[n]; seen {
			return on
		}
		open[n] = true
		if slices.ContainsFunc(successors(n), visit) {
			return true
		}
		open[n] = false
		return false
	}
	return visit(first)
}

// successors returns the nodes that may follow n.
func (n *node) successors() []*node {
	t := n.table
	if t == nil {
		return []*node{n.yes, n.no}
	}
	list := []*node{t.base, t.hit, t.miss}
	for _, a := range t.actions {
		list = append(list, t.next[a])
	}
	return list
}

// A graph is the graph of a control or a parser during compilation.
type graph[N any] struct {
	*compiler
	labels map[*N]asm.Label
	last   asm.Label     // label of the end of the graph
	node   func(n *N) *N // writes a node and returns the next one to write
	later  []*N          // nodes that have a label but are not written
}

// write writes all nodes reachable from the first.
func (g *graph[N]) write(first *N) {
	g.follow(first)
	for len(g.later) > 0 {
		n := g.later[0]
		g.later = g.later[1:]
		if !g.Bound(g.labels[n]) {
			g.follow(n)
		}
	}
}

// label returns the label of a node, and schedules the node unless it is
// written.
func (g *graph[N]) label(n *N) asm.Label {
	if n == nil {
		return g.last
	}
	l, ok := g.labels[n]
	if !ok {
		l = g.NewLabel()
		g.labels[n] = l
	}
	if !g.Bound(l) {
		g.later = append(g.later, n)
	}
	return l
}

// follow writes a chain of nodes, starting with n, up to a node that is already
// written.
func (g *graph[N]) follow(n *N) {
	for n != nil {
		l := g.label(n)
		if g.Bound(l) {
			break
		}
		g.Entry(l)
		n = g.node(n)
	}
	g.Jump(g.label(n))
}

// A controlGraph is a control during compilation.
type controlGraph struct {
	graph[node]
	conditions map[string]*bmv2.Expr
}

// step writes one node and returns the node to write next.
func (g *controlGraph) step(n *node) *node {
	switch {
	case n.table != nil && n.table.Fixed:
		g.inlined(n.table.Def.Action, n.table.Def.Args)
		return n.table.Def.next
	case n.table != nil:
		// Every possible successor of the lookup needs a label.
		t := n.table
		for _, next := range n.successors() {
			g.label(next)
		}
		for _, a := range t.actions {
			g.picked(a)
		}
		if a := t.initial.Action; a != nil {
			g.picked(a)
		}
		g.out(fromTable, callout{table: t}, g.end)
		return nil
	case n.cond != nil:
		if b := g.Condition(g.conditions[n.name]); b != nil && !g.leaves() {
			g.Branch(b, 0, g.label(n.yes), true)
		} else {
			g.out(fromCondition, callout{test: n.cond}, g.label(n.yes))
		}
		return n.no
	}
	g.inlined(n.call, nil)
	return n.no
}

// picked schedules an action of a table for compilation.
func (k *compiler) picked(a *action) {
	if _, ok := k.actions[a]; !ok {
		k.actions[a] = k.NewLabel()
		k.queue = append(k.queue, a)
	}
}

// inlined writes an action with known arguments in place.
func (k *compiler) inlined(a *action, args []uint64) {
	k.InPlace, k.Known, k.argWords = true, args, a.argWords
	k.body(a)
	k.InPlace, k.Known = false, nil
	if k.exits {
		k.CmpByte(code.StateExit, 0)
		k.JumpIf(asm.NotEqual, k.end)
	}
}
