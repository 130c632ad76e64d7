package lower

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// hashNames are the members of HashAlgorithm_t.
var hashNames = []string{"IDENTITY", "RANDOM", "XOR8", "XOR16", "XOR32", "CRC8", "CRC16", "CRC32", "CRC64", "CUSTOM"}

// A hashFunction describes an algorithm in the document's terms.
type hashFunction struct {
	algo string
	crc  *bmv2.CRC
	// width is the number of bits of the algorithm. If a call wants more bits, the
	// value is repeated if extends is set; otherwise the higher bits are 0.
	width   int
	extends bool
}

// hashFunctions describes the algorithms except IDENTITY, which does not hash, and
// CUSTOM. For RANDOM, p4c draws a matrix; any good hash can replace it.
var hashFunctions = map[string]hashFunction{
	"RANDOM": {width: 64, extends: true, algo: bmv2.AlgoCRC, crc: &bmv2.CRC{Width: 64, Poly: "0xad93d23594c935a9", Init: "0xffffffffffffffff", Xor: "0x00", Reversed: true}},
	"XOR8":   {width: 8, algo: "xor8"},
	"XOR16":  {width: 16, algo: "xor16"},
	"XOR32":  {width: 32, algo: "xor32"},
	"CRC8":   {width: 8, extends: true, algo: bmv2.AlgoCRC, crc: &bmv2.CRC{Width: 8, Poly: "0x07", Init: "0x00", Xor: "0x00"}},
	"CRC16":  {width: 16, extends: true, algo: "crc16"},
	"CRC32":  {width: 32, extends: true, algo: "crc32"},
	"CRC64":  {width: 64, extends: true, algo: bmv2.AlgoCRC, crc: &bmv2.CRC{Width: 64, Poly: "0x42f0e1eba9ea3693", Init: "0x00", Xor: "0x00"}},
}

// hashName returns the algorithm of a Hash.
func (l *tofino) hashName(inst *instance) string {
	return l.algorithm(inst.arg(0), inst.at, "HashAlgorithm_t", hashNames)
}

func (l *tofino) hashFunction(inst *instance) hashFunction {
	name := l.hashName(inst)
	if name == "CUSTOM" {
		// A Hash may have its own CRCPolynomial.
		p, ok := inst.arg(1).(*instance)
		if !ok || p.extern().Name != "CRCPolynomial" || len(p.args) != 6 {
			l.unsupported(inst.at, "a custom hash without a CRCPolynomial")
		}
		arg := func(k int) *ex {
			x, ok := p.args[k].(*ex)
			if !ok || !x.isConst() {
				l.errorf(p.at, "the arguments of CRCPolynomial must be constants")
				panic(bail{})
			}
			return x
		}
		width := l.widthOf(p.extern().Args[0])
		if width < 8 || width > 64 {
			l.unsupported(p.at, "a CRC of %d bits", width)
		}
		hex := func(k int) string {
			return bmv2.HexString(wrap(arg(k).v, scalar{width: width}), bytesOf(width))
		}
		return hashFunction{width: width, extends: arg(3).isTrue(), algo: bmv2.AlgoCRC, crc: &bmv2.CRC{
			Width: width, Poly: hex(0), Init: hex(4), Xor: hex(5), Reversed: arg(1).isTrue(),
		}}
	}
	f, ok := hashFunctions[name]
	if !ok {
		l.unsupported(inst.at, "the hash algorithm %s here", name)
	}
	return f
}

