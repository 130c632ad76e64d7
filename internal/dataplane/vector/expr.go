package vector

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A Linker turns the expressions of a program into closures over the vector.
type Linker struct {
	Layout *Layout
	// Cells links accesses to registers, which are not in the vector.
	Cells Cells
	// Params are the parameters of the action being linked.
	Params []Param
	// Self is the header of the length expression being linked; locals are its
	// fields.
	Self *Header
}

// A Cells links expressions for register cells.
type Cells interface {
	ReadCell(e *bmv2.Expr) (Value, error)
	WriteCell(e *bmv2.Expr, v Value) (Step, error)
}

// A Param is a parameter of an action with its position in the action data.
type Param struct {
	Name  string
	Off   int
	Width int
}

// Put writes an argument to its position in the action data.
func (pr Param) Put(args, number []uint64) { copy(args[pr.Off:], number) }

// An exprKind is the kind of result of an expression.
type exprKind byte

const (
	NumberExpr exprKind = iota // also if the kind cannot be determined
	boolExpr
	headerExpr
	stackExpr
	unionExpr
	unionStackExpr
)

// KindOf returns the kind of result of an expression.
func KindOf(e *bmv2.Expr) exprKind {
	e = e.Unwrap()
	if e == nil {
		return NumberExpr
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
		switch e.Op {
		case "==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "valid", "valid_union", "d2b":
			return boolExpr
		case "dereference_header_stack", "access_union_header":
			return headerExpr
		case "dereference_union_stack":
			return unionExpr
		case "?":
			return KindOf(e.Left)
		}
	}
	return NumberExpr
}

var errNoExpr = errors.New("no expression")

// Number links an expression for a number.
func (l *Linker) Number(e *bmv2.Expr) (Value, error) {
	e = e.Unwrap()
	if e == nil {
		return Value{}, errNoExpr
	}
	switch e.Type {
	case bmv2.TypeField:
		f, err := l.FieldRef(e)
		return FieldValue(f), err
	case bmv2.TypeHexstr:
		v, err := bmv2.ParseHex(e.Hex)
		if err != nil {
			return Value{}, err
		}
		return constant(v), nil
	case bmv2.TypeInt:
		return ConstInt(int64(e.Int)), nil
	case bmv2.TypeLocal, bmv2.TypeRuntimeData:
		if l.Self != nil {
			if e.Int < 0 || e.Int >= len(l.Self.Type.Fields) {
				return Value{}, fmt.Errorf("header %s has no field %d", l.Self.Name, e.Int)
			}
			return FieldValue(l.Self.Type.Fields[e.Int].at(l.Self.Base)), nil
		}
		if e.Int < 0 || e.Int >= len(l.Params) {
			return Value{}, fmt.Errorf("parameter %d of an action with %d", e.Int, len(l.Params))
		}
		// A parameter of the running action.
		pr := l.Params[e.Int]
		v := Value{Lo: new(big.Int), Hi: num.Most(pr.Width), Kind: ArgKind, Off: pr.Off}
		if pr.Width > 64 {
			off, n := pr.Off, num.Words(pr.Width)
			v.Wide = func(p *State, dst []uint64) { num.CopyUnsigned(dst, p.Args[off:off+n]) }
		}
		return v, nil
	case bmv2.TypeStackField:
		pl, err := l.LastPlace(e)
		if err != nil {
			return Value{}, err
		}
		return pl.Value(), nil
	case bmv2.TypeRegister:
		return l.Cells.ReadCell(e)
	case bmv2.TypeExpression:
		return l.operation(e)
	}
	return Value{}, fmt.Errorf("%s %q is not a number", e.Type, e.String())
}

// FieldRef finds the field of e. The vector has no word for the validity of a
// header union; valid_union computes it.
func (l *Linker) FieldRef(e *bmv2.Expr) (Field, error) { return l.Layout.Field(e.Name, e.Field) }

