package syntax

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Node is any part of the syntax tree. The tree does not change after parsing.
// Facts about it are stored in side tables keyed by node pointers.
type Node interface {
	// Pos returns the start of the node in the user's source. For text from a
	// macro, it is the position of the macro's use.
	Pos() Pos
	aNode()
}

// node holds a position; embedding it makes a type a Node.
type node struct{ pos Pos }

func (n *node) Pos() Pos { return n.pos }
func (*node) aNode()     {}

// An Expr is an expression or a type. One interface serves both, because types
// occur in expressions (E.member, hdr_t.minSizeInBits(), T(args)).
type Expr interface {
	Node
	aExpr()
}

type expr struct{ node }

func (*expr) aExpr() {}

func exprAt(pos Pos) expr { return expr{node{pos}} }

// A Decl is a declaration at top level, in a parser, control or extern, or in a
// statement list. Its position is after its annotations.
type Decl interface {
	Node
	// DeclName returns the declared name, or nil for an error or match_kind
	// declaration.
	DeclName() *Name
	aDecl()
}

type decl struct{ node }

func (*decl) aDecl() {}

func declAt(pos Pos) decl { return decl{node{pos}} }

// A Stmt is a statement of a control, action, function or parser state.
type Stmt interface {
	Node
	aStmt()
}

type stmt struct{ node }

func (*stmt) aStmt() {}

func stmtAt(pos Pos) stmt { return stmt{node{pos}} }

// A File is one preprocessed translation unit.
type File struct {
	Name  string
	Decls []Decl
}

// An Annotation is @name, @name(tokens) (Unstructured) or @name[...] (Structured).
type Annotation struct {
	Name *Name
	// Kind determines which of the fields below are set.
	Kind AnnotationKind
	// Tokens are the tokens between the parentheses (balanced). The Text of a
	// string literal includes the quotes.
	Tokens []Token
	// Exprs is the body of the list form of structured annotations. It is also the
	// body of an unstructured annotation that parses as an expression list, or nil
	// if it does not.
	Exprs []Expr
	// Fields is the body of a structured key-value annotation.
	Fields []*NamedExpr
	node
}

// An AnnotationKind distinguishes the forms of annotation.
type AnnotationKind uint8

// The kinds of annotation.
const (
	annotationPlain     AnnotationKind = iota // @name
	AnnotationBody                            // @name(…) and @pragma name …
	AnnotationExprs                           // @name[e, e] (also @name[])
	AnnotationKeyValues                       // @name[k=v, k=v]
)

// Annotations is the list before a declaration (after a key or entry).
type Annotations []*Annotation

// Get returns the first annotation called name, or nil.
func (as Annotations) Get(name string) *Annotation {
	return lists.First(as, func(a *Annotation) bool { return a.Name.Value == name })
}

// Text returns the string of the first annotation called name. ok is false if there
// is none or if its body is not a string.
func (as Annotations) Text(name string) (text string, ok bool) {
	if a := as.Get(name); a != nil {
		return a.Text()
	}
	return "", false
}

// Text returns the string of an annotation such as @name("x"). ok is false if its
// body is anything else.
func (a *Annotation) Text() (text string, ok bool) {
	if len(a.Exprs) != 1 {
		return "", false
	}
	s, ok := a.Exprs[0].(*StringLit)
	if !ok {
		return "", false
	}
	return s.Value, true
}

