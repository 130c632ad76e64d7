package source

import (
	"fmt"
	"strings"
)

// A Dir is the direction of a parameter.
type Dir string

// The directions. Parameters without a direction are set by the control plane or
// known at compile time.
const (
	NoDir Dir = ""
	In    Dir = "in "
	Out   Dir = "out "
	InOut Dir = "inout "
)

// A Param is a parameter.
type Param struct {
	Var *Var
	Dir Dir
}

// A Callable is a function, an action or a control.
type Callable struct {
	Name    string
	Params  []Param
	Result  Type   // nil for void
	Decls   []Stmt // declarations of a control before apply
	Parts   []Part // instances of other controls
	Actions []*Callable
	Tables  []*Table
	Body    *Block
}

// A Part is an instance of a control inside another.
type Part struct {
	Name string
	Of   *Callable
}

// Apply returns the statement p.apply(args).
func (p Part) Apply(args []*Expr) Stmt { return CallStmt(p.Of, p.Name+".apply", args) }

func (c *Callable) head() string {
	var list []string
	for _, p := range c.Params {
		list = append(list, fmt.Sprintf("%s%s %s", p.Dir, p.Var.Type, p.Var.Name))
	}
	return c.Name + "(" + strings.Join(list, ", ") + ")"
}

// call runs the body with the calling convention of section 6.8. Arguments,
// including lvalues, are evaluated from left to right. After the body, even if it
// ends with exit, out and inout parameters are copied back in the same order.
func (c *Callable) call(m *Machine, args []*Expr) Value {
	refs, values := make([]ref, len(args)), make([]Value, len(args))
	for i, a := range args {
		switch c.Params[i].Dir {
		case Out:
			refs[i] = a.ref(m)
			values[i] = fresh(a.Type)
		case InOut:
			refs[i] = a.ref(m)
			values[i] = clone(refs[i].get())
		default:
			values[i] = clone(a.eval(m))
		}
		if values[i] == nil && c.Params[i].Dir != Out {
			panic(undefined{"an argument"})
		}
	}
	return c.run(m, values, func() {
		for i, p := range c.Params[:len(args)] {
			if p.Dir == Out || p.Dir == InOut {
				refs[i].set(clone(p.Var.cur))
			}
		}
	})
}

// run runs the body with values for its parameters, and then copyOut.
func (c *Callable) run(m *Machine, values []Value, copyOut func()) Value {
	for i, v := range values {
		c.Params[i].Var.cur = v
	}
	m.result = nil
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exits); ok {
				copyOut()
			}
			panic(r)
		}
	}()
	for _, s := range c.Decls {
		s.exec(m)
	}
	c.Body.exec(m)
	result := m.result
	copyOut()
	m.result = nil
	return result
}

func arguments(list []*Expr) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.Text)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// Call returns a call of a function with a result.
func Call(c *Callable, args []*Expr) *Expr {
	return &Expr{Type: c.Result, Text: c.Name + arguments(args), prec: precPostfix, eval: func(m *Machine) Value {
		return c.call(m, args)
	}}
}

// CallStmt returns a call statement. Name is the name of a function or action, or
// of a control's instance with the suffix .apply.
func CallStmt(c *Callable, name string, args []*Expr) Stmt {
	return Do(name+arguments(args)+";", func(m *Machine) { c.call(m, args) })
}
