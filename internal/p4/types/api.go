// Package types resolves the names of a P4_16 program, checks its types and folds
// its constants. It does not change the syntax tree. The results are in the tables
// of an Info.
package types

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A Type is the type of an expression or the meaning of a type name. Identical
// compares two types. Typedefs are transparent: a Type is never a typedef.
type Type interface {
	String() string
	aType()
}

// The types. Bits, the basic ones and New are compared by content; Struct,
// Enum, Extern, Parser, Control and Package by declaration and type arguments.
type (
	// Basic is a type without parts; the variables Bool … Invalid list them.
	Basic struct{ name string }

	// Bits is bit<Width>, or int<Width> if Signed is set.
	Bits struct {
		Width  int
		Signed bool
	}

	// Varbit is varbit<Max>.
	Varbit struct{ Max int }

	// Named is the common part of types that can have type parameters. Args are the
	// type arguments.
	Named struct {
		Name string
		Args []Type

		generic *generic
	}

	// Struct is a struct, header or header_union.
	Struct struct {
		Named
		Kind   syntax.StructKind
		Decl   *syntax.StructDecl
		Fields []Field

		index map[string]int // indices of the fields, by name
	}

	// Enum is an enum. Repr is its representation, or nil if it has none.
	Enum struct {
		Name    string
		Decl    *syntax.EnumDecl
		Repr    *Bits
		Members []EnumMember

		index map[string]int // indices of the members, by name
	}

	// Stack is Elem[Size]: a stack of headers or unions, or an array of another
	// type.
	Stack struct {
		Elem Type
		Size int
	}

	// Tuple is tuple<Elems>. A list expression has this type before it is converted
	// to the type of its context.
	Tuple struct{ Elems []Type }

	// List is list<Elem>.
	List struct{ Elem Type }

	// New is a type declared by "type Underlying Name".
	New struct {
		Name       string
		Decl       *syntax.TypedefDecl
		Underlying Type

		base Type // see Underlying
	}

	// TypeParam is a type parameter in a generic declaration.
	TypeParam struct {
		Name string
		Decl *syntax.Name
	}

	// Func is the signature of a function, extern function, method, action or
	// constructor, or of the apply method of a parser or control.
	Func struct {
		TypeParams []*TypeParam
		Params     []*Object // kind ParamObj, in order
		Result     Type      // Void if there is no result
	}

	// Extern is an extern object type.
	Extern struct {
		Named
		Decl    *syntax.ExternDecl
		Methods []*Method // includes constructors; type arguments are already substituted

		index map[string][]*Method // methods by name, if there are many
	}

	// Block is the common part of parsers and controls.
	Block struct {
		Named
		Apply *Func // TypeParams are the block's type parameters, Params the parameters of apply
		Ctor  *Func
	}

	// Parser is a parser or a parser type.
	Parser struct {
		Block
		Decl *syntax.ParserDecl
	}

	// Control is a control or a control type.
	Control struct {
		Block
		Decl *syntax.ControlDecl
	}

	// Package is a package type.
	Package struct {
		Named
		Decl *syntax.PackageDecl
		Ctor *Func
	}

	// Table is the type of a table's name.
	Table struct{ Decl *syntax.TableDecl }

	// applyResult is the type of table.apply(), with hit, miss and action_run.
	applyResult struct{ Table *syntax.TableDecl }

	// ActionRun is the type of apply().action_run. Its values are the table's
	// actions.
	ActionRun struct{ Table *syntax.TableDecl }

	// Set is a keyset over Elem: value sets, masks, ranges.
	Set struct{ Elem Type }
)

// A Field is a field of a Struct.
type Field struct {
	Name string
	Type Type
	Decl *syntax.Field
}

// An EnumMember is a member of an Enum; Value is set if the enum has a
// representation.
type EnumMember struct {
	Name  string
	Value *big.Int
	Decl  *syntax.EnumMember
}

// A Method is a method of an extern; IsCtor marks constructors.
type Method struct {
	Name   string
	Decl   *syntax.FuncDecl
	Type   *Func
	IsCtor bool
}

// A Value is the value of a constant expression: *big.Int, bool, string, *EnumValue,
// *ErrorValue, *AggregateValue.
type Value any

// An EnumValue is a member of an enum, with or without a representation. Its number
// is Type.Members[Index].Value. A number that is cast to an enum without a member
// for it is a *big.Int instead.
type EnumValue struct {
	Type  *Enum
	Index int
}

// An ErrorValue is a member of error; Index is its position among all declared
// errors.
type ErrorValue struct {
	Name  string
	Index int
}

// An AggregateValue is a constant struct, tuple or list. A header is valid
// unless Invalid is set.
type AggregateValue struct {
	Elems   []Value
	Invalid bool
}

// An ObjectKind is the kind of object that a name denotes.
type ObjectKind uint8

// The kinds of object.
const (
	ConstObj     ObjectKind = iota + 1 // a constant; Value set
	VarObj                             // a local variable (also of a for loop)
	ParamObj                           // a parameter; constructor parameters have Ctor set
	TypeObj                            // a type name: struct, enum, typedef, extern, parser, control, package, type parameter
	FuncObj                            // a function or extern function
	ActionObj                          // an action
	TableObj                           // a table
	InstObj                            // an instance: extern object, parser, control, package
	StateObj                           // a parser state; accept and reject have no Decl
	ValueSetObj                        // a value set
	ErrorObj                           // a member of error; Value set
	MatchKindObj                       // a member of match_kind
)

