package lower

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A value is the result of an expression: *ex, a place (*field, *header, *union,
// *stack, *element, *bits), *aggregate, *literal, *instance, or nil for void.
type value any

// A field is one BMv2 field: a header's, or a variable among the scalars.
type field struct {
	header  string
	name    string
	st      scalar
	temp    bool // created by the compiler; its value is not used after its last read
	named   bool // the program can name it
	dropped bool // a variable that no code uses after all
	result  bool // a temporary for the result of a whole body; see renamed
	// written is a variable that is 1 after the program has written the field. It
	// exists only for fields of the architecture in which 0 has a meaning.
	written *field
}

// A header is one BMv2 header instance. Parts corresponds to the declared fields,
// with an aggregate for each struct; fields lists the scalars in order.
type header struct {
	name   string
	typ    *types.Struct
	parts  []value
	fields []*field
	local  bool // a variable: neither parsed nor deparsed
	member bool // member of a union
}

// A union is one BMv2 header union; its members are headers.
type union struct {
	name    string
	typ     *types.Struct
	members []*header
}

// A stack is a BMv2 header stack or header union stack.
type stack struct {
	name  string
	typ   *types.Stack
	elems []value // *header or *union
	union bool
}

// An aggregate is a struct or tuple. Its parts are places if the aggregate is a
// place, and values otherwise.
type aggregate struct {
	typ   types.Type
	elems []value
}

// A literal is a header value given by its scalars in order, or an invalid header.
type literal struct {
	typ     *types.Struct
	fields  []*ex
	invalid bool
}

// An element is an element of a stack or an array at an index that is known only at
// run time, or a part of it that sel selects.
type element struct {
	elems []value
	index *ex
	sel   []int
	last  *stack // set for stack.last, which BMv2's parser reads directly
}

// A bits is a slice of a place: width bits of the field, or of the field that an
// element selects, from bit lo on.
type bits struct {
	of    value
	lo    int
	width int
}

// A nothing is a value or a place of type bit<0>. It has no field in the document,
// reads as 0, and ignores writes.
type nothing struct{}

// isNothing reports whether t is bit<0>.
func isNothing(t types.Type) bool {
	b, ok := types.Underlying(t).(*types.Bits)
	return ok && b.Width == 0
}

// A next is stack.next, or a member of the next union of a stack.
type next struct {
	stack  *stack
	member int // member of a union, -1 for the element itself
}

// components lists the parts of a struct, tuple or array. ok is false for types
// that are objects in BMv2: headers, unions and stacks of these.
func components(t types.Type) (names []string, parts []types.Type, ok bool) {
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		for _, f := range t.Fields {
			names = append(names, f.Name)
			parts = append(parts, f.Type)
		}
		return names, parts, t.Kind == syntax.StructKindStruct
	case *types.Tuple:
		for i, e := range t.Elems {
			names = append(names, fmt.Sprintf("f%d", i))
			parts = append(parts, e)
		}
		return names, parts, true
	case *types.Stack:
		for i := range t.Size {
			names = append(names, strconv.Itoa(i))
			parts = append(parts, t.Elem)
		}
		s, isStruct := types.Underlying(t.Elem).(*types.Struct)
		return names, parts, !isStruct || s.Kind == syntax.StructKindStruct
	}
	return nil, nil, false
}

// partIndex finds a part of a struct or tuple by its name, or -1 if there is none.
func partIndex(t types.Type, name string) int {
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		return t.FieldIndex(name)
	case *types.Tuple:
		for i := range t.Elems {
			if name == fmt.Sprintf("f%d", i) {
				return i
			}
		}
	}
	return -1
}

// leaves lists the scalar places in p in order, including the fields of headers.
func leaves(p value) []*field {
	switch p := p.(type) {
	case *field:
		return []*field{p}
	case *header:
		return p.fields
	case *bits:
		return leaves(p.of)
	case *element:
		var fs []*field
		for i := range p.elems {
			fs = append(fs, leaves(p.at(i))...)
		}
		return fs
	}
	return slices.Concat(lists.Map(elementsOf(p), leaves)...)
}

// isPlace reports whether v is a fixed place that can be passed by reference.
func isPlace(v value) bool {
	switch v := v.(type) {
	case *field, *header, *union, *stack, nothing:
		return true
	case *aggregate:
		return !slices.ContainsFunc(v.elems, func(e value) bool { return !isPlace(e) })
	}
	return false
}

// A scalar is the shape of a value that fits one BMv2 field.
type scalar struct {
	width  int // 0 for int, the type of constants with arbitrary precision
	signed bool
	bool   bool
	varbit bool
	str    bool
}

var (
	boolean = scalar{width: 1, bool: true}
	integer = scalar{signed: true}
	code32  = scalar{width: 32} // enums and errors are 32-bit numbers
)

