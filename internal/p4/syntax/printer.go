package syntax

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// Print writes the program in canonical form: macros and includes are expanded;
// comments, directives and the layout of the source are lost. The output parses to
// the same tree.
func Print(w io.Writer, f *File) error {
	p := &printer{}
	for i, d := range f.Decls {
		if i > 0 && (!oneLine(d) || !oneLine(f.Decls[i-1])) {
			p.b.WriteByte('\n')
		}
		p.decl(d)
		p.b.WriteByte('\n')
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// String returns the canonical text of a node on one line.
func String(n Node) string {
	if isNil(n) {
		return ""
	}
	p := &printer{flat: true}
	p.node(n)
	return p.b.String()
}

// Head returns the canonical text of a node on one line, cut off after about limit
// bytes.
func Head(n Node, limit int) string {
	if isNil(n) {
		return ""
	}
	p := &printer{flat: true, limit: limit}
	p.upTo(n)
	return p.b.String()
}

func (p *printer) upTo(n Node) {
	defer func() {
		if r := recover(); r != nil && r != errLong {
			panic(r)
		}
	}()
	p.node(n)
}

// errLong stops a printer at its limit.
var errLong = errors.New("the text is longer than wanted")

// A printer builds canonical text.
type printer struct {
	b      strings.Builder
	indent int
	flat   bool // print everything on one line
	limit  int  // if not 0, print no node after this many bytes
}

// print writes strings unchanged and nodes in canonical form.
func (p *printer) print(args ...any) {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			p.b.WriteString(a)
		case Node:
			p.node(a)
		}
	}
}

// line starts a new line. In flat mode, it writes a space instead.
func (p *printer) line() {
	if p.flat {
		p.b.WriteByte(' ')
		return
	}
	p.b.WriteByte('\n')
	for range p.indent {
		p.b.WriteString("    ")
	}
}

// braces writes n lines between braces, each with the function line.
func (p *printer) braces(n int, line func(i int)) {
	p.print("{")
	p.indent++
	for i := range n {
		p.line()
		line(i)
	}
	p.indent--
	if n > 0 {
		p.line()
	}
	p.print("}")
}

// node writes any node.
func (p *printer) node(n Node) {
	if p.limit > 0 && p.b.Len() > p.limit {
		panic(errLong)
	}
	switch n := n.(type) {
	case Expr:
		p.expr(n, condPrec-1)
	case Stmt:
		p.stmt(n)
	case Decl:
		p.decl(n)
	case *Annotation:
		if !balanced(n.Tokens) { // only an @pragma can have unbalanced tokens
			p.print("@pragma ", n.Name, " ", spell(n.Tokens))
			p.line()
			return
		}
		p.print("@", n.Name)
		switch n.Kind {
		case AnnotationBody:
			p.print("(", spell(n.Tokens), ")")
		case AnnotationExprs:
			p.print("[")
			commaList(p, n.Exprs)
			p.print("]")
		case AnnotationKeyValues:
			p.print("[")
			commaList(p, n.Fields)
			p.print("]")
		}
	case *Arg:
		if n.Name != nil {
			p.print(n.Name, " = ")
		}
		p.print(n.Value)
	case *NamedExpr:
		p.print(n.Name, " = ", n.Value)
	case *Param:
		p.annotations(n.Annotations, " ")
		p.print([]string{"", "in ", "out ", "inout "}[n.Dir], n.Type, " ", n.Name)
		if n.Default != nil {
			p.print(" = ", n.Default)
		}
	case *Field:
		p.annotations(n.Annotations, " ")
		p.print(n.Type, " ", n.Name, ";")
	case *EnumMember:
		p.print(n.Name)
		if n.Value != nil {
			p.print(" = ", n.Value)
		}
	case *SelectCase:
		p.print(n.Key, ": ", n.Next, ";")
	case *SwitchCase:
		p.print(n.Label, ":")
		if n.Body != nil {
			p.print(" ", n.Body)
		}
	default:
		p.tablePart(n)
	}
}

// commaList writes nodes separated by commas.
func commaList[N Node](p *printer, nodes []N) {
	for i, n := range nodes {
		if i > 0 {
			p.print(", ")
		}
		p.node(n)
	}
}

// condPrec is the precedence of ?:, lower than every binary operator's.
const condPrec = 0

// expr writes x, in parentheses if its precedence is below prec.
func (p *printer) expr(x Expr, prec int) {
	if precedence(x) < prec {
		p.print("(", x, ")")
		return
	}
	switch x := x.(type) {
	case *Name:
		if x.Global {
			p.print(".")
		}
		p.print(x.Value)
	case *IntLit:
		p.print(x.spelling())
	case *BoolLit:
		p.print([]string{"false", "true"}[btoi(x.Value)])
	case *StringLit:
		p.print(quote(x.Value))
	case *DefaultExpr:
		p.print("default")
	case *DontCare:
		p.print("_")
	case *Dots:
		p.print("...")
	case *InvalidExpr:
		p.print("{#}")
	case *ThisExpr:
		p.print("this")
	case *ParenExpr:
		p.print("(", x.X, ")")
	case *UnaryExpr:
		p.print(x.Op.String())
		if inner, ok := x.X.(*UnaryExpr); ok && inner.Op == Plus && x.Op == Plus {
			p.print(" ") // without the space, ++ would be another operator
		}
		p.expr(x.X, unaryPrec)
	case *CastExpr:
		p.print("(", x.Type, ")")
		p.expr(x.X, unaryPrec)
	case *BinaryExpr:
		p.binary(x)
	case *CondExpr:
		p.expr(x.Cond, condPrec)
		p.print(" ? ", x.Then, " : ")
		p.expr(x.Else, condPrec+1)
	case *RangeExpr:
		p.print(x.Lo, " .. ", x.Hi)
	case *MaskExpr:
		p.print(x.X, " &&& ", x.Mask)
	case *SelectExpr:
		p.print("select(")
		commaList(p, x.Args)
		p.print(") ")
		p.braces(len(x.Cases), func(i int) { p.print(x.Cases[i]) })
	default:
		p.postfix(x)
	}
}

