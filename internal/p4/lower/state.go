package lower

import (
	"fmt"
	"maps"
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// A lowerer holds the state of lowering one program.
type lowerer struct {
	file  *syntax.File
	info  *types.Info
	opts  Options
	cfg   *bmv2.Config
	errs  syntax.Errors
	block block
	// at is the statement being lowered, for messages and source_info.
	at syntax.Node

	names       map[string]int  // how often unique returned each name
	claimed     map[string]bool // the names known to the control plane, with their kinds
	scalars     *scalars
	headerTypes map[string]*bmv2.HeaderType
	headerIDs   map[string]int
	unionIDs    map[string]int
	fieldLists  map[int]int // index of @field_list → id
	ids         map[string]int
	arch        architecture
	hdrs        value // the headers of the current block

	code      *code
	acts      map[actionKey]*bmv2.Action
	profiles  map[*instance]*bmv2.ActionProfile
	tables    map[tableID]*table
	instances map[*syntax.InstDecl]*instance // instances at top level
	externs   []*instance                    // in order of evaluation
	depth     int
	steps     int
	work      int
	words     int // 64-bit words of all arrays' cells so far
	// sourceInfo is the cached position of the node sourceOf: the instructions of a
	// statement share it.
	sourceOf   syntax.Node
	sourceInfo *bmv2.SourceInfo

	pipeline *bmv2.Pipeline
	inTable  *table                         // the table whose action is being lowered
	inAction *bmv2.Action                   // the action that is being lowered
	direct   map[*syntax.CallExpr]*instance // instances of types that are applied directly
	narrowed map[*syntax.CallExpr][2]int    // the lowest and the highest bit of a sliced call
	copied   map[string]bool                // the parts of controls' parameters that are copied
}

// A block is the block of the architecture for which code is generated.
type block uint8

const (
	noBlock block = iota
	parserBlock
	verifyBlock
	ingressBlock
	egressBlock
	computeBlock
	deparserBlock
)

// Options tune the lowering; the zero value is what p4lb compile uses.
type Options struct {
	// Program is the program's name in the document; the default is the file's
	// name.
	Program string
	// Compiler is the compiler's name in __meta__.
	Compiler string
	// Arch is the program's architecture: v1model (the default), tna or t2na.
	Arch string
}

// An env binds the names of one activation of a block, an inlined call or an
// action. A map from object to value is enough because objects are unique.
type env struct {
	l      *lowerer
	parent *env
	vals   map[*types.Object]value
	tsub   map[*types.TypeParam]types.Type
	inst   *instance // the parser or control that contains the code
	ret    *label    // where return goes
	result value     // the place for the returned value
	exit   func()    // copies the out arguments back if the program exits here
	brk    *label
	cont   *label
	loops  int // number of enclosing loops; a loop resets the variables declared in it
	action bool
}

func (e *env) child() *env {
	c := *e
	c.parent, c.vals = e, nil
	return &c
}

func (e *env) bind(o *types.Object, v value) {
	if e.vals == nil {
		e.vals = map[*types.Object]value{}
	}
	e.vals[o] = v
}

func (e *env) bindAll(bs []binding) {
	for _, b := range bs {
		e.bind(b.param, b.value)
	}
}

func (e *env) lookup(o *types.Object) (value, bool) {
	for ; e != nil; e = e.parent {
		if v, ok := e.vals[o]; ok {
			return v, true
		}
	}
	return nil, false
}

// bindTypes binds params to args, which are evaluated in the caller's env.
func (e *env) bindTypes(params []*types.TypeParam, args []types.Type, caller *env) {
	if len(params) == 0 {
		return
	}
	sub := make(map[*types.TypeParam]types.Type, len(e.tsub)+len(params))
	maps.Copy(sub, e.tsub)
	for i, p := range params {
		if i < len(args) {
			sub[p] = caller.subst(args[i])
		}
	}
	e.tsub = sub
}

func (e *env) subst(t types.Type) types.Type {
	if t == nil || len(e.tsub) == 0 {
		return t
	}
	return types.Subst(t, e.tsub)
}

// typeOf returns the type of an expression in this activation.
func (e *env) typeOf(x syntax.Expr) types.Type { return e.subst(e.l.info.Types[x].Type) }

// An instance is an extern object, parser, control or package, created at compile
// time.
type instance struct {
	typ   types.Type
	decl  *syntax.InstDecl // nil if the instance is created in an argument
	name  string           // the control plane's name
	args  []value          // constructor arguments
	env   *env             // environment of a parser's or control's body: constructor parameters and locals
	outer *env             // environment of the instantiation
	at    syntax.Node

	applied []binding             // the arguments of the first application
	active  *env                  // the environment of its latest application
	vars    map[variable]value    // its local variables
	params  map[string]value      // the copies of parts of its parameters
	table   *table                // the table of a direct counter or meter
	users   map[*bmv2.Action]bool // the actions that execute a direct counter or meter
	target  value                 // receives the result of a direct meter
	inputs  []*ex                 // the inputs of an action selector
	ready   bool                  // its locals have been created
	block   block
}

// A variable identifies a declared variable; in generic code, one for each list of
// type arguments.
type variable struct {
	obj *types.Object
	typ string
}

func (i *instance) extern() *types.Extern {
	x, _ := i.typ.(*types.Extern)
	return x
}

// typeLabel returns the name of the parser's or control's declaration, without
// regard to @name.
func (i *instance) typeLabel() string {
	if b, ok := types.BodyOf(i.typ); ok {
		return b.Name.Value
	}
	return i.name
}

// A binding connects one argument of a call to its parameter.
type binding struct {
	param *types.Object
	typ   types.Type  // the parameter's type, with type arguments substituted
	arg   syntax.Expr // nil if the call omits it
	place value       // the place of an out or inout argument
	value value       // the argument's value; after the call of pass, the parameter's place or value
	ref   bool        // the parameter shares the argument's place
	back  value       // the place to which the parameter is copied on return, or nil
}

// An architecture lowers the parts of a program that depend on the architecture:
// the package and its blocks, extern objects and functions.
type architecture interface {
	traits() traits
	// program lowers the blocks that are arguments of call, the instantiation of
	// main.
	program(decl *syntax.InstDecl, call *types.Call)
	// declare emits an extern object when it is instantiated, and reports whether
	// the architecture defines this extern.
	declare(i *instance) bool
	// finish emits the parts of an extern object that depend on tables. It runs after
	// all tables are lowered.
	finish(i *instance)
	// selectorAlgorithm returns the hash algorithm of an action selector.
	selectorAlgorithm(inst *instance) string
	// method and function lower a call of an extern object and of an extern
	// function.
	method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value
	function(x *syntax.CallExpr, call *types.Call, e *env) value
}

// Traits describe the differences between the architectures' switches.
type traits struct {
	// runner is the switch that runs the document, for messages.
	runner string
	// target is the switch that the architecture describes, for messages.
	target string
	// wideShifts is set if all bits of a shift amount count, not only the low 32.
	wideShifts bool
	// pkg is the name of the package that main must be an instance of.
	pkg string
	// branches is set if deparsers may contain conditions.
	branches bool
	// addHeader is the primitive for setValid. BMv2's primitive sets the fields to
	// 0, Tofino's leaves them unchanged.
	addHeader string
	// defaults is set if a table with an action profile can have a default action.
	defaults bool
	// divides is set if a divisor may be known only at run time: division by zero
	// gives zero.
	divides bool
}

// A table is one table of one control instance.
type table struct {
	decl     *syntax.TableDecl
	obj      *types.Object
	env      *env
	name     string
	keys     []*tableKey
	actions  []*tableAction
	byObject map[*types.Object]*tableAction // the first action of each object
	applies  []*instr
	impl     *instance // action profile or selector
	out      *bmv2.Table
	reached  bool // the pipeline applies it
	block    block
}

// A tableAction is one action of a table, with the arguments bound in the table's
// list.
type tableAction struct {
	ref  *syntax.ActionRef
	obj  *types.Object
	out  *bmv2.Action
	name string
}

// A tableKey is one element of the key.
type tableKey struct {
	elem   *syntax.KeyElem
	kind   string
	name   string
	typ    types.Type
	st     scalar
	target bmv2.FieldRef
	mask   *big.Int
	absent bool   // of type bit<0>: equal for all packets, so BMv2's table omits it
	temp   *field // variable that is set before each application, or nil if the key is a field
	value  *ex
}

// A tableID identifies a table of a control instance.
type tableID struct {
	decl *syntax.TableDecl
	inst *instance
}

// An actionKey identifies a BMv2 action: one for each action of each control
// instance and each list of bound arguments.
type actionKey struct {
	decl  *syntax.ActionDecl
	inst  *instance
	bound string
	block block
}

// A scalars is the metadata header that holds the user's metadata and all
// variables.
type scalars struct {
	l      *lowerer
	fields []*field
}

// nextID returns the next id of a kind of object, starting at 0.
func (l *lowerer) nextID(kind string) int {
	id := l.ids[kind]
	l.ids[kind] = id + 1
	return id
}

// arg returns a constructor argument, or nil if there is none.
func (i *instance) arg(k int) value {
	if k < len(i.args) {
		return i.args[k]
	}
	return nil
}

// bail is the panic value that returns to Lower after an error that stops the
// lowering.
type bail struct{}

// errorf reports an error at n.
func (l *lowerer) errorf(n syntax.Node, format string, args ...any) {
	l.report(n, false, format, args...)
}

func (l *lowerer) report(n syntax.Node, warning bool, format string, args ...any) {
	var pos syntax.Pos
	if n != nil {
		pos = n.Pos()
	}
	l.errs = append(l.errs, &syntax.Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Warning: warning})
}