// hashCall lowers Hash.get. For IDENTITY, the result is the concatenated data.
func (l *tofino) hashCall(c *methodCall) value {
	st := l.resultShape(c)
	arg := c.arg("data")
	v := l.symmetric(c, arg, l.eval(arg, c.e))
	if l.hashName(c.inst) == "IDENTITY" {
		all := l.joined(l.numbers(v, arg))
		if all == nil {
			return intEx(0, st)
		}
		return cast(cast(all, scalar{width: st.width}), st)
	}
	fn := l.hashFunction(c.inst)
	input := l.inputs(v, arg)
	use := l.hashUse(c, arg, st.width, fn.extends)
	width := min(st.width, fn.width)
	if use != nil {
		width = st.width
	}
	f := l.temp(scalar{width: width})
	limit := new(big.Int).Lsh(big.NewInt(1), uint(f.st.width))
	ref := l.calculation(fn.algo, input, false)
	k := l.cfg.Calculations[len(l.cfg.Calculations)-1]
	k.CRC, k.Hash = fn.crc, use
	l.prim("modify_field_with_hash_based_offset", f, intEx(0, f.st), ref, constEx(limit, scalar{width: max(64, limit.BitLen())}))
	if f.st.width == st.width {
		return l.as(f, st)
	}
	all := fieldEx(f)
	for fn.extends && all.st.width < st.width {
		all = binary(syntax.Concat, fieldEx(f), all, scalar{width: f.st.width + all.st.width})
	}
	return cast(cast(all, scalar{width: st.width}), st)
}

// hashUse describes the hash of x for the control plane, which can replace the
// algorithm. It returns nil if the control plane cannot, because p4c merges the
// input fields.
func (l *tofino) hashUse(c *methodCall, x syntax.Expr, width int, extends bool) *bmv2.Hash {
	_, isList := syntax.Unparen(x).(*syntax.ListExpr)
	if !isList || width > 64 || c.inst.decl == nil ||
		slices.ContainsFunc(c.inst.decl.Annotations, func(a *syntax.Annotation) bool { return a.Name.Value == "symmetric" }) {
		return nil
	}
	h := &bmv2.Hash{Name: c.inst.name, Width: width, High: width - 1, Extend: extends}
	if n, ok := l.narrowed[c.x]; ok {
		h.Low, h.High = n[0], n[1]
	}
	return h
}

// symmetric combines the fields that @symmetric pairs, as p4c does: the later field
// becomes the exclusive or of both, and the earlier one 0. v is the data, and x the
// expression that lists them.
func (l *tofino) symmetric(c *methodCall, x syntax.Expr, v value) value {
	list, ok := syntax.Unparen(x).(*syntax.ListExpr)
	a, isList := v.(*aggregate)
	if !ok || !isList || len(list.Elems) != len(a.elems) || c.inst.decl == nil {
		return v
	}
	at := map[string]int{}
	for i, el := range list.Elems {
		at[names.Path(l.info, el)] = i
	}
	out := &aggregate{typ: a.typ, elems: slices.Clone(a.elems)}
	for _, an := range c.inst.decl.Annotations {
		if an.Name.Value != "symmetric" || len(an.Exprs) != 2 {
			continue
		}
		one, _ := an.Exprs[0].(*syntax.StringLit)
		two, _ := an.Exprs[1].(*syntax.StringLit)
		if one == nil || two == nil {
			continue
		}
		i, ok1 := at[one.Value]
		k, ok2 := at[two.Value]
		if !ok1 || !ok2 {
			l.unsupported(an, "@symmetric for a field that the hashed list does not contain")
		}
		p, q := l.toEx(a.elems[i], x), l.toEx(a.elems[k], x)
		out.elems[min(i, k)], out.elems[max(i, k)] = intEx(0, p.st), binary(syntax.Xor, p, q, p.st)
	}
	return out
}

// numbers lists the numbers in a value.
func (l *tofino) numbers(v value, at syntax.Node) []*ex {
	var list []*ex
	switch v := v.(type) {
	case *aggregate:
		for _, el := range v.elems {
			list = append(list, l.numbers(el, at)...)
		}
	case *literal:
		list = v.fields
	case *header, *union, *stack:
		list = lists.Map(leaves(v), fieldEx)
	default:
		list = append(list, l.toEx(v, at))
	}
	return list
}