// precedence returns the precedence of the operator of x.
func precedence(x Expr) int {
	switch x := x.(type) {
	case *RangeExpr, *MaskExpr:
		return condPrec - 1
	case *CondExpr:
		return condPrec
	case *BinaryExpr:
		return x.Op.precedence()
	case *UnaryExpr, *CastExpr:
		return unaryPrec
	}
	return unaryPrec + 1
}

func (op Operator) precedence() int {
	if op == Shr {
		return shiftPrec
	}
	for _, b := range binaryOps {
		if b.op == op {
			return int(b.prec)
		}
	}
	return unaryPrec
}

// spelling returns the literal as it was written, or a text for its value.
func (x *IntLit) spelling() string {
	if x.Text != "" || x.Value == nil {
		return x.Text
	}
	// The literal was created without a spelling.
	text := x.Value.String()
	if x.Width == 0 {
		return text
	}
	letter := "w"
	if x.Signed {
		letter = "s"
	}
	return strconv.Itoa(x.Width) + letter + text
}

// binary writes x without recursion into its left operand, where long chains nest.
func (p *printer) binary(x *BinaryExpr) {
	chain := []*BinaryExpr{x}
	for {
		last := chain[len(chain)-1]
		left, ok := last.X.(*BinaryExpr)
		if !ok || left.Op.precedence() < last.Op.precedence() {
			break
		}
		chain = append(chain, left)
	}
	first := chain[len(chain)-1]
	p.expr(first.X, first.Op.precedence())
	for i := len(chain) - 1; i >= 0; i-- {
		p.print(" ", chain[i].Op.String(), " ")
		p.expr(chain[i].Y, chain[i].Op.precedence()+1)
	}
}

// postfix writes operands that need no parentheses: members, calls, lists and
// types.
func (p *printer) postfix(x Expr) {
	switch x := x.(type) {
	case *IndexExpr:
		p.expr(x.X, unaryPrec+1)
		p.print("[", x.Index, "]")
	case *SliceExpr:
		p.expr(x.X, unaryPrec+1)
		if x.Width != nil {
			p.print("[", x.Lo, "+:", x.Width, "]")
		} else {
			p.print("[", x.Hi, ":", x.Lo, "]")
		}
	case *SelectorExpr:
		p.expr(x.X, unaryPrec+1)
		p.print(".", x.Sel)
	case *CallExpr:
		p.expr(x.Fun, unaryPrec+1)
		if x.TypeArgs != nil {
			p.typeArgs(x.TypeArgs)
		}
		p.args(x.Args)
	case *ListExpr:
		open, end := "{", "}"
		if x.Keyset {
			open, end = "(", ")"
		}
		p.print(open)
		commaList(p, x.Elems)
		p.print(end)
	case *RecordExpr:
		p.print("{")
		commaList(p, x.Fields)
		if x.Dots != nil {
			p.print(", ...")
		}
		p.print("}")
	default:
		p.typeExpr(x)
	}
}

func (p *printer) args(args []*Arg) {
	p.print("(")
	commaList(p, args)
	p.print(")")
}

func (p *printer) typeArgs(args []Expr) {
	p.print("<")
	commaList(p, args)
	p.print(">")
}

var baseWords = [...]string{
	BoolKind: "bool", ErrorKind: "error", BitKind: "bit", IntKind: "int", VarbitKind: "varbit",
	StringKind: "string", MatchKindKind: "match_kind", VoidKind: "void",
}

// String returns the keyword of the type.
func (k BaseKind) String() string { return baseWords[k] }

func (p *printer) typeExpr(x Expr) {
	switch x := x.(type) {
	case *BaseType:
		p.print(x.Kind.String())
		if x.Size != nil {
			p.print("<")
			p.expr(x.Size, sizePrec(x.Size))
			p.print(">")
		}
	case *SpecializedType:
		p.print(x.Base)
		p.typeArgs(x.Args)
	case *StackType:
		p.print(x.Elem, "[", x.Size, "]")
	case *TupleType:
		p.print("tuple")
		p.typeArgs(x.Elems)
	case *ListType:
		p.print("list<", x.Elem, ">")
	}
}

// sizePrec returns the precedence that puts x in parentheses if it contains the
// operator >, which would close the type.
func sizePrec(x Expr) int {
	for {
		b, ok := x.(*BinaryExpr)
		if !ok {
			return condPrec
		}
		if b.Op == Gtr || b.Op == Shr {
			return unaryPrec
		}
		if sizePrec(b.Y) > 0 {
			return unaryPrec
		}
		x = b.X
	}
}

// annotations writes each annotation, followed by sep.
func (p *printer) annotations(as Annotations, sep string) {
	for _, a := range as {
		p.print(a)
		if sep == "\n" {
			p.line()
		} else {
			p.print(sep)
		}
	}
}

// balanced reports whether all parentheses are paired.
func balanced(toks []Token) bool {
	depth := 0
	for _, t := range toks {
		switch t.Kind {
		case token.Lparen:
			depth++
		case token.Rparen:
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0
}

// annotationsBehind writes the annotations that come after a key or an entry.
func (p *printer) annotationsBehind(as Annotations) {
	for _, a := range as {
		p.print(" ", a)
	}
}
