package types

import (
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func (*Basic) aType()       {}
func (*Bits) aType()        {}
func (*Varbit) aType()      {}
func (*Struct) aType()      {}
func (*Enum) aType()        {}
func (*Stack) aType()       {}
func (*Tuple) aType()       {}
func (*List) aType()        {}
func (*New) aType()         {}
func (*TypeParam) aType()   {}
func (*Func) aType()        {}
func (*Extern) aType()      {}
func (*Parser) aType()      {}
func (*Control) aType()     {}
func (*Package) aType()     {}
func (*Table) aType()       {}
func (*applyResult) aType() {}
func (*ActionRun) aType()   {}
func (*Set) aType()         {}
func (*record) aType()      {}

// A record is the type of {f = a, g = b} before the context determines the struct.
type record struct{ fields []Field }

// Types of states, and of expressions whose type depends on the context.
var (
	dotsType   = &Basic{"..."}
	nullHeader = &Basic{"{#}"}
	stateType  = &Basic{"state"}
)

func (t *Basic) String() string { return t.name }

func (t *Bits) String() string {
	if t.Signed {
		return "int<" + strconv.Itoa(t.Width) + ">"
	}
	return "bit<" + strconv.Itoa(t.Width) + ">"
}

func (t *Varbit) String() string      { return "varbit<" + strconv.Itoa(t.Max) + ">" }
func (t *Named) String() string       { return t.Name + typeArgs(t.Args) }
func (t *Enum) String() string        { return t.Name }
func (t *Stack) String() string       { return t.Elem.String() + "[" + strconv.Itoa(t.Size) + "]" }
func (t *Tuple) String() string       { return "tuple<" + joinTypes(t.Elems) + ">" }
func (t *List) String() string        { return "list<" + t.Elem.String() + ">" }
func (t *New) String() string         { return t.Name }
func (t *TypeParam) String() string   { return t.Name }
func (t *Table) String() string       { return "table " + t.Decl.Name.Value }
func (t *applyResult) String() string { return "result of " + t.Table.Name.Value + ".apply()" }
func (t *ActionRun) String() string   { return "action_run of " + t.Table.Name.Value }
func (t *Set) String() string         { return "set<" + t.Elem.String() + ">" }

func (t *record) String() string {
	names := lists.Map(t.fields, func(f Field) string { return f.Name + " = " + f.Type.String() })
	return "{" + strings.Join(names, ", ") + "}"
}

func (t *Func) String() string {
	var b strings.Builder
	if len(t.TypeParams) > 0 {
		b.WriteByte('<')
		for i, p := range t.TypeParams {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(p.Name)
		}
		b.WriteByte('>')
	}
	b.WriteByte('(')
	for i, p := range t.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(paramString(p))
	}
	b.WriteByte(')')
	return b.String()
}

func paramString(p *Object) string {
	s := p.Type.String() + " " + p.Name
	if d := dirString(p.Dir); d != "" {
		s = d + " " + s
	}
	return s
}

func dirString(d syntax.Direction) string {
	return [...]string{"", "in", "out", "inout"}[d]
}

func joinTypes(ts []Type) string {
	names := lists.Map(ts, Type.String)
	return strings.Join(names, ", ")
}

func typeArgs(ts []Type) string {
	if len(ts) == 0 {
		return ""
	}
	return "<" + joinTypes(ts) + ">"
}

// field returns the field called name, or nil if there is none.
func (t *Struct) field(name string) *Field {
	if i := t.FieldIndex(name); i >= 0 {
		return &t.Fields[i]
	}
	return nil
}

// FieldIndex returns the index of the field called name, or -1 if there is none.
func (t *Struct) FieldIndex(name string) int {
	if i, ok := t.index[name]; ok {
		return i
	}
	return -1
}

// add appends a field with a new name.
func (t *Struct) add(f Field) {
	t.index[f.Name] = len(t.Fields)
	t.Fields = append(t.Fields, f)
}

// isHeader reports whether t is a header, not a header_union.
func (t *Struct) isHeader() bool { return t.Kind == syntax.StructKindHeader }

// isUnion reports whether t is a header_union.
func (t *Struct) isUnion() bool { return t.Kind == syntax.StructKindUnion }

// memberIndex returns the index of the member called name, or -1 if there is none.
func (t *Enum) memberIndex(name string) int {
	if i, ok := t.index[name]; ok {
		return i
	}
	return -1
}

func (t *Enum) memberNames() []string {
	return lists.Map(t.Members, func(m EnumMember) string { return m.Name })
}

// method returns the first method called name, or nil if there is none.
func (t *Extern) method(name string) *Method {
	return lists.First(t.called(name), func(m *Method) bool { return !m.IsCtor })
}

