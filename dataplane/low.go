package dataplane

import "github.com/p4lb/p4lb/dataplane/num"

// Here are the operations that run for almost every packet, on 64 bits. Each
// has a form for the operands that occur most: a word and a constant, two
// words; a closure that calls another closure is the general case.

func ringLow(op string, a, b value) eval {
	switch op {
	case "+":
		return addLow(a, b)
	case "-":
		return subLow(a, b)
	}
	f, g := a.low(), b.low()
	return func(p *State) uint64 { return f(p) * g(p) }
}

func addLow(a, b value) eval {
	if a.kind == constKind {
		a, b = b, a
	}
	i, j, c := a.off, b.off, b.bits
	switch {
	case a.kind == wordKind && b.kind == constKind:
		return func(p *State) uint64 { return p.w[i] + c }
	case a.kind == wordKind && b.kind == wordKind:
		return func(p *State) uint64 { return p.w[i] + p.w[j] }
	case b.kind == constKind:
		f := a.low()
		return func(p *State) uint64 { return f(p) + c }
	}
	f, g := a.low(), b.low()
	return func(p *State) uint64 { return f(p) + g(p) }
}

func subLow(a, b value) eval {
	i, j, c := a.off, b.off, b.bits
	switch {
	case a.kind == wordKind && b.kind == constKind:
		return func(p *State) uint64 { return p.w[i] - c }
	case a.kind == wordKind && b.kind == wordKind:
		return func(p *State) uint64 { return p.w[i] - p.w[j] }
	}
	f, g := a.low(), b.low()
	return func(p *State) uint64 { return f(p) - g(p) }
}

func bitwiseLow(op string, a, b value) eval {
	switch op {
	case "&":
		return andLow(a, b)
	case "|":
		f, g := a.low(), b.low()
		return func(p *State) uint64 { return f(p) | g(p) }
	}
	f, g := a.low(), b.low()
	return func(p *State) uint64 { return f(p) ^ g(p) }
}

// andLow expects a constant on the right.
func andLow(a, b value) eval {
	i, c := a.off, b.bits
	switch {
	case a.kind == wordKind && b.kind == constKind:
		return func(p *State) uint64 { return p.w[i] & c }
	case b.kind == constKind:
		f := a.low()
		return func(p *State) uint64 { return f(p) & c }
	}
	f, g := a.low(), b.low()
	return func(p *State) uint64 { return f(p) & g(p) }
}

// compare compiles a comparison of numbers.
func compare(op string, a, b value) (test, error) {
	switch {
	case a.fitsUnsigned() && b.fitsUnsigned():
		return compareUnsigned(op, a, b), nil
	case a.fitsSigned() && b.fitsSigned():
		return compareSigned(op, a, b), nil
	case a.hi == nil || b.hi == nil:
		return nil, errUnbounded
	}
	return compareWide(op, a, b), nil
}

func compareUnsigned(op string, a, b value) test {
	op, a, b = constantRight(op, a, b)
	if a.kind == wordKind && b.kind == constKind {
		return compareWord(op, a.off, b.bits)
	}
	f, g := a.low(), b.low()
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

func compareWord(op string, i int, c uint64) test {
	switch op {
	case "==":
		return func(p *State) bool { return p.w[i] == c }
	case "!=":
		return func(p *State) bool { return p.w[i] != c }
	case "<":
		return func(p *State) bool { return p.w[i] < c }
	case "<=":
		return func(p *State) bool { return p.w[i] <= c }
	case ">":
		return func(p *State) bool { return p.w[i] > c }
	}
	return func(p *State) bool { return p.w[i] >= c }
}

// constantRight exchanges the sides of a comparison if the constant is on the
// left.
func constantRight(op string, a, b value) (string, value, value) {
	if a.kind == constKind && b.kind != constKind {
		return mirrored(op), b, a
	}
	return op, a, b
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op string) string {
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

func compareSigned(op string, a, b value) test {
	if op == "==" || op == "!=" { // words are sign-extended
		return compareUnsigned(op, a, b)
	}
	op, a, b = constantRight(op, a, b)
	f, g := a.low(), b.low()
	if b.kind == constKind {
		return compareSignedConst(op, f, int64(b.bits))
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

func compareSignedConst(op string, f eval, c int64) test {
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

func compareWide(op string, a, b value) test {
	n := max(a.limbs(), b.limbs())
	f, g := a.wideFn(), b.wideFn()
	return compared(op, func(p *State) int {
		t := p.ex.push(2 * n)
		f(p, t[:n])
		g(p, t[n:])
		c := num.Cmp(t[:n], t[n:])
		p.ex.pop(2 * n)
		return c
	})
}

// compared turns a three-way comparison into a test.
func compared(op string, cmp func(*State) int) test {
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