// Expressions and types.
type (
	// Name is the use or the declaration of an identifier. Global is set if it
	// starts with a dot.
	Name struct {
		Value  string
		Global bool
		expr
	}

	// IntLit is 10, 0xff, 8w10 or 4s7; Width is 0 for a literal without a width.
	IntLit struct {
		Value  *big.Int
		Width  int
		Signed bool // 8s10
		Text   string
		expr
	}

	// BoolLit is true or false.
	BoolLit struct {
		Value bool
		expr
	}

	// StringLit is a string with its escapes resolved.
	StringLit struct {
		Value string
		expr
	}

	// DefaultExpr is the keyword default as a select case or switch label.
	DefaultExpr struct{ expr }

	// DontCare is _ as a keyset, an argument or a type argument.
	DontCare struct{ expr }

	// Dots is ... in an initializer: the rest takes default values.
	Dots struct{ expr }

	// InvalidExpr is {#}, the invalid header.
	InvalidExpr struct{ expr }

	// ThisExpr is the keyword this.
	ThisExpr struct{ expr }

	// ParenExpr is (X). Unparen removes it.
	ParenExpr struct {
		X Expr
		expr
	}

	// UnaryExpr is one of ! ~ - + applied to X.
	UnaryExpr struct {
		Op Operator
		X  Expr
		expr
	}

	// BinaryExpr is X Op Y for all binary operators except range and mask.
	BinaryExpr struct {
		Op   Operator
		X, Y Expr
		expr
	}

	// RangeExpr is Lo .. Hi in a keyset or a for loop.
	RangeExpr struct {
		Lo, Hi Expr
		expr
	}

	// MaskExpr is X &&& Mask in a keyset.
	MaskExpr struct {
		X, Mask Expr
		expr
	}

	// CondExpr is Cond ? Then : Else.
	CondExpr struct {
		Cond, Then, Else Expr
		expr
	}

	// CastExpr is (Type) X.
	CastExpr struct {
		Type Expr
		X    Expr
		expr
	}

	// IndexExpr is X[Index].
	IndexExpr struct {
		X, Index Expr
		expr
	}

	// SliceExpr is X[Hi:Lo], or X[Lo+:Width] with Width set and Hi nil.
	SliceExpr struct {
		X      Expr
		Hi, Lo Expr
		Width  Expr
		expr
	}

	// SelectorExpr is X.Sel; X may be a type.
	SelectorExpr struct {
		X   Expr
		Sel *Name
		expr
	}

	// CallExpr is Fun<TypeArgs>(Args): a call of a function, method, action or
	// table. If Fun names a type, it is a constructor. The type arguments of a
	// constructor are in Fun, which is then a SpecializedType.
	CallExpr struct {
		Fun      Expr
		TypeArgs []Expr
		Args     []*Arg
		expr
	}

	// ListExpr is {a, b} and, in a keyset, (a, b). Keyset is set for the latter.
	ListExpr struct {
		Elems  []Expr // the last element may be a Dots
		Keyset bool
		expr
	}

	// RecordExpr is {f = a, g = b}; Dots is set if it ends in "...".
	RecordExpr struct {
		Fields []*NamedExpr
		Dots   *Dots
		expr
	}

	// SelectExpr is the select(...) of a parser's transition.
	SelectExpr struct {
		Args  []Expr
		Cases []*SelectCase
		expr
	}

	// BaseType is bool, error, bit, bit<Size>, int, int<Size>, varbit<Size>,
	// string, match_kind or void; Size is nil for the plain word.
	BaseType struct {
		Kind BaseKind
		Size Expr
		expr
	}

	// SpecializedType is Base<Args>.
	SpecializedType struct {
		Base *Name
		Args []Expr
		expr
	}

	// StackType is Elem[Size].
	StackType struct {
		Elem Expr
		Size Expr
		expr
	}

	// TupleType is tuple<Elems>.
	TupleType struct {
		Elems []Expr
		expr
	}

	// ListType is list<Elem>.
	ListType struct {
		Elem Expr
		expr
	}
)

// A BaseKind is one of the built-in type words.
type BaseKind uint8

// The built-in types.
const (
	BoolKind BaseKind = iota + 1
	ErrorKind
	BitKind
	IntKind
	VarbitKind
	StringKind
	MatchKindKind
	VoidKind
)

// An Arg is one argument; Name is set for name = value. Value may be *DontCare.
type Arg struct {
	Name  *Name
	Value Expr
	node
}

// A NamedExpr is name = value in a record or a structured annotation.
type NamedExpr struct {
	Name  *Name
	Value Expr
	node
}

// A SelectCase is one keyset : state of a select expression.
type SelectCase struct {
	Key  Expr // ListExpr with Keyset for (a, b); may be a DefaultExpr or DontCare
	Next *Name
	node
}

// A Direction is in, out, inout or none.
type Direction uint8

// The directions of a parameter.
const (
	NoDir Direction = iota
	In
	Out
	InOut
)

// A Param is a parameter of anything callable or constructible.
type Param struct {
	Annotations Annotations
	Dir         Direction
	Type        Expr
	Name        *Name
	Default     Expr // nil where there is none
	node
}