// called returns the methods and constructors called name.
func (t *Extern) called(name string) []*Method {
	if len(t.Methods) <= maxLinear {
		return lists.Filter(t.Methods, func(m *Method) bool { return m.Name == name })
	}
	if t.index == nil {
		t.index = map[string][]*Method{}
		for _, m := range t.Methods {
			t.index[m.Name] = append(t.index[m.Name], m)
		}
	}
	return t.index[name]
}

// param returns the parameter called name and its index, or nil if there is none.
func (t *Func) param(name string) (*Object, int) {
	for i, p := range t.Params {
		if p.Name == name {
			return p, i
		}
	}
	return nil, -1
}

// maxLinear is the length of the longest list that is searched linearly.
const maxLinear = 32

// finder returns a function that finds parameters by name. It builds an index once,
// for callers that look up several.
func (t *Func) finder() func(name string) (*Object, int) {
	if len(t.Params) <= maxLinear {
		return t.param
	}
	var at map[string]int
	return func(name string) (*Object, int) {
		if at == nil {
			at = make(map[string]int, len(t.Params))
			for i, p := range slices.Backward(t.Params) {
				at[p.Name] = i
			}
		}
		if i, ok := at[name]; ok {
			return t.Params[i], i
		}
		return nil, -1
	}
}

// identical reports whether a and b are the same type. Instances of parsers, controls
// and packages with the same arguments are one object.
func identical(a, b Type) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *Bits:
		b, ok := b.(*Bits)
		return ok && *a == *b
	case *Varbit:
		b, ok := b.(*Varbit)
		return ok && *a == *b
	case *Struct:
		b, ok := b.(*Struct)
		return ok && a.Decl == b.Decl && allIdentical(a.Args, b.Args)
	case *Enum:
		b, ok := b.(*Enum)
		return ok && a.Decl == b.Decl
	case *Stack:
		b, ok := b.(*Stack)
		return ok && a.Size == b.Size && identical(a.Elem, b.Elem)
	case *Tuple:
		b, ok := b.(*Tuple)
		return ok && allIdentical(a.Elems, b.Elems)
	case *List:
		b, ok := b.(*List)
		return ok && identical(a.Elem, b.Elem)
	case *Set:
		b, ok := b.(*Set)
		return ok && identical(a.Elem, b.Elem)
	case *New:
		b, ok := b.(*New)
		return ok && a.Decl == b.Decl
	case *Extern:
		b, ok := b.(*Extern)
		return ok && a.Decl == b.Decl && allIdentical(a.Args, b.Args)
	case *applyResult:
		b, ok := b.(*applyResult)
		return ok && a.Table == b.Table
	}
	return false
}

func allIdentical(a, b []Type) bool { return slices.EqualFunc(a, b, identical) }

// identicalFuncs compares two signatures. Type parameters correspond by position.
func identicalFuncs(a, b *Func) bool {
	if len(a.Params) != len(b.Params) || len(a.TypeParams) != len(b.TypeParams) {
		return false
	}
	if len(a.TypeParams) > 0 {
		m := make(map[*TypeParam]Type, len(a.TypeParams))
		for i, p := range b.TypeParams {
			m[p] = a.TypeParams[i]
		}
		b = substFunc(b, m)
	}
	for i, p := range a.Params {
		q := b.Params[i]
		if p.Dir != q.Dir || !identical(p.Type, q.Type) {
			return false
		}
	}
	return identical(a.Result, b.Result)
}

// Underlying returns the type below any chain of "type" declarations.
func Underlying(t Type) Type {
	if n, ok := t.(*New); ok {
		return n.base
	}
	return t
}

// A Body is the declaration of a parser or control with its type arguments.
type Body struct {
	syntax.Block
	TypeArgs []Type
}

// BodyOf returns the body of a parser or control. ok is false for other types.
func BodyOf(t Type) (b Body, ok bool) {
	switch t := t.(type) {
	case *Control:
		return Body{t.Decl.Block, t.Args}, true
	case *Parser:
		return Body{t.Decl.Block, t.Args}, true
	}
	return Body{}, false
}

// isHeaderType reports whether t is a header or header_union.
func isHeaderType(t Type) bool {
	s, ok := t.(*Struct)
	return ok && s.Kind != syntax.StructKindStruct
}

func (t *Named) named() *Named { return t }
func (t *Block) block() *Block { return t }

// namedOf returns the Named part of t, or nil if t cannot have type parameters.
func namedOf(t Type) *Named {
	if n, ok := t.(interface{ named() *Named }); ok {
		return n.named()
	}
	return nil
}

// blockOf returns the Block part of t, or nil if t is not a parser or control.
func blockOf(t Type) *Block {
	if b, ok := t.(interface{ block() *Block }); ok {
		return b.block()
	}
	return nil
}

func ctorOf(t Type) *Func {
	if p, ok := t.(*Package); ok {
		return p.Ctor
	}
	if b := blockOf(t); b != nil {
		return b.Ctor
	}
	return nil
}
