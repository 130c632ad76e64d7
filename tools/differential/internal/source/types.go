// Package source is a small independent implementation of P4_16: a syntax tree that
// can print itself as a program and evaluate it on big integers. It follows the
// P4_16 specification, whose sections comments cite. Where simple_switch or Tofino
// define more than the specification, docs/conformance.md and docs/tofino.md state
// the rule.
//
// The package imports nothing from p4lb, so that it shares no bug with the compiler
// or the data plane. It does not check types; the code that builds a tree must.
package source

import (
	"fmt"
	"math/big"
	"strings"
)

// A Type is a type of P4. String returns its spelling.
type Type interface{ String() string }

// Bits is bit<Width>, or int<Width> if Signed.
type Bits struct {
	Width  int
	Signed bool
}

func (t Bits) String() string {
	if t.Signed {
		return fmt.Sprintf("int<%d>", t.Width)
	}
	return fmt.Sprintf("bit<%d>", t.Width)
}

// Bool is the type bool.
type Bool struct{}

func (Bool) String() string { return "bool" }

// Varbit is varbit<Max>.
type Varbit struct{ Max int }

func (t Varbit) String() string { return fmt.Sprintf("varbit<%d>", t.Max) }

// An Enum is an enumeration. If Under is set, it is serializable, and its values
// are numbers. The type error is an Enum too.
type Enum struct {
	Name    string
	Members []string
	Under   *Bits
	Values  []*big.Int // values of the members, if Under is set
}

func (t *Enum) String() string { return t.Name }

// A Kind distinguishes types with fields.
type Kind byte

// The kinds of types with fields.
const (
	StructKind Kind = iota
	HeaderKind
	UnionKind
	TupleKind
)

// A Field is a field of a struct, header, union or tuple.
type Field struct {
	Name  string
	Type  Type
	Notes string // annotations, with a space at the end
}

// A Struct is a type with fields.
type Struct struct {
	Name   string // empty for tuples
	Kind   Kind
	Fields []Field
}

func (t *Struct) String() string {
	if t.Kind != TupleKind {
		return t.Name
	}
	var list []string
	for _, f := range t.Fields {
		list = append(list, f.Type.String())
	}
	return "tuple<" + strings.Join(list, ", ") + ">"
}

// A Stack is an array of headers or unions.
type Stack struct {
	Elem *Struct
	Size int
}

func (t *Stack) String() string { return fmt.Sprintf("%s[%d]", t.Elem.Name, t.Size) }

// width returns the bits of a value of type t in a packet or in a hash. A varbit
// counts with its current length.
func width(t Type, v Value) int {
	switch t := t.(type) {
	case Bits:
		return t.Width
	case Bool:
		return 1
	case *Enum:
		return t.Under.Width
	case Varbit:
		return v.(bitstring).Len
	}
	n := 0
	for i, f := range t.(*Struct).Fields {
		n += width(f.Type, v.(*agg).Elems[i])
	}
	return n
}

// A Value is a *big.Int, a bool, an int for an Enum without Under, a Bitstring or
// an *Agg. Nil means undefined by the specification.
type Value any

// A bitstring is the value of a varbit.
type bitstring struct {
	Len int
	V   *big.Int
}

// An agg is the value of a type with fields or of a stack.
type agg struct {
	Elems []Value
	Valid bool // for a header
	Next  int  // nextIndex of a stack
}

// An undefined is the panic value when a program reads an undefined value.
type undefined struct{ Name string }

// fresh returns an undefined value of a type: its numbers are undefined, its
// headers invalid.
func fresh(t Type) Value {
	switch t := t.(type) {
	case *Struct:
		a := &agg{Elems: make([]Value, len(t.Fields))}
		for i, f := range t.Fields {
			a.Elems[i] = fresh(f.Type)
		}
		return a
	case *Stack:
		a := &agg{Elems: make([]Value, t.Size)}
		for i := range a.Elems {
			a.Elems[i] = fresh(t.Elem)
		}
		return a
	}
	return nil
}

// zero returns a value of a type in which all numbers are 0 and all headers are
// invalid, which is how v1model and Tofino initialise metadata.
func zero(t Type) Value {
	switch t := t.(type) {
	case *Struct:
		a := &agg{Elems: make([]Value, len(t.Fields))}
		for i, f := range t.Fields {
			a.Elems[i] = zero(f.Type)
		}
		return a
	case *Stack:
		a := fresh(t).(*agg)
		for i := range a.Elems {
			a.Elems[i] = zero(t.Elem)
		}
		return a
	case Bool:
		return false
	case Varbit:
		return bitstring{V: new(big.Int)}
	case *Enum:
		if t.Under == nil {
			return 0
		}
	}
	return new(big.Int)
}

// clone copies a value. Numbers are never changed in place.
func clone(v Value) Value {
	a, ok := v.(*agg)
	if !ok {
		return v
	}
	c := &agg{Elems: make([]Value, len(a.Elems)), Valid: a.Valid, Next: a.Next}
	for i, e := range a.Elems {
		c.Elems[i] = clone(e)
	}
	return c
}

// wrap reduces a number to the values of t (section 8.6).
func wrap(t Bits, v *big.Int) *big.Int {
	mod := new(big.Int).Lsh(big.NewInt(1), uint(t.Width))
	v = new(big.Int).Mod(v, mod)
	if t.Signed && t.Width > 0 && v.Bit(t.Width-1) == 1 {
		v.Sub(v, mod)
	}
	return v
}

// bounds returns the smallest and largest value of t.
func bounds(t Bits) (low, high *big.Int) {
	one := big.NewInt(1)
	if t.Signed {
		high = new(big.Int).Lsh(one, uint(t.Width-1))
		low = new(big.Int).Neg(high)
		return low, high.Sub(high, one)
	}
	return new(big.Int), Ones(t.Width)
}

// Ones returns the largest number of a width.
func Ones(width int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return v.Sub(v, big.NewInt(1))
}

// unsigned returns the bits of a number of t as a non-negative number.
func unsigned(t Bits, v *big.Int) *big.Int { return wrap(Bits{Width: t.Width}, v) }

// equal compares values as == does (sections 8.9 to 8.18): headers are equal if
// both are invalid, or both are valid with equal fields.
func equal(t Type, x, y Value) bool {
	switch t := t.(type) {
	case *Struct:
		a, b := x.(*agg), y.(*agg)
		if t.Kind == HeaderKind && (!a.Valid || !b.Valid) {
			return a.Valid == b.Valid
		}
		for i, f := range t.Fields {
			if !equal(f.Type, a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	case *Stack:
		for i := range t.Size {
			if !equal(t.Elem, x.(*agg).Elems[i], y.(*agg).Elems[i]) {
				return false
			}
		}
		return true
	}
	if x == nil || y == nil {
		panic(undefined{t.String()})
	}
	switch a := x.(type) {
	case *big.Int:
		return a.Cmp(y.(*big.Int)) == 0
	case bitstring:
		return a.Len == y.(bitstring).Len && a.V.Cmp(y.(bitstring).V) == 0
	}
	return x == y
}
