package source

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// A Keyset is one element of a select case. Any matches everything; Set is a value
// set. Otherwise Value matches, either with Mask or as the lower bound of a range
// up to High.
type Keyset struct {
	Value, Mask, High *big.Int
	Any               bool
	Set               *ValueSet
}

// A SelectCase is a case of a select. A value set matches all keys at once.
type SelectCase struct {
	Sets []Keyset
	Next string
}

// A State is a state of a parser.
type State struct {
	Name  string
	Body  *Block
	Next  string // next state if there is no select
	On    []*Expr
	Cases []SelectCase
}

// A ValueSet is a parser value set. The control plane sets its members: numbers under
// masks.
type ValueSet struct {
	Name    string
	Type    Bits
	Size    int
	Members []Keyset
}

// A Parser is a parser. Its states begin with start.
type Parser struct {
	Name   string
	Head   string // text of the parameters
	Params []Param
	Decls  []Stmt
	Sets   []*ValueSet
	Subs   []*Parser // parsers declared before this one
	States []*State
}

// A parseError is the panic value for an error in a parser.
type parseError string

// The errors of core.p4 that parsers raise without a verify.
const (
	errTooShort parseError = "PacketTooShort"
	errNoMatch  parseError = "NoMatch"
	errStack    parseError = "StackOutOfBounds"
	errVarbit   parseError = "HeaderTooShort"
	errReject   parseError = ""
)

// run runs the parser until accept. It panics with a parseError on failure.
func (p *Parser) run(m *Machine) {
	for _, d := range p.Decls {
		d.exec(m)
	}
	name := "start"
	for name != "accept" {
		if name == "reject" {
			panic(errReject)
		}
		if m.steps++; m.steps > maxSteps {
			panic(undefined{"too many states"})
		}
		s := p.state(name)
		s.Body.exec(m)
		if name = s.Next; s.On != nil {
			name = s.choose(m)
		}
	}
}

func (p *Parser) state(name string) *State {
	for _, s := range p.States {
		if s.Name == name {
			return s
		}
	}
	panic("no state " + name)
}

func (s *State) choose(m *Machine) string {
	var values []*big.Int
	for _, e := range s.On {
		v := e.eval(m)
		if v == nil {
			panic(undefined{"a select"})
		}
		if b, ok := v.(bool); ok {
			v = big.NewInt(int64(b2i(b)))
		}
		values = append(values, v.(*big.Int))
	}
	for _, c := range s.Cases {
		if c.matches(values) {
			return c.Next
		}
	}
	if m.Prog.Arch == V1model { // docs/conformance.md: reject ends the parser without an error
		return "accept"
	}
	panic(errNoMatch)
}

func (c *SelectCase) matches(values []*big.Int) bool {
	if set := c.Sets[0].Set; set != nil {
		return slices.ContainsFunc(set.Members, func(k Keyset) bool { return k.matches(values[0]) })
	}
	for i, k := range c.Sets {
		if !k.matches(values[min(i, len(values)-1)]) {
			return false
		}
	}
	return true
}

func (k *Keyset) matches(v *big.Int) bool {
	switch {
	case k.Any:
		return true
	case k.Mask != nil:
		return new(big.Int).And(v, k.Mask).Cmp(new(big.Int).And(k.Value, k.Mask)) == 0
	case k.High != nil:
		return v.Cmp(k.Value) >= 0 && v.Cmp(k.High) <= 0
	}
	return v.Cmp(k.Value) == 0
}

func (p *Parser) print(w *printer) {
	for _, s := range p.Subs {
		s.print(w)
	}
	w.Open("parser " + p.Name + p.Head + " {")
	for _, s := range p.Subs {
		w.Line("%s() %s;", s.Name, instance(s.Name))
	}
	for _, s := range p.Sets {
		w.Line("value_set<%s>(%d) %s;", s.Type, s.Size, s.Name)
	}
	for _, d := range p.Decls {
		d.print(w)
	}
	for _, s := range p.States {
		w.Open("state " + s.Name + " {")
		for _, st := range s.Body.Stmts {
			st.print(w)
		}
		s.printTransition(w)
		w.Close("}")
	}
	w.Close("}")
}

// instance returns the name of the instance of a parser or control.
func instance(name string) string { return "the_" + name }

func (s *State) printTransition(w *printer) {
	if s.On == nil {
		w.Line("transition %s;", s.Next)
		return
	}
	w.Open("transition select" + arguments(s.On) + " {")
	for _, c := range s.Cases {
		var list []string
		for i, k := range c.Sets {
			t := s.On[min(i, len(s.On)-1)].Type
			switch {
			case k.Any:
				list = append(list, "_")
			case k.Set != nil:
				list = append(list, k.Set.Name)
			case k.Mask != nil:
				list = append(list, fmt.Sprintf("%s &&& %s", spell(t, k.Value), spell(t, k.Mask)))
			case k.High != nil:
				list = append(list, fmt.Sprintf("%s .. %s", spell(t, k.Value), spell(t, k.High)))
			default:
				list = append(list, spell(t, k.Value))
			}
		}
		text := strings.Join(list, ", ")
		if len(list) > 1 {
			text = "(" + text + ")"
		} else if text == "_" && len(s.On) > 1 {
			text = "default"
		}
		w.Line("%s: %s;", text, c.Next)
	}
	w.Close("}")
}

