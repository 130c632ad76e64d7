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

	names       map[string]int  // how often each variable name was given out
	claimed     map[string]bool // kinds and names that the control plane knows
	scalars     *scalars
	headerTypes map[string]*bmv2.HeaderType
	headerIDs   map[string]int
	unionIDs    map[string]int
	fieldLists  map[int]int // index of @field_list → id
	ids         map[string]int
	arch        architecture
	hdrs        value // the headers of the block that is being lowered

	code      *code
	acts      map[actionKey]*bmv2.Action
	profiles  map[*instance]*bmv2.ActionProfile
	tables    map[tableID]*table
	instances map[*syntax.InstDecl]*instance // those at top level
	externs   []*instance                    // in order of evaluation
	depth     int
	steps     int
	work      int
	words     int // of 64 bits that the cells of all arrays take
	// sourceInfo describes sourceOf, the node that source was last asked for: the
	// instructions of a statement share it.
	sourceOf   syntax.Node
	sourceInfo *bmv2.SourceInfo

	pipeline *bmv2.Pipeline
	inTable  *table                         // the table of the action that is being lowered
	inAction *bmv2.Action                   // which is being lowered
	direct   map[*syntax.CallExpr]*instance // of types applied directly
	narrowed map[*syntax.CallExpr][2]int    // the lowest and the highest bit that a slice takes
	copied   map[string]bool                // parts of controls' parameters that have places of their own
}

// A block is the place in the architecture that code is generated for.
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
	// Program is the name recorded in the document, the file's by default.
	Program string
	// Compiler is what __meta__ names as the compiler.
	Compiler string
	// Arch is the program's architecture: v1model, which is the default, tna or
	// t2na.
	Arch string
}

// An env binds the names of one activation: of a block, an inlined call, an
// action. Declarations are unique, so a map from object to value is enough.
type env struct {
	l      *lowerer
	parent *env
	vals   map[*types.Object]value
	tsub   map[*types.TypeParam]types.Type
	inst   *instance // the parser or control that the code belongs to
	ret    *label    // where return goes
	result value     // where return leaves its value
	exit   func()    // copies out if the program exits here
	brk    *label
	cont   *label
	loops  int // number of open loops; variables declared in them are reset
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

// bindTypes makes params stand for args, which are read in the caller's env.
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

// typeOf is the type of an expression in this activation.
func (e *env) typeOf(x syntax.Expr) types.Type { return e.subst(e.l.info.Types[x].Type) }

// An instance is an extern object, parser, control or package made at compile time.
type instance struct {
	typ   types.Type
	decl  *syntax.InstDecl // nil where it is made in an argument
	name  string           // the control plane's name
	args  []value          // constructor arguments
	env   *env             // of a parser's or control's body: constructor parameters and locals
	outer *env             // where the instantiation stands
	at    syntax.Node

	applied []binding             // the arguments of the first application
	active  *env                  // its latest application
	vars    map[variable]value    // its local variables
	params  map[string]value      // where parts of its parameters are copied to
	table   *table                // of direct counters and meters
	users   map[*bmv2.Action]bool // the actions that execute a direct counter or meter
	target  value                 // where a direct meter leaves its result
	inputs  []*ex                 // of an action selector
	ready   bool                  // its locals are made
	block   block
}

// A variable is a declared one; in generic code, for one set of type arguments.
type variable struct {
	obj *types.Object
	typ string
}

func (i *instance) extern() *types.Extern {
	x, _ := i.typ.(*types.Extern)
	return x
}

// typeLabel is the name of the parser's or control's declaration; a @name on
// it does not count.
func (i *instance) typeLabel() string {
	if b, ok := types.BodyOf(i.typ); ok {
		return b.Name.Value
	}
	return i.name
}

// A binding connects one argument of a call to its parameter.
type binding struct {
	param *types.Object
	typ   types.Type  // the parameter's, with type arguments filled in
	arg   syntax.Expr // nil if the call omits it
	place value       // the place of an out or inout argument
	value value       // the argument's value; once passed, the parameter's place or value
	ref   bool        // the parameter stands for place itself
	back  value       // where the parameter is copied to on return, nil for none
}

// An architecture lowers the parts of a program that depend on the switch: a package
// and its blocks, extern objects and functions.
type architecture interface {
	traits() traits
	// program lowers the blocks that call, the instantiation of main, names.
	program(decl *syntax.InstDecl, call *types.Call)
	// declare emits an extern object at its instantiation, and reports whether
	// it is one of the architecture.
	declare(i *instance) bool
	// finish emits the parts of an extern object that depend on tables. It runs after
	// all tables are lowered.
	finish(i *instance)
	// selectorAlgorithm is the hash of an action selector.
	selectorAlgorithm(inst *instance) string
	// method and function lower a call of an extern object and of an extern
	// function.
	method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value
	function(x *syntax.CallExpr, call *types.Call, e *env) value
}

// Traits are the differences between the switches of the architectures.
type traits struct {
	// runner is the switch that runs the document, as messages call it.
	runner string
	// target is the switch for which the architecture is made, as messages call it.
	target string
	// wideShifts is set where an amount of more than 32 bits counts in full.
	wideShifts bool
	// pkg is the name of the package that main must be an instance of.
	pkg string
	// branches is set where deparsers may have conditions.
	branches bool
	// addHeader is the primitive of setValid. BMv2's sets the fields to 0, Tofino's
	// leaves them alone.
	addHeader string
	// defaults is set where a table with an action profile keeps its default
	// action.
	defaults bool
	// divides is set where a divisor may be known only at run time: division by
	// zero gives zero.
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
	byObject map[*types.Object]*tableAction // the first of each
	applies  []*instr
	impl     *instance // action profile or selector
	out      *bmv2.Table
	reached  bool // the pipeline has it
	block    block
}

// A tableAction is one action of a table with the arguments bound in its list.
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
	absent bool   // of type bit<0>: equal for all packets, so BMv2's table goes without
	temp   *field // set in front of each application, nil where the key is a field
	value  *ex
}

