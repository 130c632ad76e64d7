package syntax

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// A cond is an open #if.
type cond struct {
	name  string // if, ifdef or ifndef
	pos   Pos
	taken bool // one of its groups was included or is being read
	last  bool // after #else
}

// condition reads the operand of #if, #elif and their kin; kind is "", "def" or "ndef".
func (p *preproc) condition(kind string) bool {
	if kind == "" {
		// The rest of the line is the condition of an #if.
		toks := p.resolveDefined(p.line())
		if toks == nil {
			p.errorf(p.file.posAt(p.file.off), "#if without a condition")
			return false
		}
		e := condExpr{toks: p.expandList(toks), end: p.file.posAt(p.file.off)}
		v := e.conditional(true)
		if !e.failed && len(e.toks) > 0 {
			e.fail(e.toks[0], "%s in the condition of #if", e.toks[0].describe())
		}
		if e.failed {
			p.errorf(e.pos, "%s", e.msg)
			return false
		}
		return v != 0
	}
	var t Token
	if p.file.next(&t); !t.IsName() {
		p.errorf(t.Pos, "#if%s needs a name, found %s", kind, t.describe())
		return false
	}
	p.end("if" + kind)
	return (p.macros[t.Text] != nil) == (kind == "def")
}

func (p *preproc) checkElse(c *cond, t Token) {
	if c.last {
		p.errorf(t.Pos, "#%s after #else", t.Text)
	}
	c.last = c.last || t.Text == "else"
}

func (p *preproc) endif(t Token) {
	if c := p.innermost(t); c != nil {
		p.file.conds = p.file.conds[:len(p.file.conds)-1]
		p.end("endif")
	}
}

func (p *preproc) innermost(t Token) *cond {
	n := len(p.file.conds)
	if n == 0 {
		p.errorf(t.Pos, "#%s without #if", t.Text)
		return nil
	}
	return &p.file.conds[n-1]
}

// skipGroups skips the groups of the innermost #if up to the next group to read, or
// past its #endif.
func (p *preproc) skipGroups() {
	c := &p.file.conds[len(p.file.conds)-1]
	for depth := 0; ; {
		t, ok := p.file.nextDirective()
		if !ok {
			return // pop reports the open #if
		}
		switch t.Text {
		case "if", "ifdef", "ifndef":
			depth++
			continue
		case "endif":
			if depth--; depth < 0 {
				p.endif(t)
				return
			}
			continue
		}
		if depth > 0 || !strings.HasPrefix(t.Text, "el") {
			continue
		}
		kind, isElif := strings.CutPrefix(t.Text, "elif")
		if t.Text != "else" && !(isElif && (kind == "" || kind == "def" || kind == "ndef")) {
			continue
		}
		p.checkElse(c, t)
		if !c.taken && (!isElif || p.condition(kind)) {
			c.taken = true
			return
		}
	}
}

// nextDirective skips lines up to the next directive. It returns the word after the
// #, and leaves the scanner in the directive.
func (s *scanner) nextDirective() (t Token, ok bool) {
	for {
		s.skipLine()
		if s.off >= len(s.text) {
			return t, false
		}
		s.off++
		s.newline()
		s.inDirective = true
		if s.skipSpace(); s.off < len(s.text) && s.text[s.off] == '#' {
			s.off++
			s.next(&t)
			return t, true
		}
	}
}

// resolveDefined replaces defined X and defined(X) by 1 or 0.
func (p *preproc) resolveDefined(toks []Token) []Token {
	var out []Token
	for len(toks) > 0 {
		t, n := toks[0], 1
		if t.Text == "defined" {
			var name string
			if name, n = definedOperand(toks); n == 1 {
				p.errorf(t.Pos, "defined needs a name")
			}
			t.Kind, t.Text = token.Int, "0"
			if p.macros[name] != nil {
				t.Text = "1"
			}
		}
		out = append(out, t)
		toks = toks[n:]
	}
	return out
}

// definedOperand returns the name in defined X or defined(X), and the number of
// tokens, or 1 if there is no name.
func definedOperand(toks []Token) (string, int) {
	switch {
	case len(toks) > 1 && toks[1].IsName():
		return toks[1].Text, 2
	case len(toks) > 3 && toks[1].Kind == token.Lparen && toks[2].IsName() && toks[3].Kind == token.Rparen:
		return toks[2].Text, 4
	}
	return "", 1
}

// A condExpr evaluates the integer expression of an #if by recursive descent.
type condExpr struct {
	toks   []Token
	end    Pos
	depth  int
	failed bool
	pos    Pos
	msg    string
}

func (e *condExpr) fail(t Token, format string, args ...any) {
	if e.failed {
		return
	}
	e.failed, e.pos, e.msg = true, t.Pos, fmt.Sprintf(format, args...)
}

func (e *condExpr) peek() Token {
	if len(e.toks) == 0 || e.failed {
		return Token{Kind: token.EOL, Pos: e.end}
	}
	return e.toks[0]
}

func (e *condExpr) got(k token.Kind) bool {
	if e.peek().Kind != k {
		return false
	}
	e.toks = e.toks[1:]
	return true
}