// checksumObjectCall lowers a method of a Checksum. In a parser, the object is a
// variable that starts at 0 and holds the ones' complement sum. In a deparser,
// update computes the checksum of its arguments.
func (l *tofino) checksumObjectCall(c *methodCall) value {
	if c.method == "update" {
		return l.updateChecksum(c)
	}
	if l.block != parserBlock {
		l.unsupported(c.x, "the method %s of Checksum outside of a parser", c.method)
	}
	u16 := scalar{width: 16}
	sum := l.state(c.inst, c.inst.name, u16)
	switch c.method {
	case "add", "subtract":
		arg := c.arg("data")
		input := l.inputs(l.eval(arg, c.e), arg)
		l.prim(map[string]string{"add": "csum_add", "subtract": "csum_subtract"}[c.method], sum, l.calculation("csum16", input, false))
		return nil
	case "get":
		return l.settled(fieldEx(sum))
	case "verify":
		// The sum over data and their checksum is all ones, or 0 if all data are 0.
		isNot := func(n int64) *ex { return not(equal(fieldEx(sum), intEx(n, u16))) }
		t := l.temp(boolean)
		l.set(t, andAlso(isNot(0xffff), isNot(0)))
		return fieldEx(t)
	case "subtract_all_and_deposit":
		l.deposit(sum, c.arg("residual"), c.e)
		return nil
	}
	l.unsupported(c.x, "the method %s of Checksum", c.method)
	return nil
}

// deposit lowers subtract_all_and_deposit (TNA 7.5). The call records the position
// of the parser. The residual is computed when the parser ends: the sum minus the
// headers that were extracted after this position. The payload stays in the sum,
// because the checksum that the program subtracts covers it (RFC 1624).
func (l *tofino) deposit(sum *field, residual syntax.Expr, e *env) {
	dst, ok := l.lvalue(residual, e).(*field)
	if !ok || dst.st.width != 16 {
		l.unsupported(residual, "a residual that is not a field or variable of type bit<16>")
	}
	mark := l.scalars.add(l.unique(sum.name+".mark"), scalar{width: 32}, false)
	l.prim("csum_mark", mark)
	l.deposits = append(l.deposits, &instr{kind: iPrim, prim: "csum_deposit", args: []any{dst, sum, mark}, at: residual})
}

// updateChecksum computes a checksum. It omits fields of invalid headers, as the
// hardware does.
func (l *tofino) updateChecksum(c *methodCall) value {
	arg := c.arg("data")
	u16 := scalar{width: 16}
	input := l.inputs(l.eval(arg, c.e), arg)
	f := l.temp(u16)
	l.prim("modify_field_with_hash_based_offset", f, intEx(0, u16), l.calculation("csum16", input, false), intEx(0x10000, code32))
	x := c.arg("zeros_as_ones")
	if x == nil {
		return f
	}
	ones := l.scalar(x, c.e)
	return cond(andAlso(ones, equal(fieldEx(f), intEx(0, u16))), intEx(0xffff, u16), fieldEx(f))
}

// selectorAlgorithm returns the algorithm of the Hash that was passed to the
// selector, if BMv2 supports it.
func (l *tofino) selectorAlgorithm(inst *instance) string {
	h, ok := inst.arg(1).(*instance)
	if !ok {
		l.unsupported(inst.at, "an action selector without a Hash")
	}
	switch name := l.hashName(h); name {
	case "CRC16", "CRC32", "XOR16", "XOR32", "IDENTITY":
		return strings.ToLower(name)
	}
	return "crc32" // any algorithm that distributes flows evenly is good enough
}

// A mathUnit holds the constructor's arguments of a MathUnit; dataplane/mathunit.go
// documents the formula.
type mathUnit struct {
	shift, scale int64
	invert       bool
	table        [16]byte // indexed by the mantissa
}

