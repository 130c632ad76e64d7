package source

import (
	"fmt"
	"math/big"
)

// A Var is a variable, parameter or constant. P4 has no recursion, so each variable
// needs only one value.
type Var struct {
	Name string
	Type Type
	cur  Value
}

// Ref returns an expression that refers to the variable.
func (v *Var) Ref() *Expr {
	return &Expr{Type: v.Type, Text: v.Name, prec: precAtom,
		eval: func(*Machine) Value { return v.cur },
		ref:  func(*Machine) ref { return ref{func() Value { return v.cur }, func(x Value) { v.cur = x }} },
	}
}

// Select returns x.NAME for the field with index i, or x[i] for a tuple.
func Select(x *Expr, i int) *Expr {
	t := x.Type.(*Struct)
	text := fmt.Sprintf("%s.%s", x.at(precPostfix), t.Fields[i].Name)
	if t.Kind == TupleKind {
		text = fmt.Sprintf("%s[%d]", x.at(precPostfix), i)
	}
	get := func(a *agg) Value {
		if t.Kind == HeaderKind && !a.Valid { // section 8.18: the value is undefined
			return nil
		}
		return a.Elems[i]
	}
	e := &Expr{Type: t.Fields[i].Type, Text: text, prec: precPostfix, eval: func(m *Machine) Value {
		return get(x.eval(m).(*agg))
	}}
	if x.ref == nil {
		return e
	}
	e.ref = func(m *Machine) ref {
		outer := x.ref(m)
		return ref{func() Value { return get(outer.get().(*agg)) }, func(v Value) {
			a := outer.get().(*agg)
			switch {
			case t.Kind == HeaderKind && !a.Valid: // section 8.18: no effect
			case t.Kind == UnionKind:
				setMember(a, i, v.(*agg))
			default:
				a.Elems[i] = v
			}
		}}
	}
	return e
}

// setMember assigns a header to a member of a union (section 8.20). A valid header
// invalidates the other members.
func setMember(union *agg, i int, v *agg) {
	for j, e := range union.Elems {
		if j != i && v.Valid {
			e.(*agg).Valid = false
		}
	}
	union.Elems[i] = v
}

// Index returns x[i], an element of a stack. Outside the stack, reads are undefined
// and writes have no effect (section 8.19).
func Index(x, i *Expr) *Expr {
	t := x.Type.(*Stack)
	at := func(a *agg, n *big.Int) Value {
		if !n.IsInt64() || n.Sign() < 0 || n.Int64() >= int64(t.Size) {
			panic(undefined{"an index outside a stack"})
		}
		return a.Elems[n.Int64()]
	}
	e := &Expr{Type: t.Elem, Text: fmt.Sprintf("%s[%s]", x.at(precPostfix), i.Text), prec: precPostfix, eval: func(m *Machine) Value {
		a := x.eval(m).(*agg)
		return at(a, i.Num(m))
	}}
	if x.ref == nil {
		return e
	}
	e.ref = func(m *Machine) ref {
		outer, n := x.ref(m), i.Num(m)
		return ref{func() Value { return at(outer.get().(*agg), n) }, func(v Value) {
			a := outer.get().(*agg)
			at(a, n)
			a.Elems[n.Int64()] = v
		}}
	}
	return e
}

// Last returns x.last, the most recently extracted element (section 8.19).
func Last(x *Expr) *Expr {
	t := x.Type.(*Stack)
	return &Expr{Type: t.Elem, Text: x.at(precPostfix) + ".last", prec: precPostfix, eval: func(m *Machine) Value {
		a := x.eval(m).(*agg)
		if a.Next == 0 {
			panic(undefined{"last of an empty stack"})
		}
		return a.Elems[a.Next-1]
	}}
}

// LastIndex returns x.lastIndex.
func LastIndex(x *Expr) *Expr {
	return Native(Bits{Width: 32}, x.at(precPostfix)+".lastIndex", func(m *Machine) Value {
		a := x.eval(m).(*agg)
		if a.Next == 0 {
			panic(undefined{"lastIndex of an empty stack"})
		}
		return big.NewInt(int64(a.Next - 1))
	})
}

// IsValid returns x.isValid() for a header or union.
func IsValid(x *Expr) *Expr {
	t := x.Type.(*Struct)
	return Native(Bool{}, x.at(precPostfix)+".isValid()", func(m *Machine) Value {
		a := x.eval(m).(*agg)
		if t.Kind == HeaderKind {
			return a.Valid
		}
		for _, e := range a.Elems {
			if e.(*agg).Valid {
				return true
			}
		}
		return false
	})
}

// List returns a list or structure-valued expression of type t. names selects the
// spelling with field names, as in { a = 1 }.
func List(t *Struct, names bool, elems []*Expr) *Expr {
	text := "{"
	for i, e := range elems {
		if i > 0 {
			text += ", "
		}
		if names {
			text += t.Fields[i].Name + " = "
		}
		text += e.Text
	}
	return Native(t, text+"}", func(m *Machine) Value {
		a := &agg{Valid: t.Kind == HeaderKind}
		for _, e := range elems {
			v := clone(e.eval(m))
			if v == nil {
				panic(undefined{"a list"})
			}
			a.Elems = append(a.Elems, v)
		}
		return a
	})
}
