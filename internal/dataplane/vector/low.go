package vector

import "github.com/p4lb/p4lb/internal/dataplane/num"

// The operations below run for almost every packet, on 64 bits. Each has a fast
// form for the most frequent operands: a word and a constant, or two words. The
// general form is a closure that calls other closures.

func ringLow(op string, a, b Value) Eval {
	switch op {
	case "+":
		return addLow(a, b)
	case "-":
		return subLow(a, b)
	}
	f, g := a.Low(), b.Low()
	return func(p *State) uint64 { return f(p) * g(p) }
}

func addLow(a, b Value) Eval {
	if a.Kind == ConstKind {
		a, b = b, a
	}
	i, j, c := a.Off, b.Off, b.Bits
	switch {
	case a.Kind == WordKind && b.Kind == ConstKind:
		return func(p *State) uint64 { return p.W[i] + c }
	case a.Kind == WordKind && b.Kind == WordKind:
		return func(p *State) uint64 { return p.W[i] + p.W[j] }
	case b.Kind == ConstKind:
		f := a.Low()
		return func(p *State) uint64 { return f(p) + c }
	}
	f, g := a.Low(), b.Low()
	return func(p *State) uint64 { return f(p) + g(p) }
}

func subLow(a, b Value) Eval {
	i, j, c := a.Off, b.Off, b.Bits
	switch {
	case a.Kind == WordKind && b.Kind == ConstKind:
		return func(p *State) uint64 { return p.W[i] - c }
	case a.Kind == WordKind && b.Kind == WordKind:
		return func(p *State) uint64 { return p.W[i] - p.W[j] }
	}
	f, g := a.Low(), b.Low()
	return func(p *State) uint64 { return f(p) - g(p) }
}

func bitwiseLow(op string, a, b Value) Eval {
	switch op {
	case "&":
		return andLow(a, b)
	case "|":
		f, g := a.Low(), b.Low()
		return func(p *State) uint64 { return f(p) | g(p) }
	}
	f, g := a.Low(), b.Low()
	return func(p *State) uint64 { return f(p) ^ g(p) }
}

// andLow requires a constant on the right.
func andLow(a, b Value) Eval {
	i, c := a.Off, b.Bits
	switch {
	case a.Kind == WordKind && b.Kind == ConstKind:
		return func(p *State) uint64 { return p.W[i] & c }
	case b.Kind == ConstKind:
		f := a.Low()
		return func(p *State) uint64 { return f(p) & c }
	}
	f, g := a.Low(), b.Low()
	return func(p *State) uint64 { return f(p) & g(p) }
}

// Compare links a comparison of numbers.
func Compare(op string, a, b Value) (Test, error) {
	switch {
	case a.FitsUnsigned() && b.FitsUnsigned():
		return compareUnsigned(op, a, b), nil
	case a.FitsSigned() && b.FitsSigned():
		return compareSigned(op, a, b), nil
	case a.Hi == nil || b.Hi == nil:
		return nil, errUnbounded
	}
	n := max(a.limbs(), b.limbs())
	f, g := a.WideFn(), b.WideFn()
	return compared(op, func(p *State) int {
		t := p.Scratch.Push(2 * n)
		f(p, t[:n])
		g(p, t[n:])
		c := num.Cmp(t[:n], t[n:])
		p.Scratch.Pop(2 * n)
		return c
	}), nil
}

func compareUnsigned(op string, a, b Value) Test {
	op, a, b = constantRight(op, a, b)
	if a.Kind == WordKind && b.Kind == ConstKind {
		return compareWord(op, a.Off, b.Bits)
	}
	f, g := a.Low(), b.Low()
	switch op {
	case "==":
		return func(p *State) bool { return f(p) == g(p) }
	case "!=":
		return func(p *State) bool { return f(p) != g(p) }
	case "<":
		return func(p *State) bool { return f(p) < g(p) }
	case "<=":
		return func(p *State) bool { return f(p) <= g(p) }
	case ">":
		return func(p *State) bool { return f(p) > g(p) }
	}
	return func(p *State) bool { return f(p) >= g(p) }
}

func compareWord(op string, i int, c uint64) Test {
	switch op {
	case "==":
		return func(p *State) bool { return p.W[i] == c }
	case "!=":
		return func(p *State) bool { return p.W[i] != c }
	case "<":
		return func(p *State) bool { return p.W[i] < c }
	case "<=":
		return func(p *State) bool { return p.W[i] <= c }
	case ">":
		return func(p *State) bool { return p.W[i] > c }
	}
	return func(p *State) bool { return p.W[i] >= c }
}

// constantRight exchanges the sides of a comparison if the constant is on the
// left.
func constantRight(op string, a, b Value) (string, Value, Value) {
	if a.Kind == ConstKind && b.Kind != ConstKind {
		return Mirrored(op), b, a
	}
	return op, a, b
}

// Mirrored returns the comparison with its sides exchanged.
func Mirrored(op string) string {
	switch op {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	}
	return op
}

func compareSigned(op string, a, b Value) Test {
	if op == "==" || op == "!=" { // sign-extended words are equal if the numbers are
		return compareUnsigned(op, a, b)
	}
	op, a, b = constantRight(op, a, b)
	f, g := a.Low(), b.Low()
	if b.Kind == ConstKind {
		c := int64(b.Bits)
		switch op {
		case "<":
			return func(p *State) bool { return int64(f(p)) < c }
		case "<=":
			return func(p *State) bool { return int64(f(p)) <= c }
		case ">":
			return func(p *State) bool { return int64(f(p)) > c }
		}
		return func(p *State) bool { return int64(f(p)) >= c }
	}
	switch op {
	case "<":
		return func(p *State) bool { return int64(f(p)) < int64(g(p)) }
	case "<=":
		return func(p *State) bool { return int64(f(p)) <= int64(g(p)) }
	case ">":
		return func(p *State) bool { return int64(f(p)) > int64(g(p)) }
	}
	return func(p *State) bool { return int64(f(p)) >= int64(g(p)) }
}

// compared converts a three-way comparison to a test.
func compared(op string, cmp func(*State) int) Test {
	switch op {
	case "==":
		return func(p *State) bool { return cmp(p) == 0 }
	case "!=":
		return func(p *State) bool { return cmp(p) != 0 }
	case "<":
		return func(p *State) bool { return cmp(p) < 0 }
	case "<=":
		return func(p *State) bool { return cmp(p) <= 0 }
	case ">":
		return func(p *State) bool { return cmp(p) > 0 }
	}
	return func(p *State) bool { return cmp(p) >= 0 }
}