// scalarOf returns the shape of t; ok is false if t is not a scalar.
func scalarOf(t types.Type) (scalar, bool) {
	switch t := t.(type) {
	case *types.Bits:
		return scalar{width: t.Width, signed: t.Signed}, true
	case *types.Varbit:
		return scalar{width: t.Max, varbit: true}, true
	case *types.Enum:
		if t.Repr != nil {
			return scalar{width: t.Repr.Width, signed: t.Repr.Signed}, true
		}
		return code32, true
	case *types.New:
		return scalarOf(t.Underlying)
	case *types.ActionRun:
		return code32, true
	case *types.Set:
		return scalarOf(t.Elem)
	}
	switch t {
	case types.Bool:
		return boolean, true
	case types.Error, types.MatchKind:
		return code32, true
	case types.Int:
		return integer, true
	case types.String:
		return scalar{str: true}, true
	}
	return scalar{}, false
}

// isStructured reports whether a value of type t consists of parts.
func isStructured(t types.Type) bool {
	_, ok := scalarOf(t)
	return !ok
}

// An opcode is the operation of an ex.
type opcode uint8

const (
	opConst     opcode = iota // v
	opField                   // f
	opParam                   // action parameter n
	opValid                   // h.isValid()
	opUnion                   // u.isValid()
	opLookahead               // n bits from the packet, starting k bits ahead
	opLast                    // s.last.<name>, or of union stack s: last.<member>.<name>
	opLastIndex               // s.lastIndex
	opString                  // str
	opUnary                   // tok x
	opBinary                  // x tok y
	opCond                    // z ? x : y
	opSlice                   // x[n:k]
	opCast                    // (st) x
)

// An ex is an expression without side effects over fields, ready for BMv2.
type ex struct {
	op      opcode
	tok     syntax.Operator
	st      scalar
	x, y, z *ex
	v       *big.Int
	f       *field
	h       *header
	u       *union
	s       *stack
	n, k    int
	str     string
	member  string // of opLast on a stack of unions

	size, depth int // size and depth of an operation's expression in the document
}

// operation sets the size and depth of an operation from its operands.
func operation(e *ex) *ex {
	e.size, e.depth = 1, 1
	if e.op == opBinary || e.op == opCast {
		e.depth = 2 // truncation adds two levels
	}
	deepest := 0
	for _, x := range []*ex{e.x, e.y, e.z} {
		if x != nil {
			e.size += x.size
			deepest = max(deepest, x.depth)
		}
	}
	if e.op == opCond && e.st.bool {
		e.size += e.z.size // the document repeats this operand: see condition
		e.depth = 3
	}
	e.depth += deepest
	return e
}

func constEx(v *big.Int, st scalar) *ex { return &ex{op: opConst, v: v, st: st} }
func intEx(v int64, st scalar) *ex      { return constEx(big.NewInt(v), st) }
func fieldEx(f *field) *ex              { return &ex{op: opField, f: f, st: f.st} }

func boolEx(b bool) *ex {
	if b {
		return intEx(1, boolean)
	}
	return intEx(0, boolean)
}

func (e *ex) isConst() bool { return e.op == opConst }
func (e *ex) isTrue() bool  { return e.op == opConst && e.st.bool && e.v.Sign() != 0 }
func (e *ex) isFalse() bool { return e.op == opConst && e.st.bool && e.v.Sign() == 0 }

// any reports whether is returns true for e or any of its operands.
func (e *ex) any(is func(*ex) bool) bool {
	return e != nil && (is(e) || e.x.any(is) || e.y.any(is) || e.z.any(is))
}

// reads reports whether e depends on anything that can change, that is, not only on
// constants and action data.
func (e *ex) reads() bool {
	return e.any(func(n *ex) bool {
		switch n.op {
		case opField, opValid, opUnion, opLookahead, opLast, opLastIndex:
			return true
		}
		return false
	})
}

// readsField reports whether e reads f, or a stack element selected at run time.
func (e *ex) readsField(f *field) bool {
	return e.any(func(n *ex) bool { return n.op == opField && n.f == f || n.op == opLast })
}

// wrap truncates v to the range of st.
func wrap(v *big.Int, st scalar) *big.Int { return types.Wrap(v, st.number()) }

func maskOf(width int) *big.Int {
	m := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return m.Sub(m, big.NewInt(1))
}

// unary builds op x, folded if x is constant.
func unary(op syntax.Operator, x *ex, st scalar) *ex {
	if x.isConst() {
		switch op {
		case syntax.Not:
			return boolEx(x.isFalse())
		case syntax.Neg, syntax.Compl:
			return constEx(types.FoldUnary(op, x.v, st.number()), st)
		}
	}
	switch {
	case op == syntax.Plus:
		return x
	case op == syntax.Not && x.op == opUnary && x.tok == syntax.Not:
		return x.x
	}
	return operation(&ex{op: opUnary, tok: op, x: x, st: st})
}

// not builds !x.
func not(x *ex) *ex { return unary(syntax.Not, x, boolean) }