// CallParser returns sub.apply(args). The packet is the first argument.
func CallParser(sub *Parser, args []*Expr) Stmt {
	text := append([]*Expr{{Text: "pkt"}}, args...)
	return Do(instance(sub.Name)+".apply"+arguments(text)+";", func(m *Machine) {
		refs := make([]ref, len(args))
		values := make([]Value, len(args))
		for i, a := range args {
			switch sub.Params[i].Dir {
			case Out:
				refs[i], values[i] = a.ref(m), fresh(a.Type)
			case InOut:
				refs[i] = a.ref(m)
				values[i] = clone(refs[i].get())
			default:
				values[i] = clone(a.eval(m))
			}
		}
		for i, v := range values {
			sub.Params[i].Var.cur = v
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					if _, ok := r.(parseError); ok && m.Prog.Arch == V1model {
						panic(undefined{"the arguments of a parser that ends with an error"})
					}
					panic(r)
				}
			}()
			sub.run(m)
		}()
		for i, p := range sub.Params {
			if p.Dir == Out || p.Dir == InOut {
				refs[i].set(clone(p.Var.cur))
			}
		}
	})
}

// Extract returns pkt.extract(target). Target is a header, a member of a union (if
// union is set) or, if next is set, the next element of a stack. Size is the width
// of the header's varbit, or nil.
func Extract(target, union *Expr, next bool, size *Expr) Stmt {
	text := target.Text
	if next {
		text += ".next"
	}
	if size != nil {
		text += ", " + size.Text
	}
	return Do("pkt.extract("+text+");", func(m *Machine) {
		place := target.ref(m)
		t, _ := target.Type.(*Struct)
		var stack *agg
		if next {
			stack = place.get().(*agg)
			t = target.Type.(*Stack).Elem
			if stack.Next >= target.Type.(*Stack).Size {
				panic(errStack)
			}
		}
		bits := 0
		if size != nil {
			bits = int(size.Num(m).Int64())
		}
		h := m.extract(t, bits)
		switch {
		case next:
			stack.Elems[stack.Next] = h
			stack.Next++
		default:
			place.set(h)
		}
		_ = union
	})
}

// extract reads a header from the packet; bits is the length of its varbit.
func (m *Machine) extract(t *Struct, bits int) *agg {
	total, tooLong := 0, false
	for _, f := range t.Fields {
		if v, ok := f.Type.(Varbit); ok {
			total += bits
			tooLong = bits > v.Max
			continue
		}
		total += width(f.Type, nil)
	}
	m.need(total)
	if tooLong { // section 13.8.2: the check of the length comes second
		panic(errVarbit)
	}
	h := &agg{Valid: true}
	for _, f := range t.Fields {
		if _, ok := f.Type.(Varbit); ok {
			h.Elems = append(h.Elems, bitstring{bits, m.take(bits)})
			continue
		}
		h.Elems = append(h.Elems, fromBits(f.Type, m.take(width(f.Type, nil))))
	}
	return h
}

// peek returns n bits of the packet from bit at.
func (m *Machine) peek(at, n int) *big.Int {
	v := new(big.Int).SetBytes(m.data)
	v.Rsh(v, uint(8*len(m.data)-at-n))
	return wrap(Bits{Width: n}, v)
}

func (m *Machine) take(n int) *big.Int {
	v := m.peek(m.at, n)
	m.at += n
	return v
}

// Lookahead returns pkt.lookahead<T>().
func Lookahead(t Type) *Expr {
	return Native(t, "pkt.lookahead<"+t.String()+">()", func(m *Machine) Value {
		n := 0
		s, ok := t.(*Struct)
		if ok {
			for _, f := range s.Fields {
				n += width(f.Type, nil)
			}
		} else {
			n = width(t, nil)
		}
		m.need(n)
		if !ok {
			return fromBits(t, m.peek(m.at, n))
		}
		a, at := &agg{Valid: s.Kind == HeaderKind}, m.at
		for _, f := range s.Fields {
			w := width(f.Type, nil)
			a.Elems = append(a.Elems, fromBits(f.Type, m.peek(at, w)))
			at += w
		}
		return a
	})
}

// Advance returns pkt.advance(n).
func Advance(n *Expr) Stmt {
	return Do("pkt.advance("+n.Text+");", func(m *Machine) {
		bits := int(n.Num(m).Int64())
		m.need(bits)
		m.at += bits
	})
}

// Verify returns verify(cond, error.NAME).
func Verify(cond *Expr, name string) Stmt {
	return Do("verify("+cond.Text+", error."+name+");", func(m *Machine) {
		if !truth(cond.eval(m)) {
			panic(parseError(name))
		}
	})
}

// need ends the parser with an error if fewer than n bits are left. Tofino's parser
// can also read the four bytes of the frame check sequence, whose value is
// undefined here.
func (m *Machine) need(n int) {
	missing := m.at + n - 8*len(m.data)
	if missing <= 0 {
		return
	}
	if m.Prog.Tofino != nil && missing <= 32 {
		panic(undefined{"the frame check sequence"})
	}
	panic(errTooShort)
}
