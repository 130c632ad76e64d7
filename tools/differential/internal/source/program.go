package source

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// The architectures.
const (
	V1model = "v1model"
	TNA     = "tna"
	T2NA    = "t2na"
)

// A Decl is a declaration at top level. Declarations are printed in order.
type Decl struct{ print func(p *printer) }

// A Program is a program for one switch.
type Program struct {
	Arch  string
	Decls []Decl

	// The arguments of all blocks. Each block has parameters with these names.
	Hdr, Meta, Std *Var

	Parser    *Parser
	Ingress   *Callable
	Egress    *Callable
	Functions []*Callable
	Controls  []*Callable // controls that others apply; each uses only earlier ones
	Verify    *Block      // verify_checksum, or nil
	Compute   *Block      // update_checksum, or nil
	Deparser  *Block

	Tofino *Tofino // nil for v1model

	Registers []*Register
	Counters  []*Counter
	Meters    []*Meter
	// Sessions maps mirror sessions to ports, and Groups maps multicast groups to
	// replicas.
	Sessions map[uint32]uint32
	Groups   map[uint32][]Replica

	Features map[string]bool
}

// A Replica is a member of a multicast group.
type Replica struct{ Port, RID uint32 }

// Use records that the program contains a feature.
func (p *Program) Use(feature string) { p.Features[feature] = true }

// Declare adds a declaration given as text.
func (p *Program) Declare(format string, args ...any) {
	p.Decls = append(p.Decls, Decl{func(w *printer) { w.Line(format, args...) }})
}

// DeclareType adds the declaration of a type.
func (p *Program) DeclareType(t Type) {
	p.Decls = append(p.Decls, Decl{func(w *printer) { printType(w, t) }})
}

// DeclareFunc adds a function.
func (p *Program) DeclareFunc(f *Callable) {
	p.Functions = append(p.Functions, f)
	p.Decls = append(p.Decls, Decl{func(w *printer) {
		result := "void"
		if f.Result != nil {
			result = f.Result.String()
		}
		w.block(result+" "+f.head()+" {", f.Body, "}")
	}})
}

func printType(w *printer, t Type) {
	switch t := t.(type) {
	case *Enum:
		head := "enum " + t.Name
		if t.Under != nil {
			head = "enum " + t.Under.String() + " " + t.Name
		}
		w.Open(head + " {")
		for i, m := range t.Members {
			if t.Under != nil {
				m += fmt.Sprintf(" = %v", t.Values[i])
			}
			if i < len(t.Members)-1 {
				m += ","
			}
			w.Line("%s", m)
		}
		w.Close("}")
	case *Struct:
		w.Open(map[Kind]string{StructKind: "struct ", HeaderKind: "header ", UnionKind: "header_union "}[t.Kind] + t.Name + " {")
		for _, f := range t.Fields {
			w.Line("%s%s %s;", f.Notes, f.Type, f.Name)
		}
		w.Close("}")
	}
}

func (c *Callable) printControl(w *printer, head string) {
	w.Open("control " + c.Name + head + " {")
	for _, p := range c.Parts {
		w.Line("%s() %s;", p.Of.Name, p.Name)
	}
	for _, d := range c.Decls {
		d.print(w)
	}
	for _, a := range c.Actions {
		w.block("action "+a.head()+" {", a.Body, "}")
	}
	for _, t := range c.Tables {
		t.print(w)
	}
	w.block("apply {", c.Body, "}")
	w.Close("}")
}

// Text returns the program as P4.
func (p *Program) Text() string {
	var w printer
	w.Line("#include <core.p4>")
	w.Line("#include <%s.p4>", p.Arch)
	for _, d := range p.Decls {
		d.print(&w)
	}
	for _, c := range p.Controls {
		c.printControl(&w, strings.TrimPrefix(c.head(), c.Name))
	}
	p.Parser.print(&w)
	if p.Tofino != nil {
		p.printTofino(&w)
		return w.b.String()
	}
	std := ", inout standard_metadata_t sm)"
	h, m := p.Hdr.Type, p.Meta.Type
	p.Ingress.printControl(&w, fmt.Sprintf("(inout %s hdr, inout %s meta%s", h, m, std))
	p.Egress.printControl(&w, fmt.Sprintf("(inout %s hdr, inout %s meta%s", h, m, std))
	w.Open(fmt.Sprintf("control Ver(inout %s hdr, inout %s meta) {", h, m))
	w.block("apply {", p.Verify, "}")
	w.Close("}")
	w.Open(fmt.Sprintf("control Comp(inout %s hdr, inout %s meta) {", h, m))
	w.block("apply {", p.Compute, "}")
	w.Close("}")
	w.Open(fmt.Sprintf("control Dep(packet_out pkt, in %s hdr) {", h))
	w.block("apply {", p.Deparser, "}")
	w.Close("}")
	w.Line("V1Switch(%s(), Ver(), %s(), %s(), Comp(), Dep()) main;", p.Parser.Name, p.Ingress.Name, p.Egress.Name)
	return w.b.String()
}

