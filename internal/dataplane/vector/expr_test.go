package vector

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// An exprWorld is a metadata header with fields of many widths, signed and
// unsigned, and expressions over it. The test computes them twice: linked, and
// with unbounded integers.
type exprWorld struct {
	r      *rand.Rand
	fields []bmv2.HeaderField
	link   *Linker
	p      *State
	values map[string]*big.Int
}

func newExprWorld(t *testing.T, r *rand.Rand) *exprWorld {
	w := &exprWorld{r: r, values: map[string]*big.Int{}}
	for i, width := range []int{1, 7, 8, 16, 31, 32, 48, 63, 64, 65, 96, 128, 200} {
		w.fields = append(w.fields, bmv2.HeaderField{Name: fmt.Sprint("u", i), Width: width})
		if width > 1 {
			w.fields = append(w.fields, bmv2.HeaderField{Name: fmt.Sprint("s", i), Width: width, Signed: true})
		}
	}
	lay, err := NewLayout(&bmv2.Config{
		HeaderTypes: []*bmv2.HeaderType{{Name: "t", Fields: w.fields}},
		Headers:     []*bmv2.Header{{Name: "h", HeaderType: "t", Metadata: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.link = &Linker{Layout: lay}
	w.p = &State{W: make([]uint64, lay.Words), Scratch: &Scratch{}}
	return w
}

// fill sets all fields to random values, often near a limit.
func (w *exprWorld) fill() {
	for _, f := range w.fields {
		v := new(big.Int)
		switch w.r.IntN(4) {
		case 0:
			v.Sub(new(big.Int).Lsh(bigOne, uint(f.Width)), big.NewInt(int64(1+w.r.IntN(2))))
		case 1:
			v.Lsh(bigOne, uint(w.r.IntN(f.Width)))
		default:
			for range num.Words(f.Width) {
				v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(w.r.Uint64()))
			}
		}
		v.And(v, num.Most(f.Width))
		if f.Signed && v.Bit(f.Width-1) == 1 {
			v.Sub(v, new(big.Int).Lsh(bigOne, uint(f.Width)))
		}
		w.values[f.Name] = v
		fd, _ := w.link.Layout.Field("h", f.Name)
		copy(w.p.W[fd.Off:], num.OfBig(v, fd.Words()))
	}
}

// number returns a random expression.
func (w *exprWorld) number(depth int) *bmv2.Expr {
	if depth == 0 {
		if w.r.IntN(4) == 0 {
			return bmv2.HexInt(int64(w.r.Uint64()>>uint(w.r.IntN(64)))>>uint(w.r.IntN(40)), 0)
		}
		return bmv2.FieldOf("h", w.fields[w.r.IntN(len(w.fields))].Name)
	}
	width := bmv2.HexInt(int64(1+w.r.IntN(140)), 0)
	a := func() *bmv2.Expr { return w.number(depth - 1) }
	switch w.r.IntN(13) {
	case 0, 1:
		return bmv2.Op2("+", a(), a())
	case 2:
		return bmv2.Op2("-", a(), a())
	case 3:
		return bmv2.Op2("*", a(), a())
	case 4:
		return bmv2.Op2("&", a(), bmv2.Hex(num.Most(1+w.r.IntN(140)), 0))
	case 5:
		return bmv2.Op2([]string{"&", "|", "^"}[w.r.IntN(3)], a(), a())
	case 6:
		return bmv2.Op2("<<", a(), bmv2.HexInt(int64(w.r.IntN(150)), 0))
	case 7:
		return bmv2.Op2(">>", a(), bmv2.FieldOf("h", "u2"))
	case 8:
		return bmv2.Op2("two_comp_mod", a(), width)
	case 9:
		return bmv2.Op2([]string{"sat_cast", "usat_cast"}[w.r.IntN(2)], a(), width)
	case 10:
		return bmv2.Op1([]string{"~", "-"}[w.r.IntN(2)], a())
	case 11:
		return bmv2.Cond(w.test(depth-1), a(), a())
	}
	return bmv2.Op1("b2d", w.test(depth-1))
}

func (w *exprWorld) test(depth int) *bmv2.Expr {
	if depth == 0 {
		return bmv2.Op1("d2b", w.number(0))
	}
	switch w.r.IntN(4) {
	case 0:
		return bmv2.Op2([]string{"and", "or"}[w.r.IntN(2)], w.test(depth-1), w.test(depth-1))
	case 1:
		return bmv2.Op1("not", w.test(depth-1))
	}
	op := []string{"==", "!=", "<", "<=", ">", ">="}[w.r.IntN(6)]
	return bmv2.Op2(op, w.number(depth-1), w.number(depth-1))
}

// eval evaluates an expression with unbounded integers.
func (w *exprWorld) eval(e *bmv2.Expr) *big.Int {
	switch e.Type {
	case bmv2.TypeField:
		return w.values[e.Field]
	case bmv2.TypeHexstr:
		v, _ := bmv2.ParseHex(e.Hex)
		return v
	}
	z := new(big.Int)
	switch e.Op {
	case "?":
		if w.holds(e.Cond) {
			return w.eval(e.Left)
		}
		return w.eval(e.Right)
	case "b2d":
		if w.holds(e.Right) {
			return z.SetInt64(1)
		}
		return z
	case "~":
		return z.Not(w.eval(e.Right))
	}
	if e.Left == nil {
		return z.Neg(w.eval(e.Right))
	}
	a, b := w.eval(e.Left), w.eval(e.Right)
	switch e.Op {
	case "+":
		return z.Add(a, b)
	case "-":
		return z.Sub(a, b)
	case "*":
		return z.Mul(a, b)
	case "&":
		return z.And(a, b)
	case "|":
		return z.Or(a, b)
	case "^":
		return z.Xor(a, b)
	case "<<":
		return z.Lsh(a, uint(b.Uint64()))
	case ">>":
		return z.Rsh(a, uint(b.Uint64()))
	}
	return cast(e.Op, a, int(b.Int64()))
}

func cast(op string, a *big.Int, width int) *big.Int {
	low, high := new(big.Int), num.Most(width)
	if op != "usat_cast" {
		low.Neg(low.Lsh(bigOne, uint(width-1)))
		high = num.Most(width - 1)
	}
	if op == "two_comp_mod" {
		z := new(big.Int).And(a, num.Most(width))
		if z.Cmp(high) > 0 {
			z.Sub(z, new(big.Int).Lsh(bigOne, uint(width)))
		}
		return z
	}
	switch {
	case a.Cmp(low) < 0:
		return low
	case a.Cmp(high) > 0:
		return high
	}
	return a
}

func (w *exprWorld) holds(e *bmv2.Expr) bool {
	switch e.Op {
	case "d2b":
		return w.eval(e.Right).Sign() != 0
	case "not":
		return !w.holds(e.Right)
	case "and":
		return w.holds(e.Left) && w.holds(e.Right)
	case "or":
		return w.holds(e.Left) || w.holds(e.Right)
	}
	c := w.eval(e.Left).Cmp(w.eval(e.Right))
	return map[string]bool{"==": c == 0, "!=": c != 0, "<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[e.Op]
}

// stored returns a number after storing it in a field.
func stored(f bmv2.HeaderField, v *big.Int) *big.Int {
	z := new(big.Int).And(v, num.Most(f.Width))
	if !f.Signed {
		return z
	}
	// BMv2 does not wrap numbers up to the mask.
	low := new(big.Int).Neg(new(big.Int).Lsh(bigOne, uint(f.Width-1)))
	if f.Width < 64 && v.Cmp(low) >= 0 && v.Cmp(num.Most(f.Width)) <= 0 {
		return new(big.Int).Set(v)
	}
	return cast("two_comp_mod", v, f.Width)
}

func TestExpressionsAgainstUnboundedIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := newExprWorld(t, r)
	for i := range 4000 {
		w.fill()
		e := w.number(1 + r.IntN(4))
		f := w.fields[r.IntN(len(w.fields))]
		do, err := w.link.Assign(bmv2.FieldOf("h", f.Name), e)
		if err != nil {
			t.Fatalf("%d: %v: %v", i, e, err)
		}
		v := w.eval(e)
		want := stored(f, v)
		do(w.p)
		fd, _ := w.link.Layout.Field("h", f.Name)
		got, wantLimbs := w.p.W[fd.Off:fd.Off+fd.Words()], num.OfBig(want, fd.Words())
		for j := range got {
			// A number that fits a field of at most 64 bits may have been
			// computed modulo 2^64, and is then wrapped.
			if got[j] != wantLimbs[j] && (!f.Signed || got[j]&num.Mask64(min(f.Width, 64)) != wantLimbs[j]&num.Mask64(min(f.Width, 64))) {
				t.Fatalf("%d: %s (%d bits) = %v\n got %x\nwant %x (%x)", i, f.Name, f.Width, e, got, wantLimbs, v)
			}
		}
		if w.p.Scratch.Used != 0 {
			t.Fatalf("%d: %v leaves %d words on the stack", i, e, w.p.Scratch.Used)
		}
	}
}

func TestUnboundedOperandsAreRefused(t *testing.T) {
	w := newExprWorld(t, rand.New(rand.NewPCG(1, 1)))
	shift := bmv2.Op2("<<", bmv2.FieldOf("h", "u5"), bmv2.FieldOf("h", "u5"))
	if _, err := w.link.Number(bmv2.Op2("&", shift, bmv2.HexInt(0xffff, 0))); err != nil {
		t.Errorf("a masked shift: %v", err)
	}
	if _, err := w.link.Number(bmv2.Op2(">>", shift, bmv2.HexInt(3, 0))); err == nil {
		t.Error("the high bits of a shift by up to 2^32 were accepted")
	}
}
