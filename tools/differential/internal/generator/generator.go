// Package generator builds random P4_16 programs, with table entries and packets
// for them, as trees of package source. All of them follow from a seed.
//
// The programs are type-correct and read only values that the specification
// defines: variables are initialised, fields of headers that may be invalid are
// read under isValid().
package generator

import (
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// A Case is a program with packets for it.
type Case struct {
	Seed    uint64
	Program *source.Program
	Packets []Input
}

// An Input is a received packet.
type Input struct {
	Port uint32
	Data []byte
}

// A place is an lvalue or value that statements at a position may use.
type place struct {
	x        *source.Expr
	writable bool
}

// A generator builds one program.
type generator struct {
	r *rand.Rand
	p *source.Program
	n int // number of names so far

	places  []place // innermost last
	funcs   []*source.Callable
	actions []*source.Callable // actions that statements may call
	tables  []*source.Table    // tables that are not applied yet

	enums   []*source.Enum
	structs []*source.Struct
	budget  int // statements left

	where   where
	loops   int           // number of enclosing loops
	result  source.Type   // result type of the enclosing function
	sub     bool          // inside a control or parser that another one applies
	parts   []source.Part // instances in the control that are not applied yet
	headers headers
	sum     int // index of the result header's field for a checksum
	externs externs
	mirror  *mirror // nil if the program has no mirrors
}

// A mirror holds the choices for the mirrors of a program for Tofino.
type mirror struct {
	header *source.Expr // header before mirrored packets, or nil
	late   bool         // ingress mirrors the packet as it leaves (Tofino 2)
}

// A where is the kind of block that contains a position.
type where byte

const (
	inParser where = iota
	inFunction
	inAction
	inControl
)

// New returns the case of a seed for an architecture.
func New(arch string, seed uint64, packets int) *Case {
	g := &generator{
		r: rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)),
		p: &source.Program{Arch: arch, Features: map[string]bool{}, Sessions: map[uint32]uint32{}, Groups: map[uint32][]source.Replica{}},
	}
	if arch != source.V1model {
		g.p.Tofino = source.NewTofino(arch)
	}
	g.program()
	c := &Case{Seed: seed, Program: g.p}
	for range packets {
		c.Packets = append(c.Packets, g.packet())
	}
	return c
}

func (g *generator) program() {
	g.types()
	g.layout()
	for range 1 + g.r.IntN(4) {
		g.function()
	}
	g.parser()
	g.controls()
}

// one returns true with probability 1/n.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

// name returns a new name.
func (g *generator) name(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

var widths = []int{1, 2, 3, 4, 5, 7, 8, 8, 8, 8, 9, 12, 13, 16, 16, 16, 24, 31, 32, 32, 32, 33, 48, 63, 64, 64, 65, 72, 96, 128, 129, 200}

// bitsType returns a random numeric type.
func (g *generator) bitsType() source.Bits {
	t := source.Bits{Width: pick(g, widths)}
	if g.one(4) {
		t.Signed = true
		t.Width = max(t.Width, 2)
	}
	return t
}

// number returns a random number of at most n bits, often an edge case.
func (g *generator) number(n int) *big.Int {
	one := big.NewInt(1)
	top := new(big.Int).Lsh(one, uint(n))
	v := new(big.Int)
	switch g.r.IntN(6) {
	case 0:
		v.SetInt64(int64(g.r.IntN(4)))
	case 1:
		v.Sub(top, big.NewInt(int64(1+g.r.IntN(3))))
	case 2:
		v.Lsh(one, uint(g.r.IntN(n)))
	case 3:
		v.SetInt64(int64(g.r.IntN(256)))
	default:
		for range (n + 63) / 64 {
			v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(g.r.Uint64()))
		}
	}
	return v.Mod(v, top)
}

// with runs f and then removes the places that f has added.
func (g *generator) with(f func()) {
	n := len(g.places)
	f()
	g.places = g.places[:n]
}

// add makes a place and its fields available.
func (g *generator) add(x *source.Expr, writable bool) {
	g.places = append(g.places, place{x, writable && x.IsLvalue()})
	if t, ok := x.Type.(*source.Struct); ok && t.Kind != source.UnionKind {
		for i := range t.Fields {
			g.add(source.Select(x, i), writable)
		}
	}
}

// find returns the places for which ok returns true.
func (g *generator) find(ok func(place) bool) []place {
	var list []place
	for _, p := range g.places {
		if ok(p) {
			list = append(list, p)
		}
	}
	return list
}

func isBits(t source.Type) bool { _, ok := t.(source.Bits); return ok }

// types declares enumerations and structures.
func (g *generator) types() {
	for range 1 + g.r.IntN(2) {
		t := &source.Enum{Name: g.name("E")}
		for range 2 + g.r.IntN(3) {
			t.Members = append(t.Members, g.name("m"))
		}
		if g.one(2) {
			t.Under = &source.Bits{Width: pick(g, []int{2, 4, 8, 8, 16, 32})}
			for range t.Members { // at most four members, so that two bits suffice
				v := g.number(t.Under.Width)
				for g.taken(t, v) {
					v = g.number(t.Under.Width)
				}
				t.Values = append(t.Values, v)
			}
		}
		g.enums = append(g.enums, t)
		g.p.DeclareType(t)
	}
	for range 1 + g.r.IntN(2) {
		t := &source.Struct{Name: g.name("S")}
		for range 1 + g.r.IntN(4) {
			t.Fields = append(t.Fields, source.Field{Name: g.name("f"), Type: g.fieldType(len(g.structs) > 0)})
		}
		g.structs = append(g.structs, t)
		g.p.DeclareType(t)
	}
}

// taken reports whether a member of t has the value v.
func (g *generator) taken(t *source.Enum, v *big.Int) bool {
	for _, w := range t.Values {
		if w.Cmp(v) == 0 {
			return true
		}
	}
	return false
}

// fieldType returns a type for a field or variable.
func (g *generator) fieldType(nested bool) source.Type {
	switch g.r.IntN(10) {
	case 0:
		return source.Bool{}
	case 1:
		return pick(g, g.enums)
	case 2:
		if nested {
			return pick(g, g.structs)
		}
	}
	return g.bitsType()
}

// varType returns a type for a variable, possibly a tuple.
func (g *generator) varType() source.Type {
	if g.one(8) {
		t := &source.Struct{Kind: source.TupleKind}
		for range 2 + g.r.IntN(2) {
			t.Fields = append(t.Fields, source.Field{Type: g.fieldType(false)})
		}
		return t
	}
	return g.fieldType(len(g.structs) > 0)
}