// A mathOp is a member of MathOp_t; for shift 1, y = x, for shift 2, y = x², and so
// on.
type mathOp struct {
	shift  int64
	invert bool
	of     func(x float64) float64
}

// mathOps are the members of MathOp_t in their order.
var mathOps = []mathOp{
	{0, false, func(x float64) float64 { return x }},
	{1, false, func(x float64) float64 { return x * x }},
	{-1, false, math.Sqrt},
	{0, true, func(x float64) float64 { return 1 / x }},
	{1, true, func(x float64) float64 { return 1 / (x * x) }},
	{-1, true, func(x float64) float64 { return 1 / math.Sqrt(x) }},
}

// unit returns the math unit of factor times the function. It uses the largest
// scale with which the table entries fit into 8 bits. p4c does the same, but its
// table for RSQR differs from 1/x².
func (op mathOp) unit(factor float64) mathUnit {
	u := mathUnit{shift: op.shift, invert: op.invert}
	first, greatest := 8, 0.0
	if op.shift < 0 {
		first = 4
	}
	for i := first; i < 16; i++ {
		greatest = max(greatest, op.of(float64(i)/8)*factor)
	}
	if greatest <= 0 {
		return u
	}
	u.scale = min(max(int64(math.Floor(math.Log2(greatest)))-7, -32), 31)
	for i := first; i < 16; i++ {
		v := math.RoundToEven(math.Ldexp(op.of(float64(i)/8)*factor, -int(u.scale)))
		u.table[i] = byte(min(max(v, 0), 255))
	}
	return u
}

// mathUnitOf evaluates the constructor arguments of a MathUnit: either the unit
// itself, or an optional factor or fraction and a function.
func (l *tofino) mathUnitOf(i *instance) mathUnit {
	if len(i.args) < 4 {
		op := l.constArg(i, 0)
		if op < 0 || op >= len(mathOps) {
			l.unsupported(i.at, "a MathUnit of this operation")
		}
		factor := float64(l.constArg(i, 1))
		if len(i.args) == 3 {
			factor /= float64(l.constArg(i, 2))
		}
		if !(factor >= 0) || math.IsInf(factor, 0) {
			l.unsupported(i.at, "a MathUnit with a factor that is not a positive number")
		}
		return mathOps[op].unit(factor)
	}
	invert, _ := i.args[0].(*ex)
	u := mathUnit{shift: int64(l.constArg(i, 1)), scale: int64(l.constArg(i, 2)), invert: invert != nil && invert.isTrue()}
	values := l.numbers(i.args[3], i.at)
	if u.shift < -1 || len(values) != len(u.table) {
		l.unsupported(i.at, "a MathUnit with a shift other than -1, 0 or 1, or a table of other than 16 values")
	}
	for k, v := range values {
		if !v.isConst() {
			l.unsupported(i.at, "a MathUnit with a table that is not constant")
		}
		u.table[15-k] = byte(v.v.Uint64())
	}
	return u
}

// mathUnitCall computes with 32 bits, whatever the width of the numbers.
func (l *tofino) mathUnitCall(c *methodCall) value {
	u := l.mathUnitOf(c.inst)
	st := l.resultShape(c)
	x := cast(cast(l.scalar(c.arg("x"), c.e), scalar{width: st.width}), code32)
	f := l.temp(code32)
	table := new(big.Int)
	for i := len(u.table) - 1; i >= 0; i-- {
		table.Or(table.Lsh(table, 8), big.NewInt(int64(u.table[i])))
	}
	number := func(n int64) *bmv2.Expr { return bmv2.Hex(big.NewInt(n), 4) }
	invert := int64(0)
	if u.invert {
		invert = 1
	}
	l.prim("math_unit", f, x, number(u.shift), number(invert), number(u.scale), bmv2.Hex(table, len(u.table)))
	return cast(cast(fieldEx(f), scalar{width: st.width}), st)
}