// Declarations.
type (
	// ConstDecl is const Type Name = Value.
	ConstDecl struct {
		Annotations Annotations
		Type        Expr
		Name        *Name
		Value       Expr
		decl
	}

	// VarDecl is Type Name [= Value].
	VarDecl struct {
		Annotations Annotations
		Type        Expr
		Name        *Name
		Value       Expr // nil where there is none
		decl
	}

	// InstDecl is Type(Args) Name [= { Body }]; Body implements abstract methods.
	// Type is a StackType if Name[Size] declares several instances.
	InstDecl struct {
		Annotations Annotations
		Type        Expr
		Args        []*Arg
		Name        *Name
		Body        []Decl // for FuncDecl and InstDecl
		HasBody     bool
		decl
	}

	// TypedefDecl is typedef Type Name, or type Type Name if New is set. Inline is
	// the declaration in typedef struct S {…} T (also for enums); Type is then its
	// Name.
	TypedefDecl struct {
		Annotations Annotations
		New         bool
		Inline      Decl
		Type        Expr
		Name        *Name
		decl
	}

	// StructDecl is a struct, header or header_union.
	StructDecl struct {
		Annotations Annotations
		Kind        StructKind
		Name        *Name
		TypeParams  []*Name
		Fields      []*Field
		decl
	}

	// EnumDecl is enum [Type] Name { Members }.
	EnumDecl struct {
		Annotations Annotations
		Type        Expr // nil for an enum without representation
		Name        *Name
		Members     []*EnumMember
		decl
	}

	// ErrorDecl is error { Members }, MatchKindDecl match_kind { Members }.
	ErrorDecl struct {
		Members []*Name
		decl
	}

	// MatchKindDecl is match_kind { Members }.
	MatchKindDecl struct {
		Members []*Name
		decl
	}

	// ExternDecl is an extern object type. Opaque is set for extern Name;
	ExternDecl struct {
		Annotations Annotations
		Name        *Name
		TypeParams  []*Name
		Methods     []*FuncDecl
		Opaque      bool
		decl
	}

	// FuncDecl is a function, an extern function, a method prototype or a
	// constructor prototype (Return nil). Body is nil for a prototype.
	FuncDecl struct {
		Annotations Annotations
		Extern      bool
		Abstract    bool
		Return      Expr // *BaseType of VoidKind for void
		Name        *Name
		TypeParams  []*Name
		Params      []*Param
		Body        *BlockStmt
		decl
	}

	// ActionDecl is action Name(Params) Body.
	ActionDecl struct {
		Annotations Annotations
		Name        *Name
		Params      []*Param
		Body        *BlockStmt
		decl
	}

	// Block is the common part of parsers and controls. TypeOnly is set for the
	// declaration of a type.
	Block struct {
		Annotations Annotations
		Name        *Name
		TypeParams  []*Name
		Params      []*Param
		CtorParams  []*Param
		Locals      []Decl
		TypeOnly    bool
	}

	// ParserDecl is a parser or a parser type.
	ParserDecl struct {
		Block
		States []*StateDecl
		decl
	}

	// ControlDecl is a control or a control type.
	ControlDecl struct {
		Block
		Body *BlockStmt
		decl
	}

	// PackageDecl is package Name(Params);
	PackageDecl struct {
		Annotations Annotations
		Name        *Name
		TypeParams  []*Name
		Params      []*Param
		decl
	}

	// ValueSetDecl is value_set<Type>(Size) Name;
	ValueSetDecl struct {
		Annotations Annotations
		Type        Expr
		Size        Expr
		Name        *Name
		decl
	}

	// StateDecl is a parser state. Transition is a *Name, a *SelectExpr, or nil if
	// there is no transition (an implicit reject).
	StateDecl struct {
		Annotations Annotations
		Name        *Name
		Stmts       []Stmt
		Transition  Expr
		decl
	}

	// TableDecl is a table. The fields of missing properties are nil or empty.
	TableDecl struct {
		Annotations Annotations
		Name        *Name
		Key         *TableKey
		Actions     *TableActions
		Entries     *TableEntries
		Props       []*Property // all other properties in order: default_action, size, implementation, …
		decl
	}
)

// Property returns the property called name, or nil if the table does not have it.
func (d *TableDecl) Property(name string) *Property {
	return lists.First(d.Props, func(p *Property) bool { return p.Name.Value == name })
}

// A StructKind distinguishes struct, header and header_union.
type StructKind uint8

// The struct-like types.
const (
	StructKindStruct StructKind = iota
	StructKindHeader
	StructKindUnion
)

// A Field is one field of a struct-like type.
type Field struct {
	Annotations Annotations
	Type        Expr
	Name        *Name
	node
}

// An EnumMember is Name [= Value].
type EnumMember struct {
	Name  *Name
	Value Expr
	node
}

// A TableKey is key = { Elems }.
type TableKey struct {
	Elems []*KeyElem
	node
}

// A KeyElem is X : Match Annotations;
type KeyElem struct {
	X           Expr
	Match       *Name
	Annotations Annotations
	node
}

// TableActions is actions = { Refs }.
type TableActions struct {
	Refs []*ActionRef
	node
}

// An ActionRef names an action, with arguments in parentheses if HasArgs is set.
type ActionRef struct {
	Annotations Annotations
	Name        *Name
	Args        []*Arg
	HasArgs     bool
	node
}

// TableEntries is [const] entries = { List }.
type TableEntries struct {
	Annotations Annotations
	Const       bool
	List        []*Entry
	node
}

// An Entry is [const] [priority = P :] Keys : Action Annotations;
type Entry struct {
	Const       bool
	Priority    Expr // nil where there is none
	Keys        []Expr
	Action      *ActionRef
	Annotations Annotations
	node
}

