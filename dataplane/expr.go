package dataplane

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
)

// A Linker turns the expressions of a program into closures over the vector. It
// lives only while a program is linked.
type Linker struct {
	lay *layout
	// cells links what reads and writes registers, which are no part of the vector.
	cells registerLinker
	// params are the parameters of the action being linked.
	params []param
	// self is the header whose length expression is being linked: locals are
	// its fields.
	self *header
}

// A registerLinker links the expressions that denote cells of registers.
type registerLinker interface {
	registerCell(e *bmv2.Expr) (value, error)
	storeRegister(e *bmv2.Expr, v value) (step, error)
}

// A param is a parameter of an action: its place in the action data.
type param struct {
	name  string
	off   int
	width int
}

// An exprKind is what an expression denotes.
type exprKind byte

const (
	numberExpr exprKind = iota
	boolExpr
	headerExpr
	stackExpr
	unionExpr
	unionStackExpr
)

func kindOf(e *bmv2.Expr) exprKind {
	e = e.Unwrap()
	if e == nil {
		return numberExpr
	}
	switch e.Type {
	case bmv2.TypeBool:
		return boolExpr
	case bmv2.TypeHeader:
		return headerExpr
	case bmv2.TypeHeaderStack:
		return stackExpr
	case bmv2.TypeHeaderUnion:
		return unionExpr
	case bmv2.TypeHeaderUnionStack:
		return unionStackExpr
	case bmv2.TypeExpression:
		return kindOfOp(e)
	}
	return numberExpr
}

func kindOfOp(e *bmv2.Expr) exprKind {
	switch e.Op {
	case "==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "valid", "valid_union", "d2b":
		return boolExpr
	case "dereference_header_stack", "access_union_header":
		return headerExpr
	case "dereference_union_stack":
		return unionExpr
	case "?":
		return kindOf(e.Left)
	}
	return numberExpr
}

var errNoExpr = errors.New("no expression")

// number links an expression that denotes a number.
func (l *Linker) number(e *bmv2.Expr) (value, error) {
	e = e.Unwrap()
	if e == nil {
		return value{}, errNoExpr
	}
	switch e.Type {
	case bmv2.TypeField:
		f, err := l.fieldRef(e)
		return fieldValue(f), err
	case bmv2.TypeHexstr:
		v, err := bmv2.ParseHex(e.Hex)
		if err != nil {
			return value{}, err
		}
		return constant(v), nil
	case bmv2.TypeInt:
		return constInt(int64(e.Int)), nil
	case bmv2.TypeLocal, bmv2.TypeRuntimeData:
		return l.local(e.Int)
	case bmv2.TypeStackField:
		return l.lastField(e)
	case bmv2.TypeRegister:
		return l.cells.registerCell(e)
	case bmv2.TypeExpression:
		return l.operation(e)
	}
	return value{}, fmt.Errorf("%s %q is not a number", e.Type, e.String())
}

// fieldRef finds the field that e names. The validity of a header union is no
// word of its own and has to be asked for with valid_union.
func (l *Linker) fieldRef(e *bmv2.Expr) (field, error) { return l.lay.field(e.Name, e.Field) }

func (l *Linker) local(i int) (value, error) {
	if l.self != nil {
		if i < 0 || i >= len(l.self.typ.fields) {
			return value{}, fmt.Errorf("header %s has no field %d", l.self.name, i)
		}
		return fieldValue(l.self.typ.fields[i].at(l.self.base)), nil
	}
	if i < 0 || i >= len(l.params) {
		return value{}, fmt.Errorf("parameter %d of an action with %d", i, len(l.params))
	}
	return argValue(l.params[i]), nil
}

func (l *Linker) operation(e *bmv2.Expr) (value, error) {
	switch e.Op {
	case "b2d":
		t, err := l.boolean(e.Right)
		return unsigned64(1, func(p *State) uint64 {
			if t(p) {
				return 1
			}
			return 0
		}), err
	case "?":
		return l.conditional(e)
	case "access_field":
		f, err := l.elementField(e)
		if err != nil {
			return value{}, err
		}
		return f.value(), nil
	case "last_stack_index", "size_stack":
		return l.stackCount(e)
	}
	right, err := l.number(e.Right)
	if err != nil {
		return value{}, err
	}
	if e.Left == nil {
		return unaryOp(e.Op, right)
	}
	left, err := l.number(e.Left)
	if err != nil {
		return value{}, err
	}
	return binaryOp(e.Op, left, right)
}