// binary builds x op y of shape st, folded if both are constant.
func binary(op syntax.Operator, x, y *ex, st scalar) *ex {
	switch op {
	case syntax.AndAnd:
		return andAlso(x, y)
	case syntax.OrOr:
		return orElse(x, y)
	}
	if x.isConst() && y.isConst() {
		switch r := types.Fold(op, x.v, y.v, x.st.number(), y.st.number()).(type) {
		case bool:
			return boolEx(r)
		case *big.Int:
			return constEx(wrap(r, st), st)
		}
	}
	if op == syntax.Div || op == syntax.Mod {
		// Division by a power of two becomes a shift or a mask. 0 / y becomes 0,
		// because BMv2 must not divide by 0.
		if x.isConst() && x.v.Sign() == 0 {
			return intEx(0, st)
		}
		if y.isConst() && y.v.Sign() > 0 && y.v.TrailingZeroBits() == uint(y.v.BitLen()-1) {
			if op == syntax.Div {
				return binary(syntax.Shr, x, intEx(int64(y.v.BitLen()-1), code32), st)
			}
			return binary(syntax.And, x, constEx(new(big.Int).Sub(y.v, big.NewInt(1)), y.st), st)
		}
		return operation(&ex{op: opBinary, tok: op, x: x, y: y, st: st})
	}
	if op == syntax.Shl || op == syntax.Shr {
		if y.isConst() && y.v.Sign() == 0 {
			return x
		}
		if y.isConst() && !x.st.signed && y.v.Cmp(big.NewInt(int64(x.st.width))) >= 0 {
			return intEx(0, st)
		}
	}
	return operation(&ex{op: opBinary, tok: op, x: x, y: y, st: st})
}

func andAlso(x, y *ex) *ex {
	switch {
	case x.isTrue():
		return y
	case x.isFalse() || y.isTrue():
		return x
	}
	return operation(&ex{op: opBinary, tok: syntax.AndAnd, x: x, y: y, st: boolean})
}

func orElse(x, y *ex) *ex {
	switch {
	case x.isFalse():
		return y
	case x.isTrue() || y.isFalse():
		return x
	}
	return operation(&ex{op: opBinary, tok: syntax.OrOr, x: x, y: y, st: boolean})
}

// number returns the type of numbers with shape st.
func (st scalar) number() types.Type {
	if st.width == 0 {
		return types.Int
	}
	return &types.Bits{Width: st.width, Signed: st.signed}
}

// cond builds c ? x : y.
func cond(c, x, y *ex) *ex {
	switch {
	case c.isTrue():
		return x
	case c.isFalse():
		return y
	}
	return operation(&ex{op: opCond, z: c, x: x, y: y, st: x.st})
}

// slice builds x[hi:lo].
func slice(x *ex, hi, lo int) *ex {
	st := scalar{width: hi - lo + 1}
	if x.isConst() {
		return constEx(wrap(new(big.Int).Rsh(x.v, uint(lo)), st), st)
	}
	if x.op == opSlice {
		return slice(x.x, hi+x.k, lo+x.k)
	}
	if lo == 0 && hi == x.st.width-1 && !x.st.signed {
		return x
	}
	return operation(&ex{op: opSlice, x: x, n: hi, k: lo, st: st})
}

// cast builds (st) x.
func cast(x *ex, st scalar) *ex {
	switch {
	case x.st == st || x.st.str || st.varbit:
		return x
	case x.isConst() && !x.st.bool && !st.bool:
		return constEx(wrap(x.v, st), st)
	case x.isConst():
		return &ex{op: opConst, v: x.v, st: st}
	case st.bool:
		return binary(syntax.Neq, x, intEx(0, x.st), boolean)
	case x.st.bool:
		return cond(x, intEx(1, st), intEx(0, st))
	}
	return operation(&ex{op: opCast, x: x, st: st})
}

// equal builds x == y for scalars.
func equal(x, y *ex) *ex {
	if x.st.bool {
		bit := scalar{width: 1}
		x, y = boolData(x, bit), boolData(y, bit)
	}
	return binary(syntax.Eql, x, y, boolean)
}

// boolData turns a boolean into the number 0 or 1.
func boolData(x *ex, st scalar) *ex {
	if x.isConst() {
		return constEx(x.v, st)
	}
	return operation(&ex{op: opCast, x: x, st: st})
}

func bytesOf(width int) int { return (width + 7) / 8 }

// insertBits returns old with the bits [lo+width-1:lo] replaced by v.
func insertBits(old, v *ex, lo, width int) *ex {
	st := old.st
	unsigned := scalar{width: st.width}
	hole := new(big.Int).AndNot(maskOf(st.width), new(big.Int).Lsh(maskOf(width), uint(lo)))
	kept := binary(syntax.And, cast(old, unsigned), constEx(hole, unsigned), unsigned)
	put := binary(syntax.Shl, cast(v, unsigned), intEx(int64(lo), code32), unsigned)
	return cast(binary(syntax.Or, kept, put, unsigned), st)
}

// elementsOf returns the parts of a union, a stack or an aggregate.
func elementsOf(v value) []value {
	switch v := v.(type) {
	case *union:
		return lists.Map(v.members, func(m *header) value { return m })
	case *stack:
		return v.elems
	case *aggregate:
		return v.elems
	}
	return nil
}

// at returns the selected part of the i-th element.
func (d *element) at(i int) value {
	v := d.elems[i]
	for _, k := range d.sel {
		if h, ok := v.(*header); ok {
			v = h.parts[k]
		} else {
			v = elementsOf(v)[k]
		}
	}
	return v
}
