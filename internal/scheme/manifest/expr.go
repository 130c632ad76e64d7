package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Expr is a number that may depend on the network: 64, 0x812, 10.0.1.1, 08:00:00:00:01:11,
// $port, "$paths > 1", "$port(s1)". The zero value is an omitted expression.
//
//	expr    = or [ "?" expr ":" expr ] .
//	or      = and { "||" and } .
//	and     = compare { "&&" compare } .
//	compare = sum [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) sum ] .
//	sum     = product { ( "+" | "-" | "|" | "^" ) product } .
//	product = unary { ( "*" | "%" | "&" | "<<" | ">>" ) unary } .
//	unary   = [ "!" | "-" ] primary .
//	primary = number | address | fact | fact "(" node ")" | "(" expr ")" .
//
// A fact begins with a $; a node is the name of a switch or host. There is no division, because a
// slash separates a prefix from its length.
type Expr struct {
	text string
	root term
}

// A Lookup returns the value of a fact. node names the node that some facts refer to.
type Lookup func(f Fact, node string) (int64, error)

// A term is a part of an Expr.
type term interface {
	eval(Lookup) (int64, error)
	// walk calls see for every fact.
	walk(see func(f Fact, node string))
}

// ParseExpr reads an expression.
func ParseExpr(text string) (Expr, error) {
	p := &exprParser{}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		t := token().FindString(rest)
		if t == "" {
			return Expr{}, fmt.Errorf("%q: want a number, an address, or a fact such as $port", rest)
		}
		p.tokens = append(p.tokens, t)
		rest = rest[len(t):]
		if len(p.tokens) > maxTokens {
			return Expr{}, fmt.Errorf("has more than %d parts", maxTokens)
		}
	}
	root, err := p.expr()
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("%q is not expected there", p.peek())
	}
	if err != nil && len(p.tokens) > 1 {
		err = fmt.Errorf("%q: %w", text, err)
	}
	if err != nil {
		return Expr{}, err
	}
	return Expr{text: strings.TrimSpace(text), root: root}, nil
}

// IsZero reports whether there is no expression.
func (e Expr) IsZero() bool { return e.root == nil }

// Equal reports whether two expressions are written alike.
func (e Expr) Equal(other Expr) bool { return e.text == other.text }

// String returns the expression as written.
func (e Expr) String() string { return e.text }

// Eval returns the value of the expression; an empty expression is 0.
func (e Expr) Eval(facts Lookup) (int64, error) {
	if e.root == nil {
		return 0, nil
	}
	v, err := e.root.eval(facts)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", e.text, err)
	}
	return v, nil
}

// facts calls see for every fact in the expression.
func (e Expr) facts(see func(f Fact, node string)) {
	if e.root != nil {
		e.root.walk(see)
	}
}

// Address returns the value as an IPv6 address, if the expression is a number of more than 64
// bits.
func (e Expr) Address() (netip.Addr, bool) {
	a, ok := e.root.(address)
	return netip.Addr(a), ok
}

// Fact returns the fact and its node, if the expression is a single fact.
func (e Expr) Fact() (f Fact, node string, ok bool) {
	one, ok := e.root.(fact)
	return one.name, one.node, ok
}

// Number returns the number, if the expression contains no facts.
func (e Expr) Number() (uint64, bool) {
	constant := e.root != nil
	e.facts(func(Fact, string) { constant = false })
	if !constant {
		return 0, false
	}
	v, err := e.Eval(nil)
	return uint64(v), err == nil
}

// UnmarshalText reads an expression.
func (e *Expr) UnmarshalText(text []byte) (err error) {
	*e, err = ParseExpr(string(text))
	return err
}

// MarshalText writes the expression as it was written.
func (e Expr) MarshalText() ([]byte, error) { return []byte(e.text), nil }

type exprParser struct {
	tokens []string
	at     int
}

