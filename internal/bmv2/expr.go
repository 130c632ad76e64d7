package bmv2

import (
	"fmt"
	"math/big"
	"strings"
)

// An ExprType is the "type" of a type-value object.
type ExprType string

// The types of Expr, with the fields that each one uses.
const (
	TypeField            ExprType = "field"              // Name, Field
	TypeHexstr           ExprType = "hexstr"             // Hex, optionally Bitwidth
	TypeBool             ExprType = "bool"               // Bool
	TypeString           ExprType = "string"             // Name
	TypeHeader           ExprType = "header"             // Name
	TypeHeaderStack      ExprType = "header_stack"       // Name
	TypeHeaderUnion      ExprType = "header_union"       // Name
	TypeHeaderUnionStack ExprType = "header_union_stack" // Name
	TypeStackField       ExprType = "stack_field"        // Name, Field
	TypeUnionStackField  ExprType = "union_stack_field"  // Name, Member, Field
	TypeLookahead        ExprType = "lookahead"          // Offset, Width
	TypeLocal            ExprType = "local"              // Int
	TypeRuntimeData      ExprType = "runtime_data"       // Int
	TypeCalculation      ExprType = "calculation"        // Name
	TypeRegister         ExprType = "register"           // Name, Right (index)
	TypeRegisterArray    ExprType = "register_array"     // Name
	TypeCounterArray     ExprType = "counter_array"      // Name
	TypeMeterArray       ExprType = "meter_array"        // Name
	TypeFilterArray      ExprType = "filter_array"       // Name
	TypeExtern           ExprType = "extern"             // Name
	TypeExpression       ExprType = "expression"         // Op, Left, Right, Cond; or Inner
	TypeParametersVector ExprType = "parameters_vector"  // List
	TypePayload          ExprType = "payload"            // nothing
	TypeRegular          ExprType = "regular"            // Name (extract to a header)
	TypeStack            ExprType = "stack"              // Name (extract to a stack)
	TypeUnionStack       ExprType = "union_stack"        // Name, Member (extract)

	// TypeInt is a bare number, used by the format instead of an object in some
	// places (the right side of access_field, the parameter of shift).
	TypeInt ExprType = "" // Int
)

// An Expr is a "type value object" of the format: a constant, a reference or an
// operation. Type determines which fields are used.
type Expr struct {
	Type   ExprType
	Name   string // the object referred to, or the text of a string
	Member string // the member of a union
	Field  string // the field of a header
	Hex    string // "0x0a", with a sign if negative
	Bool   bool
	Int    int
	Offset int // of a lookahead, in bits
	Width  int // of a lookahead, in bits
	// Bitwidth is the width of a constant in a calculation's input; 0
	// elsewhere.
	Bitwidth int

	Op    string
	Left  *Expr // nil for a unary operation
	Right *Expr
	Cond  *Expr // of "?"
	// Inner is the wrapped expression: p4c wraps operations in arguments of
	// primitives once more.
	Inner *Expr

	List []*Expr
	// SourceInfo is optional.
	SourceInfo *SourceInfo
}

// FieldOf returns a reference to a field of a header. The hidden field
// "$valid$" is set if the header is valid.
func FieldOf(header, field string) *Expr {
	return &Expr{Type: TypeField, Name: header, Field: field}
}

// Ref returns a reference to a named object: a header, a stack, a register
// array.
func Ref(t ExprType, name string) *Expr { return &Expr{Type: t, Name: name} }

// Hex returns the constant v, padded to the given number of bytes.
func Hex(v *big.Int, bytes int) *Expr {
	return &Expr{Type: TypeHexstr, Hex: HexString(v, bytes)}
}

// HexInt returns the constant v, padded to the given number of bytes.
func HexInt(v int64, bytes int) *Expr { return Hex(big.NewInt(v), bytes) }

// BoolOf returns the constant b.
func BoolOf(b bool) *Expr { return &Expr{Type: TypeBool, Bool: b} }

// Local returns a reference to an action's parameter for use in an expression.
func Local(index int) *Expr { return &Expr{Type: TypeLocal, Int: index} }

// RuntimeData returns a reference to an action's parameter for use as an
// argument of a primitive.
func RuntimeData(index int) *Expr { return &Expr{Type: TypeRuntimeData, Int: index} }

// Lookahead returns an expression that reads width bits of the packet, offset
// bits ahead.
func Lookahead(offset, width int) *Expr {
	return &Expr{Type: TypeLookahead, Offset: offset, Width: width}
}

// Op1 returns a unary operation.
func Op1(op string, right *Expr) *Expr {
	return &Expr{Type: TypeExpression, Op: op, Right: right}
}

// Op2 returns a binary operation.
func Op2(op string, left, right *Expr) *Expr {
	return &Expr{Type: TypeExpression, Op: op, Left: left, Right: right}
}

// Cond returns the operation cond ? left : right.
func Cond(cond, left, right *Expr) *Expr {
	return &Expr{Type: TypeExpression, Op: "?", Left: left, Right: right, Cond: cond}
}

// Wrap wraps e in another expression object, as p4c does with operations and
// stack fields in arguments of primitives.
func Wrap(e *Expr) *Expr { return &Expr{Type: TypeExpression, Inner: e} }

// Vector returns the argument list of log_msg.
func Vector(list ...*Expr) *Expr { return &Expr{Type: TypeParametersVector, List: list} }

// Unwrap removes the wrapping expression objects around e.
func (e *Expr) Unwrap() *Expr {
	for e != nil && e.Type == TypeExpression && e.Inner != nil {
		e = e.Inner
	}
	return e
}

// HexString formats v like p4c: sign, 0x, digits padded to the given number of
// bytes.
func HexString(v *big.Int, bytes int) string {
	digits := new(big.Int).Abs(v).Text(16)
	if n := 2*bytes - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	if v.Sign() < 0 {
		return "-0x" + digits
	}
	return "0x" + digits
}

// ParseHex parses a hexstr, with or without sign and 0x.
func ParseHex(s string) (*big.Int, error) {
	digits, negative := strings.CutPrefix(s, "-")
	if strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		digits = digits[2:]
	}
	v, ok := new(big.Int).SetString(digits, 16)
	if !ok || digits[0] == '+' || digits[0] == '-' || strings.Contains(digits, "_") {
		return nil, fmt.Errorf("%q is not a hexadecimal number", s)
	}
	if negative {
		v.Neg(v)
	}
	return v, nil
}

// String formats e for messages.
func (e *Expr) String() string {
	e = e.Unwrap()
	if e == nil {
		return "null"
	}
	switch e.Type {
	case TypeInt, TypeLocal, TypeRuntimeData:
		return fmt.Sprintf("%s#%d", e.Type, e.Int)
	case TypeHexstr:
		return e.Hex
	case TypeBool:
		return fmt.Sprint(e.Bool)
	case TypeField, TypeStackField:
		return e.Name + "." + e.Field
	case TypeUnionStackField:
		return e.Name + "." + e.Member + "." + e.Field
	case TypeLookahead:
		return fmt.Sprintf("lookahead(%d, %d)", e.Offset, e.Width)
	case TypeExpression:
		switch {
		case e.Cond != nil:
			return fmt.Sprintf("(%v ? %v : %v)", e.Cond, e.Left, e.Right)
		case e.Left != nil:
			return fmt.Sprintf("(%v %s %v)", e.Left, e.Op, e.Right)
		}
		return fmt.Sprintf("%s(%v)", e.Op, e.Right)
	case TypeRegister:
		return fmt.Sprintf("%s[%v]", e.Name, e.Right)
	}
	return e.Name
}
