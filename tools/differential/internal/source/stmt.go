package source

import (
	"fmt"
	"math/big"
	"strings"
)

// A signal is the result of a statement. It determines how the enclosing block
// continues.
type signal byte

const (
	proceed signal = iota
	breaks
	continues
	returns
)

// An exits is the panic value of an exit statement (section 12.4).
type exits struct{}

// A Stmt is a statement: its text and its effect.
type Stmt struct {
	print  func(p *printer)
	exec   func(m *Machine) signal
	blocks []*Block
	Needed bool // Drop must keep the statement
}

// A Block is a list of statements.
type Block struct{ Stmts []Stmt }

// Add appends statements.
func (b *Block) Add(s ...Stmt) { b.Stmts = append(b.Stmts, s...) }

func (b *Block) exec(m *Machine) signal {
	for i := range b.Stmts {
		if m.steps++; m.steps > maxSteps {
			panic(undefined{"too many steps"})
		}
		if s := b.Stmts[i].exec(m); s != proceed {
			return s
		}
	}
	return proceed
}

// maxSteps bounds the statements of one packet.
const maxSteps = 100_000

// visit calls f with the block and all nested blocks.
func (b *Block) visit(f func(*Block)) {
	f(b)
	for _, s := range b.Stmts {
		for _, inner := range s.blocks {
			inner.visit(f)
		}
	}
}

// A printer writes indented lines.
type printer struct {
	b      strings.Builder
	indent int
}

// Line writes a line.
func (p *printer) Line(format string, args ...any) {
	p.b.WriteString(strings.Repeat("    ", p.indent))
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteByte('\n')
}

// block writes head, the statements of b and tail.
func (p *printer) block(head string, b *Block, tail string) {
	p.Open(head)
	for _, s := range b.Stmts {
		s.print(p)
	}
	p.Close(tail)
}

// Open writes head and indents the lines after it, until Close.
func (p *printer) Open(head string) {
	p.Line("%s", head)
	p.indent++
}

// Close ends the block of Open and writes tail.
func (p *printer) Close(tail string) {
	p.indent--
	p.Line("%s", tail)
}

// Do returns a statement with a given text and meaning.
func Do(text string, exec func(m *Machine)) Stmt {
	return Stmt{print: func(p *printer) { p.Line("%s", text) }, exec: func(m *Machine) signal {
		exec(m)
		return proceed
	}}
}

// Declare returns the declaration of a variable, with a value if init is not nil.
// note comes before the type, for example const.
func Declare(v *Var, init *Expr, note string) Stmt {
	text := note + v.Type.String() + " " + v.Name
	if init != nil {
		text += " = " + init.Text
	}
	return Do(text+";", func(m *Machine) {
		if init == nil {
			v.cur = fresh(v.Type)
			return
		}
		v.cur = clone(init.eval(m))
	})
}

// Assign returns an assignment. The place of the target is determined first
// (section 12.1).
func Assign(target, value *Expr) Stmt {
	return Do(target.Text+" = "+value.Text+";", func(m *Machine) {
		r := target.ref(m)
		r.set(clone(value.eval(m)))
	})
}

// Update returns target op= value: target = target op value, with the target's
// place determined once. Value must have the type of op's right operand.
func Update(target *Expr, op string, value *Expr) Stmt {
	t := target.Type.(Bits)
	return Do(target.Text+" "+op+"= "+value.Text+";", func(m *Machine) {
		r := target.ref(m)
		old := num(r.get())
		v := value.Num(m)
		if op == "<<" || op == ">>" {
			r.set(m.shift(op, t, old, v))
			return
		}
		r.set(arithmetic[op].f(t, old, v))
	})
}

// If returns a conditional statement; orElse may be nil.
func If(cond *Expr, then, orElse *Block) Stmt {
	s := Stmt{blocks: []*Block{then}}
	if orElse != nil {
		s.blocks = append(s.blocks, orElse)
	}
	s.print = func(p *printer) {
		p.block("if ("+cond.Text+") {", then, "}")
		if orElse != nil {
			p.block("else {", orElse, "}")
		}
	}
	s.exec = func(m *Machine) signal {
		if truth(cond.eval(m)) {
			return then.exec(m)
		}
		if orElse != nil {
			return orElse.exec(m)
		}
		return proceed
	}
	return s
}

// Scope returns a block statement.
func Scope(b *Block) Stmt {
	return Stmt{blocks: []*Block{b}, exec: b.exec, print: func(p *printer) { p.block("{", b, "}") }}
}

// Return returns a return statement, for a function with a value.
func Return(value *Expr) Stmt {
	text := "return;"
	if value != nil {
		text = "return " + value.Text + ";"
	}
	return Stmt{print: func(p *printer) { p.Line("%s", text) }, exec: func(m *Machine) signal {
		if value != nil {
			m.result = clone(value.eval(m))
		}
		return returns
	}}
}

// Exit returns an exit statement.
func Exit() Stmt { return Do("exit;", func(*Machine) { panic(exits{}) }) }

// Break returns a break statement.
func Break() Stmt { return jump("break;", breaks) }

// Continue returns a continue statement.
func Continue() Stmt { return jump("continue;", continues) }

func jump(text string, s signal) Stmt {
	return Stmt{print: func(p *printer) { p.Line("%s", text) }, exec: func(*Machine) signal { return s }}
}