// Blocks calls f with each block of statements, outer ones first.
func (p *Program) Blocks(f func(*Block)) {
	control := func(c *Callable) {
		c.Body.visit(f)
		for _, d := range c.Decls {
			for _, b := range d.blocks {
				b.visit(f)
			}
		}
		for _, a := range c.Actions {
			a.Body.visit(f)
		}
	}
	parser := func(q *Parser) {
		for _, s := range q.States {
			s.Body.visit(f)
		}
	}
	for _, c := range append([]*Callable{p.Ingress, p.Egress}, p.Controls...) {
		control(c)
	}
	for _, c := range p.Functions {
		c.Body.visit(f)
	}
	for _, q := range p.Parser.Subs {
		parser(q)
	}
	parser(p.Parser)
	for _, b := range []*Block{p.Verify, p.Compute, p.Deparser} {
		if b != nil {
			b.visit(f)
		}
	}
	if p.Tofino != nil {
		p.Tofino.blocks(f)
	}
}

// Tables calls f with all tables and the name of the instance of each.
func (p *Program) Tables(f func(control string, t *Table)) {
	var visit func(name string, c *Callable)
	visit = func(name string, c *Callable) {
		for _, t := range c.Tables {
			f(name, t)
		}
		for _, part := range c.Parts {
			visit(name+"."+part.Name, part.Of)
		}
	}
	visit(p.Ingress.Name, p.Ingress)
	visit(p.Egress.Name, p.Egress)
}

// Reset gives registers and counters their initial values.
func (p *Program) Reset() {
	for _, r := range p.Registers {
		r.Cells = make([]Value, r.Size)
		for i := range r.Cells {
			r.Cells[i] = r.Initial
		}
	}
	for _, c := range p.Counters {
		c.Packets = make([]int, c.Size)
	}
	for _, m := range p.Meters {
		m.tokens = slices.Clone(m.Bursts)
	}
	p.Tables(func(_ string, t *Table) {
		for _, e := range t.Runtime {
			e.Hits = 0
		}
	})
}

// A Register is an array of values in the data plane.
type Register struct {
	Name    string // name for the control plane, including the control's name
	Type    Type
	Size    int
	Initial Value
	Cells   []Value
}

// Number returns the bits of a cell.
func (r *Register) Number(i int) *big.Int {
	switch v := r.Cells[i].(type) {
	case bool:
		return big.NewInt(int64(b2i(v)))
	case *big.Int:
		if t, ok := r.Type.(Bits); ok {
			return unsigned(t, v)
		}
		return v
	}
	return nil
}

// A Counter is an array of counters.
type Counter struct {
	Name    string
	Size    int
	Packets []int
}

// Drop removes entries, tables, actions and functions one by one as long as still
// returns true.
func (p *Program) Drop(still func() bool) {
	for _, c := range append([]*Callable{p.Ingress, p.Egress}, p.Controls...) {
		for _, t := range c.Tables {
			t.Const = without(t.Const, func(l []*Entry) { t.Const = l }, still)
			t.Runtime = without(t.Runtime, func(l []*Entry) { t.Runtime = l }, still)
		}
		c.Tables = without(c.Tables, func(l []*Table) { c.Tables = l }, still)
		c.Actions = without(c.Actions, func(l []*Callable) { c.Actions = l }, still)
		c.Decls = without(c.Decls, func(l []Stmt) { c.Decls = l }, still)
		c.Parts = without(c.Parts, func(l []Part) { c.Parts = l }, still)
	}
	p.Controls = without(p.Controls, func(l []*Callable) { p.Controls = l }, still)
	p.Decls = without(p.Decls, func(l []Decl) { p.Decls = l }, still)
}

// without removes elements from list as long as still returns true.
func without[T any](list []T, set func([]T), still func() bool) []T {
	for i := len(list) - 1; i >= 0; i-- {
		less := append(append([]T(nil), list[:i]...), list[i+1:]...)
		set(less)
		if still() {
			list = less
		}
		set(list)
	}
	return list
}