func (l *Linker) operation(e *bmv2.Expr) (Value, error) {
	switch e.Op {
	case "b2d":
		t, err := l.Boolean(e.Right)
		return Unsigned64(1, func(p *State) uint64 {
			if t(p) {
				return 1
			}
			return 0
		}), err
	case "?":
		return l.conditional(e)
	case "access_field":
		f, err := l.ElementField(e)
		if err != nil {
			return Value{}, err
		}
		return f.Value(), nil
	case "last_stack_index", "size_stack":
		// The index of an empty stack's last element is 2^64 - 1.
		next, err := l.NextOf(e.Right)
		if err != nil {
			return Value{}, err
		}
		if e.Op == "size_stack" {
			return Unsigned64(64, func(p *State) uint64 { return p.W[next] }), nil
		}
		return Unsigned64(64, func(p *State) uint64 { return p.W[next] - 1 }), nil
	}
	right, err := l.Number(e.Right)
	if err != nil {
		return Value{}, err
	}
	if e.Left == nil {
		return UnaryOp(e.Op, right)
	}
	left, err := l.Number(e.Left)
	if err != nil {
		return Value{}, err
	}
	return BinaryOp(e.Op, left, right)
}

func (l *Linker) conditional(e *bmv2.Expr) (Value, error) {
	cond, err := l.Boolean(e.Cond)
	if err != nil {
		return Value{}, err
	}
	left, right, err := Both(l.Number, e.Left, e.Right)
	if err != nil {
		return Value{}, err
	}
	return Choose(cond, left, right), nil
}

// Both links two expressions in the same way.
func Both[T any](link func(*bmv2.Expr) (T, error), a, b *bmv2.Expr) (x, y T, err error) {
	if x, err = link(a); err == nil {
		y, err = link(b)
	}
	return x, y, err
}

// NextOf returns the word that counts the used elements of a stack.
func (l *Linker) NextOf(e *bmv2.Expr) (int, error) {
	e = e.Unwrap()
	if e != nil {
		if s := l.Layout.StackNames[e.Name]; s != nil && e.Type == bmv2.TypeHeaderStack {
			return s.Next, nil
		}
		if s := l.Layout.UnionStackNames[e.Name]; s != nil && e.Type == bmv2.TypeHeaderUnionStack {
			return s.Next, nil
		}
	}
	return 0, fmt.Errorf("%v is not a stack", e)
}

// Boolean links an expression for a truth value.
func (l *Linker) Boolean(e *bmv2.Expr) (Test, error) {
	e = e.Unwrap()
	if e == nil {
		// BMv2 treats an empty expression as false.
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
		v, err := l.Number(e.Right)
		if err != nil {
			return nil, err
		}
		return Compare("!=", v, ConstInt(0))
	case "not":
		t, err := l.Boolean(e.Right)
		return func(p *State) bool { return !t(p) }, err
	case "and", "or":
		a, b, err := Both(l.Boolean, e.Left, e.Right)
		if err != nil {
			return nil, err
		}
		if e.Op == "and" {
			return func(p *State) bool { return a(p) && b(p) }, nil
		}
		return func(p *State) bool { return a(p) || b(p) }, nil
	case "valid":
		r, err := l.Header(e.Right)
		if err != nil {
			return nil, err
		}
		get := r.Get()
		return func(p *State) bool {
			h := get(p)
			return h != nil && h.IsValid(p)
		}, nil
	case "valid_union":
		u, err := l.Union(e.Right)
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

func (l *Linker) boolConditional(e *bmv2.Expr) (Test, error) {
	cond, err := l.Boolean(e.Cond)
	if err != nil {
		return nil, err
	}
	a, b, err := Both(l.Boolean, e.Left, e.Right)
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

func (l *Linker) numberComparison(e *bmv2.Expr) (Test, error) {
	a, b, err := Both(l.Number, e.Left, e.Right)
	if err != nil {
		return nil, err
	}
	return Compare(e.Op, a, b)
}

// equality compares numbers, truth values, headers or unions.
func (l *Linker) equality(e *bmv2.Expr) (Test, error) {
	if KindOf(e.Left) != KindOf(e.Right) {
		return nil, fmt.Errorf("comparison of different kinds: %v and %v", e.Left, e.Right)
	}
	var eq Test
	var err error
	switch KindOf(e.Left) {
	case NumberExpr:
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

func (l *Linker) boolEquality(e *bmv2.Expr) (Test, error) {
	a, b, err := Both(l.Boolean, e.Left, e.Right)
	return func(p *State) bool { return a(p) == b(p) }, err
}