// A Property is [const] Name = Value; of a table. The value of default_action
// is a Name or a CallExpr.
type Property struct {
	Annotations Annotations
	Const       bool
	Name        *Name
	Value       Expr
	node
}

// Statements.
type (
	// EmptyStmt is a lone semicolon.
	EmptyStmt struct{ stmt }

	// DeclStmt is a declaration among statements (VarDecl, ConstDecl, InstDecl).
	DeclStmt struct {
		Decl Decl
		stmt
	}

	// AssignStmt is LHS = RHS, or LHS Op= RHS if Op is not NoOp.
	AssignStmt struct {
		Op       Operator
		LHS, RHS Expr
		stmt
	}

	// CallStmt is a call as a statement.
	CallStmt struct {
		Call *CallExpr
		stmt
	}

	// BlockStmt is { Stmts }.
	BlockStmt struct {
		Annotations Annotations
		Stmts       []Stmt
		Rbrace      Pos
		stmt
	}

	// IfStmt is if (Cond) Then else Else; Else is nil if there is none.
	IfStmt struct {
		Cond       Expr
		Then, Else Stmt
		stmt
	}

	// SwitchStmt is switch (X) { Cases }.
	SwitchStmt struct {
		X     Expr
		Cases []*SwitchCase
		stmt
	}

	// ForStmt is for (Init; Cond; Post) Body.
	ForStmt struct {
		Annotations Annotations
		Init        []Stmt
		Cond        Expr
		Post        []Stmt
		Body        Stmt
		stmt
	}

	// ForInStmt is for (Var in Coll) Body; Coll may be a RangeExpr.
	ForInStmt struct {
		Annotations Annotations
		Var         *VarDecl
		Coll        Expr
		Body        Stmt
		stmt
	}

	// ReturnStmt is return [Value].
	ReturnStmt struct {
		Value Expr
		stmt
	}

	// ExitStmt is exit.
	ExitStmt struct{ stmt }

	// BreakStmt is break.
	BreakStmt struct{ stmt }

	// ContinueStmt is continue.
	ContinueStmt struct{ stmt }
)

// A SwitchCase is Label : Body; Body is nil if the case falls through to the next.
type SwitchCase struct {
	Label Expr // DefaultExpr for default
	Body  *BlockStmt
	node
}

// DeclName returns the declared name.
func (d *ConstDecl) DeclName() *Name     { return d.Name }
func (d *VarDecl) DeclName() *Name       { return d.Name } // DeclName returns the declared name.
func (d *InstDecl) DeclName() *Name      { return d.Name } // DeclName returns the declared name.
func (d *TypedefDecl) DeclName() *Name   { return d.Name } // DeclName returns the declared name.
func (d *StructDecl) DeclName() *Name    { return d.Name } // DeclName returns the declared name.
func (d *EnumDecl) DeclName() *Name      { return d.Name } // DeclName returns the declared name.
func (d *ErrorDecl) DeclName() *Name     { return nil }    // DeclName returns nil: the declaration has no name of its own.
func (d *MatchKindDecl) DeclName() *Name { return nil }    // DeclName returns nil: the declaration has no name of its own.
func (d *ExternDecl) DeclName() *Name    { return d.Name } // DeclName returns the declared name.
func (d *FuncDecl) DeclName() *Name      { return d.Name } // DeclName returns the declared name.
func (d *ActionDecl) DeclName() *Name    { return d.Name } // DeclName returns the declared name.
func (d *ParserDecl) DeclName() *Name    { return d.Name } // DeclName returns the declared name.
func (d *ControlDecl) DeclName() *Name   { return d.Name } // DeclName returns the declared name.
func (d *PackageDecl) DeclName() *Name   { return d.Name } // DeclName returns the declared name.
func (d *ValueSetDecl) DeclName() *Name  { return d.Name } // DeclName returns the declared name.
func (d *StateDecl) DeclName() *Name     { return d.Name } // DeclName returns the declared name.
func (d *TableDecl) DeclName() *Name     { return d.Name } // DeclName returns the declared name.

// Unparen strips parentheses.
func Unparen(x Expr) Expr {
	for {
		p, ok := x.(*ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}

// An Operator is a unary, binary or compound-assignment operator.
type Operator uint8

// The operators.
const (
	NoOp   Operator = iota
	Not             // !
	Compl           // ~
	Neg             // - (unary)
	Plus            // + (unary)
	Mul             // *
	Div             // /
	Mod             // %
	Add             // +
	Sub             // -
	SatAdd          // |+|
	SatSub          // |-|
	Shl             // <<
	Shr             // >>
	Lss             // <
	Leq             // <=
	Gtr             // >
	Geq             // >=
	Eql             // ==
	Neq             // !=
	And             // &
	Xor             // ^
	Or              // |
	Concat          // ++
	AndAnd          // &&
	OrOr            // ||
)