// unsupported reports valid P4 that the document cannot express, and stops the
// lowering.
func (l *lowerer) unsupported(n syntax.Node, format string, args ...any) {
	l.errorf(n, "not supported: "+format, args...)
	l.errs[len(l.errs)-1].Class = syntax.Unsupported
	panic(bail{})
}

// source returns the source_info of n.
func (l *lowerer) source(n syntax.Node) *bmv2.SourceInfo {
	if n == nil || !n.Pos().IsKnown() {
		return nil
	}
	if n == l.sourceOf {
		return l.sourceInfo
	}
	p := n.Pos()
	if d, ok := n.(syntax.Decl); ok && d.DeclName() != nil {
		p = d.DeclName().Pos()
	}
	l.sourceOf = n
	l.sourceInfo = &bmv2.SourceInfo{Filename: p.File(), Line: p.Line(), Column: p.Col() - 1, SourceFragment: fragment(n)}
	return l.sourceInfo
}

// maxFragment bounds the text of a source_info, because every primitive of a
// statement repeats it.
const maxFragment = 400

// head returns the text of n on one line, shortened if it is long.
func head(n syntax.Node) string {
	s := syntax.Head(n, maxFragment)
	if len(s) > maxFragment {
		s = strings.ToValidUTF8(s[:maxFragment-3], "") + "..."
	}
	return s
}

