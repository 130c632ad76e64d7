// Package token defines the tokens of P4_16: their kinds, their spelling, and where
// they can occur.
package token

import (
	"slices"
	"strings"
)

// A Kind is the class of a token: each operator, delimiter and keyword has its own.
type Kind uint8

const (
	EOF Kind = iota // end of the text
	EOL             // end of a directive's line
	Illegal
	Name
	Int
	String

	// Delimiters and marks.
	At
	Lparen
	Rparen
	Lbrack
	Rbrack
	Lbrace
	Rbrace
	Invalid // {#}
	Semi
	Comma
	Colon
	PlusColon // +:
	Question
	Dot
	DotDot
	DotDotDot
	Mask // &&&
	Hash
	HashHash
	Backslash

	// Operators.
	Not
	Tilde
	Star
	Slash
	Percent
	Plus
	Minus
	SatPlus
	SatMinus
	Shl
	Lss
	Leq
	Gtr // >> is two of these, as in bit<bit<8>>
	Geq
	Eql
	Neq
	And
	Xor
	Or
	Concat
	AndAnd
	OrOr

	// Assignments.
	Assign
	MulAssign
	DivAssign
	ModAssign
	AddAssign
	SubAssign
	SatAddAssign
	SatSubAssign
	ShlAssign
	ShrAssign
	AndAssign
	XorAssign
	OrAssign

	// Keywords; Abstract must be the first.
	Abstract
	Action
	Actions
	Apply
	Bit
	Bool
	Break
	Const
	Continue
	Control
	Default
	Else
	Entries
	Enum
	Error
	Exit
	Extern
	False
	For
	Header
	HeaderUnion
	If
	In
	InOut
	IntWord
	Key
	List
	MatchKind
	Out
	Package
	Parser
	Priority
	Return
	Select
	State
	StringWord
	Struct
	Switch
	Table
	This
	Transition
	True
	Tuple
	Type
	Typedef
	Underscore
	ValueSet
	Varbit
	Void

	Count
)

var kindText = [Count]string{
	EOF: "end of file", EOL: "end of line", Illegal: "character", Name: "name",
	Int: "integer", String: "string",
	At: "@", Lparen: "(", Rparen: ")", Lbrack: "[", Rbrack: "]", Lbrace: "{", Rbrace: "}",
	Invalid: "{#}", Semi: ";", Comma: ",", Colon: ":", PlusColon: "+:", Question: "?",
	Dot: ".", DotDot: "..", DotDotDot: "...", Mask: "&&&", Hash: "#", HashHash: "##",
	Backslash: "\\",
	Not:       "!", Tilde: "~", Star: "*", Slash: "/", Percent: "%", Plus: "+", Minus: "-",
	SatPlus: "|+|", SatMinus: "|-|", Shl: "<<", Lss: "<", Leq: "<=", Gtr: ">", Geq: ">=",
	Eql: "==", Neq: "!=", And: "&", Xor: "^", Or: "|", Concat: "++", AndAnd: "&&", OrOr: "||",
	Assign: "=", MulAssign: "*=", DivAssign: "/=", ModAssign: "%=", AddAssign: "+=",
	SubAssign: "-=", SatAddAssign: "|+|=", SatSubAssign: "|-|=", ShlAssign: "<<=",
	ShrAssign: ">>=", AndAssign: "&=", XorAssign: "^=", OrAssign: "|=",
	Abstract: "abstract", Action: "action", Actions: "actions", Apply: "apply", Bit: "bit",
	Bool: "bool", Break: "break", Const: "const", Continue: "continue", Control: "control",
	Default: "default", Else: "else", Entries: "entries", Enum: "enum", Error: "error",
	Exit: "exit", Extern: "extern", False: "false", For: "for", Header: "header",
	HeaderUnion: "header_union", If: "if", In: "in", InOut: "inout", IntWord: "int",
	Key: "key", List: "list", MatchKind: "match_kind", Out: "out", Package: "package",
	Parser: "parser", Priority: "priority", Return: "return", Select: "select",
	State: "state", StringWord: "string", Struct: "struct", Switch: "switch",
	Table: "table", This: "this", Transition: "transition", True: "true", Tuple: "tuple",
	Type: "type", Typedef: "typedef", Underscore: "_", ValueSet: "value_set",
	Varbit: "varbit", Void: "void",
}

// String returns the spelling of the token, or a word for kinds with several
// spellings.
func (k Kind) String() string { return kindText[k] }

// IsName reports whether the token can be a name: an identifier or a contextual
// keyword.
func (k Kind) IsName() bool {
	switch k {
	case Name, Actions, Apply, Entries, Key, List, Priority, State, Type:
		return true
	}
	return false
}

// IsAssign reports whether the token is an assignment operator.
func (k Kind) IsAssign() bool { return k >= Assign && k <= OrAssign }

// BeginsType reports whether the token is a keyword that only begins a type.
func (k Kind) BeginsType() bool {
	switch k {
	case Bit, Bool, Error, IntWord, MatchKind, StringWord, Tuple, Varbit, Void:
		return true
	}
	return false
}

// Opening returns the opening bracket for the closing bracket k, or EOF if k is not
// one.
func (k Kind) Opening() Kind {
	switch k {
	case Rparen:
		return Lparen
	case Rbrack:
		return Lbrack
	case Rbrace:
		return Lbrace
	case Gtr:
		return Lss
	}
	return EOF
}

// keywords is a perfect hash table of the keywords: a test checks that its size and
// salt avoid all collisions.
var keywords = makeKeywords()

func hashWord(s string) uint8 {
	n := len(s)
	return uint8(uint(s[0]) + uint(s[n/2])*7 + uint(s[n-1])*35 + uint(n)*29)
}

func makeKeywords() (table [256]Kind) {
	for k := Abstract; k < Count; k++ {
		table[hashWord(kindText[k])] = k
	}
	return table
}

// Word returns the kind of the keyword s, or Name if s is not a keyword.
func Word(s string) Kind {
	if k := keywords[hashWord(s)]; k != 0 && kindText[k] == s {
		return k
	}
	return Name
}

// IsLetter reports whether a name can begin with c.
func IsLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

// IsDigit reports whether an integer can begin with c.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsWord reports whether a name can continue with c.
func IsWord(c byte) bool { return IsLetter(c) || IsDigit(c) }

// operators are the operators and delimiters by their first character, the longest
// first.
var operators = makeOperators()

func makeOperators() (table [256][]Kind) {
	for k := At; k < Abstract; k++ {
		table[kindText[k][0]] = append(table[kindText[k][0]], k)
	}
	for _, kinds := range table {
		slices.SortFunc(kinds, func(a, b Kind) int { return len(kindText[b]) - len(kindText[a]) })
	}
	return table
}

// Operator returns the longest operator or delimiter at the start of text and its
// length. The kind is Illegal if there is none.
func Operator(text string) (Kind, int) {
	for _, k := range operators[text[0]] {
		if n := len(kindText[k]); n == 1 || strings.HasPrefix(text, kindText[k]) {
			return k, n
		}
	}
	return Illegal, 1
}

// RunTogether reports whether l and r, written without a space, would not be
// scanned as these two tokens.
func RunTogether(l, r string) bool {
	last, first := l[len(l)-1], r[0]
	switch {
	case IsWord(last):
		return IsWord(first)
	case last == '/' && (first == '/' || first == '*'):
		return true
	}
	kind, n := Operator(l + r)
	return kind != Illegal && n > len(l)
}
