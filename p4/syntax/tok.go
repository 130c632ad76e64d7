package syntax

// A Token is one lexical element; Text is its spelling.
type Token struct {
	Text string
	Pos  Pos
	Kind Kind
	flag tokenFlag
}

// IsName reports whether the token is an identifier or a keyword.
func (t Token) IsName() bool { return t.Kind == _Name || t.Kind >= _Abstract }

// IsInt reports whether the token is an integer literal.
func (t Token) IsInt() bool { return t.Kind == _Int }

// IsString reports whether the token is a string literal; its Text keeps the quotes.
func (t Token) IsString() bool { return t.Kind == _String }

// A tokenFlag tells how a token stood in the text.
type tokenFlag uint8

const (
	bol       tokenFlag = 1 << iota // first on its line
	spaced                          // white space or a comment before it
	fromMacro                       // text of a macro; Pos is the macro's use
	painted                         // a macro's own name inside its expansion: never expanded again
)

// A Kind is the class of a token: each operator, delimiter and keyword has its own.
type Kind uint8

const (
	_EOF Kind = iota
	_EOL      // end of a directive's line
	_Illegal
	_Name
	_Int
	_String

	// Delimiters and marks.
	_At
	_Lparen
	_Rparen
	_Lbrack
	_Rbrack
	_Lbrace
	_Rbrace
	_Invalid // {#}
	_Semi
	_Comma
	_Colon
	_PlusColon // +:
	_Question
	_Dot
	_DotDot
	_DotDotDot
	_Mask // &&&
	_Hash
	_HashHash
	_Backslash

	// Operators.
	_Not
	_Tilde
	_Star
	_Slash
	_Percent
	_Plus
	_Minus
	_SatPlus
	_SatMinus
	_Shl
	_Lss
	_Leq
	_Gtr // >> is two of them side by side, as in bit<bit<8>>
	_Geq
	_Eql
	_Neq
	_And
	_Xor
	_Or
	_Concat
	_AndAnd
	_OrOr

	// Assignments.
	_Assign
	_MulAssign
	_DivAssign
	_ModAssign
	_AddAssign
	_SubAssign
	_SatAddAssign
	_SatSubAssign
	_ShlAssign
	_ShrAssign
	_AndAssign
	_XorAssign
	_OrAssign

	// Keywords; _Abstract must be the first.
	_Abstract
	_Action
	_Actions
	_Apply
	_Bit
	_Bool
	_Break
	_Const
	_Continue
	_Control
	_Default
	_Else
	_Entries
	_Enum
	_Error
	_Exit
	_Extern
	_False
	_For
	_Header
	_HeaderUnion
	_If
	_In
	_InOut
	_IntWord
	_Key
	_List
	_MatchKind
	_Out
	_Package
	_Parser
	_Priority
	_Return
	_Select
	_State
	_StringWord
	_Struct
	_Switch
	_Table
	_This
	_Transition
	_True
	_Tuple
	_Type
	_Typedef
	_Underscore
	_ValueSet
	_Varbit
	_Void

	kindCount
)

var kindText = [kindCount]string{
	_EOF: "end of file", _EOL: "end of line", _Illegal: "character", _Name: "name",
	_Int: "integer", _String: "string",
	_At: "@", _Lparen: "(", _Rparen: ")", _Lbrack: "[", _Rbrack: "]", _Lbrace: "{", _Rbrace: "}",
	_Invalid: "{#}", _Semi: ";", _Comma: ",", _Colon: ":", _PlusColon: "+:", _Question: "?",
	_Dot: ".", _DotDot: "..", _DotDotDot: "...", _Mask: "&&&", _Hash: "#", _HashHash: "##",
	_Backslash: "\\",
	_Not:       "!", _Tilde: "~", _Star: "*", _Slash: "/", _Percent: "%", _Plus: "+", _Minus: "-",
	_SatPlus: "|+|", _SatMinus: "|-|", _Shl: "<<", _Lss: "<", _Leq: "<=", _Gtr: ">", _Geq: ">=",
	_Eql: "==", _Neq: "!=", _And: "&", _Xor: "^", _Or: "|", _Concat: "++", _AndAnd: "&&", _OrOr: "||",
	_Assign: "=", _MulAssign: "*=", _DivAssign: "/=", _ModAssign: "%=", _AddAssign: "+=",
	_SubAssign: "-=", _SatAddAssign: "|+|=", _SatSubAssign: "|-|=", _ShlAssign: "<<=",
	_ShrAssign: ">>=", _AndAssign: "&=", _XorAssign: "^=", _OrAssign: "|=",
	_Abstract: "abstract", _Action: "action", _Actions: "actions", _Apply: "apply", _Bit: "bit",
	_Bool: "bool", _Break: "break", _Const: "const", _Continue: "continue", _Control: "control",
	_Default: "default", _Else: "else", _Entries: "entries", _Enum: "enum", _Error: "error",
	_Exit: "exit", _Extern: "extern", _False: "false", _For: "for", _Header: "header",
	_HeaderUnion: "header_union", _If: "if", _In: "in", _InOut: "inout", _IntWord: "int",
	_Key: "key", _List: "list", _MatchKind: "match_kind", _Out: "out", _Package: "package",
	_Parser: "parser", _Priority: "priority", _Return: "return", _Select: "select",
	_State: "state", _StringWord: "string", _Struct: "struct", _Switch: "switch",
	_Table: "table", _This: "this", _Transition: "transition", _True: "true", _Tuple: "tuple",
	_Type: "type", _Typedef: "typedef", _Underscore: "_", _ValueSet: "value_set",
	_Varbit: "varbit", _Void: "void",
}