// An Object is a declared entity.
type Object struct {
	Kind  ObjectKind
	Name  string
	Decl  syntax.Node // the declaration: a syntax.Decl, *syntax.Param, *syntax.StateDecl or *syntax.Name
	Type  Type        // for TypeObj the type itself; for FuncObj and ActionObj a *Func
	Value Value       // for constants and errors

	Dir      syntax.Direction // of a parameter
	Ctor     bool             // a constructor parameter
	Default  syntax.Expr      // the default argument of a parameter
	Optional bool             // a parameter with @optional

	// Parent is the parser, control, action, function, table or extern method that
	// contains the declaration, or nil at top level.
	Parent *Object

	next *Object // the previously declared function with the same name
	used bool

	flow    *flow // for a variable without an initial value
	inState bool  // a variable of a parser state
	action  bool  // a parameter of an action
	named   bool  // an action or table with @name
}

// TypeAndValue is the type of an expression and, if it is a constant, its value.
// For an int expression that the context converts, they are the converted type and
// value.
type TypeAndValue struct {
	Type   Type
	Value  Value // nil if the expression is not a compile-time constant
	IsType bool  // the expression names a type
	LValue bool

	// known is set if the expression is known at compile time. Its Value is nil if
	// it depends on a constructor parameter.
	known bool
}

// A CallKind is the kind of a CallExpr.
type CallKind uint8

// The kinds of call.
const (
	FuncCall    CallKind = iota + 1 // a function with a body
	ExternCall                      // an extern function
	MethodCall                      // a method of an extern object: Recv, Method
	ActionCall                      // a direct call of an action
	TableApply                      // Recv.apply() of a table
	ApplyCall                       // Recv.apply(…) of a parser or control instance (or of its type: direct application, Recv names the type)
	BuiltinCall                     // a method of headers, unions and stacks, or a size method: Builtin, Recv
	Constructor                     // Type(args)
)

// A Call is a resolved call or instantiation.
type Call struct {
	Kind     CallKind
	Recv     syntax.Expr // the expression before the dot
	Callee   *Object     // FuncCall, ExternCall, ActionCall, TableApply; for MethodCall and ApplyCall, the instance if a name denotes it
	Method   *Method     // MethodCall; the constructor for externs
	Builtin  string      // isValid setValid setInvalid push_front pop_front minSizeInBits minSizeInBytes maxSizeInBits maxSizeInBytes
	Type     *Func       // the signature with type arguments substituted
	TypeArgs []Type      // explicit or inferred, in the order of the declaration's type parameters
	Result   Type        // the type of the result; the constructed type for constructors
	// Args holds the argument of each parameter of Type in order. It is nil if the
	// argument is omitted (default or optional) or is _.
	Args []syntax.Expr
}

// An Info holds the results of Check.
type Info struct {
	// Types contains every expression, including type expressions.
	Types map[syntax.Expr]TypeAndValue
	// Uses maps every use of an object's name to the object: variables, types,
	// actions in a table's list, states in transitions, match kinds. Fields,
	// methods, enum members and error members after a dot are not here.
	Uses map[*syntax.Name]*Object
	// Defs maps each declaration (Decl, Param, StateDecl) to its object, but for methods.
	Defs map[syntax.Node]*Object
	// Calls contains each call.
	Calls map[*syntax.CallExpr]*Call
	// Insts maps each instantiation to its constructor call.
	Insts map[*syntax.InstDecl]*Call
	// ActionRefs maps the parts of a table that call an action to the calls. These
	// are each *syntax.ActionRef of actions and entries, and the value of
	// default_action, which may be a plain name. Arguments that the control plane
	// supplies are nil.
	ActionRefs map[syntax.Node]*Call
	// Errors lists the declared errors, MatchKinds the match kinds, in order.
	Errors     []string
	MatchKinds []string
	// Top maps the top-level names to their objects (except overloaded functions).
	Top map[string]*Object
}

// The basic types.
var (
	Bool      = &Basic{"bool"}
	Int       = &Basic{"int"} // arbitrary precision
	String    = &Basic{"string"}
	Void      = &Basic{"void"}
	Error     = &Basic{"error"}
	MatchKind = &Basic{"match_kind"}
	Invalid   = &Basic{"invalid type"} // the type after an error: compatible with every context, and never reported
	wildcard  = &Basic{"_"}
)

// A flow follows a variable or out parameter through a body to warn about reads
// before any write. A write in one branch suppresses warnings about all later
// reads, so there are no false alarms.
type flow struct {
	written bool
	loops   int            // number of loops around the declaration
	reads   []*syntax.Name // reads so far, until the first write
	late    bool           // read by code that does not run in the order of the text
}

// Costs in steps of maxWork.
const (
	costField  = 4  // field of an instance
	costParam  = 8  // parameter of a generic extern's method, or of a generic function
	costMethod = 16 // method of an instance
)

// A generic creates the instances of a generic declaration, once for each list of
// type arguments. Inside the declaration, the type parameters are the arguments.
type generic struct {
	params []*TypeParam
	self   Type // the instance whose arguments are the type parameters
	insts  []Type
	spend  func(steps int)   // see maxWork
	found  map[uint64][]Type // instances by a hash of their arguments, if there are many
}
