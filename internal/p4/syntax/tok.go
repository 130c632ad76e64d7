package syntax

import "github.com/p4lb/p4lb/internal/p4/token"

// A Token is a lexical token; Text is its spelling.
type Token struct {
	Text string
	Pos  Pos
	Kind token.Kind
	flag tokenFlag
}

// IsName reports whether the token is an identifier or a keyword.
func (t Token) IsName() bool { return t.Kind == token.Name || t.Kind >= token.Abstract }

// IsInt reports whether the token is an integer literal.
func (t Token) IsInt() bool { return t.Kind == token.Int }

// IsString reports whether the token is a string literal; its Text includes the
// quotes.
func (t Token) IsString() bool { return t.Kind == token.String }

// A tokenFlag describes the surroundings of a token in the text.
type tokenFlag uint8

const (
	bol       tokenFlag = 1 << iota // first on its line
	spaced                          // white space or a comment before it
	fromMacro                       // token of a macro's body; Pos is the position of the macro's use
	painted                         // a macro's own name inside its expansion: never expanded again
)

// describe returns a description of a token for messages.
func (t *Token) describe() string {
	switch k := t.Kind; {
	case k == token.Name:
		return "name " + t.Text
	case k == token.Int, k == token.Illegal:
		return k.String() + " " + clip(t.Text)
	case k == token.String, k == token.EOF, k == token.EOL:
		return k.String()
	case k >= token.Abstract:
		return "keyword " + t.Text
	}
	return t.Kind.String()
}

// clip shortens a spelling that is too long for a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:37] + "..."
	}
	return s
}

// binaryOps maps tokens to binary operators and their precedences; precedence 0
// means no operator.
var binaryOps = [token.Count]struct {
	op   Operator
	prec uint8
}{
	token.OrOr: {OrOr, 1}, token.AndAnd: {AndAnd, 2}, token.Eql: {Eql, 3}, token.Neq: {Neq, 3},
	token.Lss: {Lss, 4}, token.Leq: {Leq, 4}, token.Gtr: {Gtr, 4}, token.Geq: {Geq, 4},
	token.Or: {Or, 5}, token.Xor: {Xor, 6}, token.And: {And, 7}, token.Shl: {Shl, 8},
	token.Concat: {Concat, 9}, token.Plus: {Add, 9}, token.Minus: {Sub, 9}, token.SatPlus: {SatAdd, 9}, token.SatMinus: {SatSub, 9},
	token.Star: {Mul, 10}, token.Slash: {Div, 10}, token.Percent: {Mod, 10},
}

const (
	shiftPrec = 8
	unaryPrec = 11
)

// assignOps maps the assignment tokens to the operator of the compound form.
var assignOps = [token.Count]Operator{
	token.MulAssign: Mul, token.DivAssign: Div, token.ModAssign: Mod, token.AddAssign: Add, token.SubAssign: Sub,
	token.SatAddAssign: SatAdd, token.SatSubAssign: SatSub, token.ShlAssign: Shl, token.ShrAssign: Shr,
	token.AndAssign: And, token.XorAssign: Xor, token.OrAssign: Or,
}

var operatorText = [...]string{
	NoOp: "", Not: "!", Compl: "~", Neg: "-", Plus: "+", Mul: "*", Div: "/", Mod: "%",
	Add: "+", Sub: "-", SatAdd: "|+|", SatSub: "|-|", Shl: "<<", Shr: ">>", Lss: "<", Leq: "<=",
	Gtr: ">", Geq: ">=", Eql: "==", Neq: "!=", And: "&", Xor: "^", Or: "|", Concat: "++",
	AndAnd: "&&", OrOr: "||",
}

// String returns the operator's spelling.
func (op Operator) String() string { return operatorText[op] }