// A tableID distinguishes tables: one for each of each control instance.
type tableID struct {
	decl *syntax.TableDecl
	inst *instance
}

// An actionKey distinguishes BMv2 actions: one for each action of each control
// instance and list of bound arguments.
type actionKey struct {
	decl  *syntax.ActionDecl
	inst  *instance
	bound string
	block block
}

// Scalars is the metadata header that holds the user's metadata and all
// variables.
type scalars struct {
	l      *lowerer
	fields []*field
}

// nextID counts the objects of each kind from 0.
func (l *lowerer) nextID(kind string) int {
	id := l.ids[kind]
	l.ids[kind] = id + 1
	return id
}

// arg is a constructor argument, or nil if there is none.
func (i *instance) arg(k int) value {
	if k < len(i.args) {
		return i.args[k]
	}
	return nil
}

// bail unwinds to Lower after an error that leaves nothing sensible to do.
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

// unsupported reports valid P4 that the document cannot express and stops.
func (l *lowerer) unsupported(n syntax.Node, format string, args ...any) {
	l.errorf(n, "not supported: "+format, args...)
	l.errs[len(l.errs)-1].Class = syntax.Unsupported
	panic(bail{})
}

// source describes n in the program's own text.
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

// maxFragment is the longest text of a source_info: each primitive of a
// statement has it.
const maxFragment = 400

// head is n on one line, cut short where that is long.
func head(n syntax.Node) string {
	s := syntax.Head(n, maxFragment)
	if len(s) > maxFragment {
		s = strings.ToValidUTF8(s[:maxFragment-3], "") + "..."
	}
	return s
}

// fragment is the text that source_info shows for n: its head, on one line.
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
// calls can produce more code than any machine holds. A program that exceeds a limit
// is refused at the statement that exceeds it; docs/limits.md lists the limits.
const (
	// maxSteps bounds the statements after inlining.
	maxSteps = 1 << 20
	// maxWork bounds the work of lowering, in steps of about one expression evaluated
	// or one operand emitted. It ends lowering that no other limit ends within about
	// a second.
	maxWork = 1 << 23
	// maxOperators bounds one expression after inlining.
	maxOperators = 1 << 16
	// maxNesting bounds how deep an expression of the document nests; deeper
	// ones are computed in pieces, through variables. simple_switch's parser
	// of JSON ends at 1000 levels, of which an operator takes two.
	maxNesting = 128
	// maxKeysets bounds the values and masks that the ranges of one case of a select
	// become.
	maxKeysets = 1 << 16
)

// What some things cost, in the steps of maxWork.
const (
	costCall     = 32 // of anything that is inlined
	costVariable = 8
	costStmt     = 4
	costOperand  = 16 // of a document takes 2 KB
)

// spend counts n steps of work.
func (l *lowerer) spend(n int) {
	if l.work += n; l.work > maxWork {
		l.unsupported(l.at, "a program that takes more than %d steps to lower: calls, copies of structs or the like multiply here (docs/limits.md)", maxWork)
	}
}