// fragment returns the text that source_info shows for n.
func fragment(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.IfStmt:
		return head(n.Cond)
	case *syntax.SwitchStmt:
		return head(n.X)
	case *syntax.AssignStmt, *syntax.CallStmt, *syntax.ReturnStmt, *syntax.ExitStmt:
		return head(n)
	case syntax.Expr:
		return head(n)
	case syntax.Decl:
		if name := n.DeclName(); name != nil {
			return name.Value
		}
	}
	return ""
}

func typeName(t types.Type) string {
	if p, ok := t.(*types.Package); ok {
		return p.Name
	}
	return t.String()
}

// The limits of one program. Inlining makes programs grow: a few lines of nested
// calls can produce more code than fits into memory. The error for an exceeded
// limit points at the statement; docs/limits.md lists the limits.
const (
	// maxSteps bounds the statements after inlining.
	maxSteps = 1 << 20
	// maxWork bounds the work of lowering. A step is about one evaluated expression
	// or one emitted operand. It stops programs that stay within the other limits
	// after about a second.
	maxWork = 1 << 23
	// maxOperators bounds one expression after inlining.
	maxOperators = 1 << 16
	// maxNesting bounds the nesting of an expression in the document. Deeper
	// expressions are computed in pieces, through variables. simple_switch's JSON
	// parser stops at 1000 levels, and each operator takes two.
	maxNesting = 128
	// maxKeysets bounds the number of value/mask pairs that the ranges in one case
	// of a select expand to.
	maxKeysets = 1 << 16
)

// Costs in steps of maxWork.
const (
	costCall     = 32 // anything that is inlined
	costVariable = 8
	costStmt     = 4
	costOperand  = 16 // an operand takes 2 KB in a document
)

// spend counts n steps of work.
func (l *lowerer) spend(n int) {
	if l.work += n; l.work > maxWork {
		l.unsupported(l.at, "a program that takes more than %d steps to lower: calls, copies of structs or the like multiply here (docs/limits.md)", maxWork)
	}
}