func (l *Linker) conditional(e *bmv2.Expr) (value, error) {
	cond, err := l.boolean(e.Cond)
	if err != nil {
		return value{}, err
	}
	left, err := l.number(e.Left)
	if err != nil {
		return value{}, err
	}
	right, err := l.number(e.Right)
	if err != nil {
		return value{}, err
	}
	return choose(cond, left, right), nil
}

// stackCount links the number of elements in use of a stack, or the index of
// the last, which for an empty stack is 2^64 - 1.
func (l *Linker) stackCount(e *bmv2.Expr) (value, error) {
	next, err := l.nextOf(e.Right)
	if err != nil {
		return value{}, err
	}
	if e.Op == "size_stack" {
		return unsigned64(64, func(p *State) uint64 { return p.w[next] }), nil
	}
	return unsigned64(64, func(p *State) uint64 { return p.w[next] - 1 }), nil
}

func (l *Linker) nextOf(e *bmv2.Expr) (int, error) {
	e = e.Unwrap()
	if e != nil {
		if s := l.lay.stackNames[e.Name]; s != nil && e.Type == bmv2.TypeHeaderStack {
			return s.next, nil
		}
		if s := l.lay.unionStackNames[e.Name]; s != nil && e.Type == bmv2.TypeHeaderUnionStack {
			return s.next, nil
		}
	}
	return 0, fmt.Errorf("%v is not a stack", e)
}

// boolean links an expression that denotes a truth value.
func (l *Linker) boolean(e *bmv2.Expr) (test, error) {
	e = e.Unwrap()
	if e == nil {
		// BMv2 takes an empty expression for false.
		return func(*State) bool { return false }, nil
	}
	if e.Type == bmv2.TypeBool {
		b := e.Bool
		return func(*State) bool { return b }, nil
	}
	if e.Type != bmv2.TypeExpression {
		return nil, fmt.Errorf("%s %q is not a truth value", e.Type, e.String())
	}
	switch e.Op {
	case "d2b":
		return l.nonZero(e.Right)
	case "not":
		t, err := l.boolean(e.Right)
		return func(p *State) bool { return !t(p) }, err
	case "and", "or":
		return l.junction(e)
	case "valid":
		return l.validHeader(e.Right)
	case "valid_union":
		u, err := l.union(e.Right)
		if err != nil {
			return nil, err
		}
		return u.isValid(), nil
	case "?":
		return l.boolConditional(e)
	case "==", "!=":
		return l.equality(e)
	case "<", "<=", ">", ">=":
		return l.numberComparison(e)
	}
	return nil, fmt.Errorf("operation %q does not give a truth value", e.Op)
}

func (l *Linker) nonZero(e *bmv2.Expr) (test, error) {
	v, err := l.number(e)
	if err != nil {
		return nil, err
	}
	return compare("!=", v, constInt(0))
}

func (l *Linker) junction(e *bmv2.Expr) (test, error) {
	a, err := l.boolean(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.boolean(e.Right)
	if err != nil {
		return nil, err
	}
	if e.Op == "and" {
		return func(p *State) bool { return a(p) && b(p) }, nil
	}
	return func(p *State) bool { return a(p) || b(p) }, nil
}

func (l *Linker) boolConditional(e *bmv2.Expr) (test, error) {
	cond, err := l.boolean(e.Cond)
	if err != nil {
		return nil, err
	}
	a, err := l.boolean(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.boolean(e.Right)
	if err != nil {
		return nil, err
	}
	return func(p *State) bool {
		if cond(p) {
			return a(p)
		}
		return b(p)
	}, nil
}

func (l *Linker) numberComparison(e *bmv2.Expr) (test, error) {
	a, err := l.number(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.number(e.Right)
	if err != nil {
		return nil, err
	}
	return compare(e.Op, a, b)
}

// equality compares numbers, truth values, headers or unions.
func (l *Linker) equality(e *bmv2.Expr) (test, error) {
	if kindOf(e.Left) != kindOf(e.Right) {
		return nil, fmt.Errorf("comparison of different kinds: %v and %v", e.Left, e.Right)
	}
	var eq test
	var err error
	switch kindOf(e.Left) {
	case numberExpr:
		return l.numberComparison(e)
	case boolExpr:
		eq, err = l.boolEquality(e)
	case headerExpr:
		eq, err = l.headerEquality(e)
	case unionExpr:
		eq, err = l.unionEquality(e)
	default:
		return nil, errors.New("stacks cannot be compared")
	}
	if e.Op == "!=" {
		return func(p *State) bool { return !eq(p) }, err
	}
	return eq, err
}

func (l *Linker) boolEquality(e *bmv2.Expr) (test, error) {
	a, err := l.boolean(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := l.boolean(e.Right)
	return func(p *State) bool { return a(p) == b(p) }, err
}