// token matches a token of an expression. Addresses are tried before the numbers that they start
// with, and long operators before short ones.
var token = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` +
		`[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}|[0-9a-fA-F:]*::[0-9a-fA-F:]*|` +
		`[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){5}|` +
		`\d+\.\d+\.\d+\.\d+|` +
		`0[xX][0-9a-fA-F]+|0[bB][01]+|\d+|` +
		`\$[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*(?:\([^()]*\))?|` +
		`\|\||&&|==|!=|<=|>=|<<|>>|[-+|^*%&<>!?:()])`)
})

// maxTokens limits the depth of an expression.
const maxTokens = 500

func (p *exprParser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

// got consumes the next token if it is in the list, and returns it.
func (p *exprParser) got(list ...string) string {
	for _, t := range list {
		if t == p.peek() && t != "" {
			p.at++
			return t
		}
	}
	return ""
}

func (p *exprParser) expr() (term, error) {
	condition, err := p.binary(0)
	if err != nil || p.got("?") == "" {
		return condition, err
	}
	yes, err := p.expr()
	if err != nil {
		return nil, err
	}
	if p.got(":") == "" {
		return nil, errors.New("? wants a : with the other value")
	}
	no, err := p.expr()
	return choice{condition, yes, no}, err
}

// levels lists the binary operators by precedence, lowest first.
var levels = [][]string{
	{"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-", "|", "^"}, {"*", "%", "&", "<<", ">>"},
}

func (p *exprParser) binary(level int) (term, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op := p.got(levels[level]...)
		if op == "" {
			break
		}
		var right term
		right, err = p.binary(level + 1)
		left = operation{op, left, right}
	}
	return left, err
}

func (p *exprParser) unary() (term, error) {
	if op := p.got("!", "-"); op != "" {
		x, err := p.unary()
		if op == "-" {
			return operation{"-", constant(0), x}, err
		}
		return operation{"==", x, constant(0)}, err
	}
	t := p.peek()
	p.at++
	switch {
	case t == "":
		return nil, errors.New("a value is missing at the end")
	case t == "(":
		x, err := p.expr()
		if err == nil && p.got(")") == "" {
			err = errors.New("a ) is missing")
		}
		return x, err
	case t[0] >= '0' && t[0] <= '9' || strings.Contains(t, ":") && len(t) > 1:
		return literal(t)
	case t[0] == '$':
		name, of, _ := strings.Cut(strings.TrimSuffix(t[1:], ")"), "(")
		if names := wordNames(Fact("")); !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no fact $%s%s", name, plain.Meant(name, names))
		}
		return fact{Fact(name), strings.TrimSpace(of)}, nil
	}
	return nil, fmt.Errorf("%q stands where a value is expected", t)
}

// literal parses a number, an address or a MAC address.
func literal(t string) (term, error) {
	if ip, err := netip.ParseAddr(t); err == nil && ip.Is6() {
		return address(ip), nil
	} else if err == nil {
		b := ip.As4()
		return constant(binary.BigEndian.Uint32(b[:])), nil
	}
	if strings.Contains(t, ":") {
		var v int64
		for part := range strings.SplitSeq(t, ":") {
			b, _ := strconv.ParseUint(part, 16, 8) // the token has two hexadecimal digits at most
			v = v<<8 | int64(b)
		}
		return constant(v), nil
	}
	v, err := strconv.ParseUint(t, 0, 64)
	if err != nil {
		v, err = strconv.ParseUint(t, 10, 64)
	}
	if err == nil {
		return constant(v), nil
	}
	n, ok := new(big.Int).SetString(t, 0)
	if !ok || n.BitLen() > 128 {
		return nil, fmt.Errorf("%s is no number, or has more than 128 bits", t)
	}
	return address(netip.AddrFrom16([16]byte(n.FillBytes(make([]byte, 16))))), nil
}

type constant int64

func (c constant) eval(Lookup) (int64, error) { return int64(c), nil }
func (c constant) walk(func(Fact, string))    {}

// An address is an IPv6 address, or another number of more than 64 bits. It is too wide for
// calculations.
type address netip.Addr

func (a address) eval(Lookup) (int64, error) {
	return 0, fmt.Errorf("%v has more than 64 bits: it must be a whole expression, for a wide field", netip.Addr(a))
}
func (a address) walk(func(Fact, string)) {}

type fact struct {
	name Fact
	node string
}

func (f fact) eval(facts Lookup) (int64, error) { return facts(f.name, f.node) }
func (f fact) walk(see func(Fact, string))      { see(f.name, f.node) }

type choice struct{ condition, yes, no term }

func (c choice) eval(facts Lookup) (int64, error) {
	v, err := c.condition.eval(facts)
	switch {
	case err != nil:
		return 0, err
	case v != 0:
		return c.yes.eval(facts)
	}
	return c.no.eval(facts)
}

func (c choice) walk(see func(Fact, string)) {
	for _, t := range []term{c.condition, c.yes, c.no} {
		t.walk(see)
	}
}

type operation struct {
	op          string
	left, right term
}

func (o operation) walk(see func(Fact, string)) {
	o.left.walk(see)
	o.right.walk(see)
}

func (o operation) eval(facts Lookup) (int64, error) {
	a, err := o.left.eval(facts)
	if err != nil {
		return 0, err
	}
	// If the left side decides, the right side is not evaluated, as it may have no value.
	if o.op == "&&" && a == 0 || o.op == "||" && a != 0 {
		return truth(a != 0), nil
	}
	b, err := o.right.eval(facts)
	if err != nil {
		return 0, err
	}
	switch o.op {
	case "&&", "||":
		return truth(b != 0), nil
	case "==":
		return truth(a == b), nil
	case "!=":
		return truth(a != b), nil
	case "<":
		return truth(a < b), nil
	case "<=":
		return truth(a <= b), nil
	case ">":
		return truth(a > b), nil
	case ">=":
		return truth(a >= b), nil
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "|":
		return a | b, nil
	case "^":
		return a ^ b, nil
	case "*":
		return a * b, nil
	case "&":
		return a & b, nil
	case "%":
		if b == 0 {
			return 0, errors.New("the remainder of a division by 0")
		}
		return a % b, nil
	case "<<", ">>":
		if b < 0 || b > 63 {
			return 0, fmt.Errorf("a shift by %d", b)
		}
		if o.op == "<<" {
			return a << b, nil
		}
		return a >> b, nil
	}
	panic("operator " + o.op) // the parser accepts no other operators
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