// conditional = binary [ "?" conditional ":" conditional ] . live is false for an
// operand that is not evaluated: a division by zero in it is not an error.
func (e *condExpr) conditional(live bool) int64 {
	if e.depth++; e.depth > maxNested {
		e.fail(e.peek(), "condition of #if nests more than %d deep", maxNested)
		return 0
	}
	defer func() { e.depth-- }()
	c := e.binary(1, live)
	if !e.got(token.Question) {
		return c
	}
	then := e.conditional(live && c != 0)
	if !e.got(token.Colon) {
		e.fail(e.peek(), "%s in the condition of #if, expected :", e.describe())
		return 0
	}
	els := e.conditional(live && c == 0)
	if c != 0 {
		return then
	}
	return els
}

func (e *condExpr) describe() string {
	t := e.peek()
	return t.describe()
}

// binary = unary { operator binary } , the operators of at least precedence prec.
func (e *condExpr) binary(prec int, live bool) int64 {
	// unary = { "!" | "~" | "-" | "+" } ( integer | name | "(" conditional ")" ) .
	var ops []token.Kind
	for k := e.peek().Kind; k == token.Not || k == token.Tilde || k == token.Minus || k == token.Plus; k = e.peek().Kind {
		ops = append(ops, k)
		e.toks = e.toks[1:]
	}
	x := e.primary(live)
	for i := len(ops) - 1; i >= 0; i-- {
		switch ops[i] {
		case token.Not:
			x = int64(btoi(x == 0))
		case token.Tilde:
			x = ^x
		case token.Minus:
			x = -x
		}
	}
	for {
		op, opPrec := binaryAt(e.toks)
		if opPrec < prec || e.failed {
			return x
		}
		at := e.toks[0]
		e.toks = e.toks[1:]
		if op == Shr {
			e.toks = e.toks[1:]
		}
		y := e.binary(opPrec+1, live && !(op == AndAnd && x == 0) && !(op == OrOr && x != 0))
		if live && (op == Div || op == Mod) && y == 0 {
			if !(x == 0 && e.failed) {
				e.fail(at, "division by zero in the condition of #if")
			}
			return 0
		}
		x = apply(op, x, y)
	}
}

// binaryAt returns the binary operator at the start of toks and its precedence, or
// 0 if there is none. Two adjacent > are one operator.
func binaryAt(toks []Token) (Operator, int) {
	if len(toks) == 0 {
		return NoOp, 0
	}
	if len(toks) > 1 && isShr(&toks[0], &toks[1]) {
		return Shr, shiftPrec
	}
	b := binaryOps[toks[0].Kind]
	return b.op, int(b.prec)
}

// isShr reports whether two tokens are the halves of >>.
func isShr(l, r *Token) bool {
	return l.Kind == token.Gtr && r.Kind == token.Gtr && r.flag&(spaced|bol) == 0
}

func apply(op Operator, x, y int64) int64 {
	switch op {
	case OrOr:
		return int64(btoi(x != 0 || y != 0))
	case AndAnd:
		return int64(btoi(x != 0 && y != 0))
	case Eql:
		return int64(btoi(x == y))
	case Neq:
		return int64(btoi(x != y))
	case Lss:
		return int64(btoi(x < y))
	case Leq:
		return int64(btoi(x <= y))
	case Gtr:
		return int64(btoi(x > y))
	case Geq:
		return int64(btoi(x >= y))
	case Or:
		return x | y
	case Xor:
		return x ^ y
	case And:
		return x & y
	case Shl:
		return x << (uint64(y) & 63)
	case Shr:
		return x >> (uint64(y) & 63)
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return x * y
	case Div:
		if y != 0 {
			return x / y
		}
	case Mod:
		if y != 0 {
			return x % y
		}
	}
	return 0
}

func (e *condExpr) primary(live bool) int64 {
	t := e.peek()
	switch {
	case t.Kind == token.Int:
		e.toks = e.toks[1:]
		v, ok := condInt(t.Text)
		if !ok {
			e.fail(t, "%s is not an integer that #if can compute with", t.describe())
		}
		return v
	case t.IsName(): // an undefined name
		e.toks = e.toks[1:]
		return 0
	case e.got(token.Lparen):
		x := e.conditional(live)
		if !e.got(token.Rparen) {
			e.fail(e.peek(), "%s in the condition of #if, expected )", e.describe())
		}
		return x
	}
	e.fail(t, "%s in the condition of #if, expected an integer", t.describe())
	return 0
}

// condInt returns the value of an integer in an #if. It accepts C's forms (leading
// 0 for octal, suffixes such as UL) and P4's.
func condInt(text string) (int64, bool) {
	if t := strings.TrimRight(text, "uUlL"); len(t) > 1 && t[0] == '0' && strings.Trim(t, "01234567") == "" {
		v, ok := new(big.Int).SetString(t, 8)
		return v.Int64(), ok && v.IsInt64()
	} else if isDecimal(t) {
		text = t
	}
	if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
		text = strings.TrimRight(text, "uUlL")
	}
	lit, err := parseInt(text)
	if err != "" || lit.value.BitLen() > 64 {
		return 0, false
	}
	return int64(lit.value.Uint64()), true
}