func (k Kind) String() string { return kindText[k] }

// describe names a token for a message.
func (t *Token) describe() string {
	switch k := t.Kind; {
	case k == _Name:
		return "name " + t.Text
	case k == _Int, k == _Illegal:
		return k.String() + " " + clip(t.Text)
	case k == _String, k == _EOF, k == _EOL:
		return k.String()
	case k >= _Abstract:
		return "keyword " + t.Text
	}
	return t.Kind.String()
}

// clip shortens a spelling that would swamp its message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:37] + "..."
	}
	return s
}

// keywords is a perfect hash of the keywords, sized and salted so that no two
// of them collide; a test holds it to that.
var keywords = makeKeywords()

func hashWord(s string) uint8 {
	n := len(s)
	return uint8(uint(s[0]) + uint(s[n/2])*7 + uint(s[n-1])*35 + uint(n)*29)
}

func makeKeywords() (table [256]Kind) {
	for k := _Abstract; k < kindCount; k++ {
		table[hashWord(kindText[k])] = k
	}
	return table
}

// wordKind is the keyword that s spells, or _Name.
func wordKind(s string) Kind {
	if k := keywords[hashWord(s)]; k != 0 && kindText[k] == s {
		return k
	}
	return _Name
}

// binaryOps gives the binary operators their meaning and precedence; 0 is no operator.
var binaryOps = [kindCount]struct {
	op   Operator
	prec uint8
}{
	_OrOr: {OrOr, 1}, _AndAnd: {AndAnd, 2}, _Eql: {Eql, 3}, _Neq: {Neq, 3},
	_Lss: {Lss, 4}, _Leq: {Leq, 4}, _Gtr: {Gtr, 4}, _Geq: {Geq, 4},
	_Or: {Or, 5}, _Xor: {Xor, 6}, _And: {And, 7}, _Shl: {Shl, 8},
	_Concat: {Concat, 9}, _Plus: {Add, 9}, _Minus: {Sub, 9}, _SatPlus: {SatAdd, 9}, _SatMinus: {SatSub, 9},
	_Star: {Mul, 10}, _Slash: {Div, 10}, _Percent: {Mod, 10},
}

const (
	shiftPrec = 8
	unaryPrec = 11
)

// assignOps maps the assignment tokens to the operator of the compound form.
var assignOps = [kindCount]Operator{
	_MulAssign: Mul, _DivAssign: Div, _ModAssign: Mod, _AddAssign: Add, _SubAssign: Sub,
	_SatAddAssign: SatAdd, _SatSubAssign: SatSub, _ShlAssign: Shl, _ShrAssign: Shr,
	_AndAssign: And, _XorAssign: Xor, _OrAssign: Or,
}

func isAssign(k Kind) bool { return k >= _Assign && k <= _OrAssign }

var operatorText = [...]string{
	NoOp: "", Not: "!", Compl: "~", Neg: "-", Plus: "+", Mul: "*", Div: "/", Mod: "%",
	Add: "+", Sub: "-", SatAdd: "|+|", SatSub: "|-|", Shl: "<<", Shr: ">>", Lss: "<", Leq: "<=",
	Gtr: ">", Geq: ">=", Eql: "==", Neq: "!=", And: "&", Xor: "^", Or: "|", Concat: "++",
	AndAnd: "&&", OrOr: "||",
}

// String is the operator's spelling.
func (op Operator) String() string { return operatorText[op] }