// For returns for (T v = from; cond; update) body (section 12.9). The update also
// runs after continue.
func For(v *Var, from, cond *Expr, update Stmt, body *Block) Stmt {
	var p printer
	update.print(&p)
	step := strings.TrimSuffix(strings.TrimSpace(p.b.String()), ";")
	head := fmt.Sprintf("for (%s %s = %s; %s; %s) {", v.Type, v.Name, from.Text, cond.Text, step)
	return Stmt{blocks: []*Block{body}, print: func(p *printer) { p.block(head, body, "}") }, exec: func(m *Machine) signal {
		v.cur = from.eval(m)
		for truth(cond.eval(m)) {
			if s := body.exec(m); s == breaks {
				break
			} else if s == returns {
				return s
			}
			update.exec(m)
		}
		return proceed
	}}
}

// ForIn returns for (T v in low .. high) body.
func ForIn(v *Var, low, high *Expr, body *Block) Stmt {
	head := fmt.Sprintf("for (%s %s in %s .. %s) {", v.Type, v.Name, low.at(precShift), high.at(precShift))
	return Stmt{blocks: []*Block{body}, print: func(p *printer) { p.block(head, body, "}") }, exec: func(m *Machine) signal {
		from, to := low.Num(m), high.Num(m)
		for i := from; i.Cmp(to) <= 0; i = new(big.Int).Add(i, big.NewInt(1)) {
			v.cur = i
			if s := body.exec(m); s == breaks {
				break
			} else if s == returns {
				return s
			}
		}
		return proceed
	}}
}

// A SwitchCase is a case of a switch statement. Without labels, it is the default.
// If its body is nil, it falls through to the next case.
type SwitchCase struct {
	Labels []*Expr
	Body   *Block
}

// Switch returns a switch on an expression (section 12.7).
func Switch(x *Expr, cases []SwitchCase) Stmt {
	var s Stmt
	for _, c := range cases {
		if c.Body != nil {
			s.blocks = append(s.blocks, c.Body)
		}
	}
	s.print = func(p *printer) {
		p.Open("switch (" + x.Text + ") {")
		for _, c := range cases {
			label := "default:"
			if len(c.Labels) > 0 {
				label = c.Labels[0].Text + ":"
			}
			if c.Body == nil {
				p.Line("%s", label)
				continue
			}
			p.block(label+" {", c.Body, "}")
		}
		p.Close("}")
	}
	s.exec = func(m *Machine) signal {
		v := x.eval(m)
		if v == nil {
			panic(undefined{"a switch"})
		}
		hit := -1
		for i, c := range cases {
			if len(c.Labels) == 0 && hit < 0 {
				hit = i
			}
			if len(c.Labels) > 0 && equal(x.Type, v, c.Labels[0].eval(m)) {
				hit = i
				break
			}
		}
		return execCase(m, cases, hit)
	}
	return s
}

// execCase runs the body of a case, or of the next case that has one.
func execCase(m *Machine, cases []SwitchCase, i int) signal {
	for ; i >= 0 && i < len(cases); i++ {
		if cases[i].Body != nil {
			return cases[i].Body.exec(m)
		}
	}
	return proceed
}

// SetValid returns h.setValid() or h.setInvalid(). A header that becomes valid has
// undefined fields. A member of a union that becomes valid invalidates the others.
// Union is the union of h or nil.
func SetValid(h, union *Expr, valid bool) Stmt {
	text := h.at(precPostfix) + map[bool]string{true: ".setValid();", false: ".setInvalid();"}[valid]
	t := h.Type.(*Struct)
	return Do(text, func(m *Machine) {
		a := h.ref(m).get().(*agg)
		if valid && !a.Valid {
			for i, f := range t.Fields {
				a.Elems[i] = fresh(f.Type)
			}
			if union != nil {
				for _, e := range union.ref(m).get().(*agg).Elems {
					e.(*agg).Valid = false
				}
			}
		}
		a.Valid = valid
	})
}

// Push returns s.push_front(n) (section 8.19).
func Push(s *Expr, n int) Stmt {
	t := s.Type.(*Stack)
	return Do(fmt.Sprintf("%s.push_front(%d);", s.at(precPostfix), n), func(m *Machine) {
		a := s.ref(m).get().(*agg)
		for i := t.Size - 1; i >= 0; i-- {
			if i >= n {
				a.Elems[i] = a.Elems[i-n]
			} else {
				a.Elems[i] = fresh(t.Elem)
			}
		}
		a.Next = min(a.Next+n, t.Size)
	})
}

// Pop returns s.pop_front(n) (section 8.19): the elements move to the front, and
// the last n become invalid.
func Pop(s *Expr, n int) Stmt {
	t := s.Type.(*Stack)
	return Do(fmt.Sprintf("%s.pop_front(%d);", s.at(precPostfix), n), func(m *Machine) {
		a := s.ref(m).get().(*agg)
		for i := range t.Size {
			if i+n < t.Size {
				a.Elems[i] = a.Elems[i+n]
			} else {
				a.Elems[i] = fresh(t.Elem)
			}
		}
		a.Next = max(a.Next-n, 0)
	})
}

// Run executes statements in order.
func Run(m *Machine, list ...Stmt) {
	for _, s := range list {
		s.exec(m)
	}
}
