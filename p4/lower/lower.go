// Package lower turns a checked program into BMv2 JSON. A program for Tofino
// (TNA, T2NA) becomes a document in the same terms, of pipes (tofino.go), which
// package dataplane runs and simple_switch does not. What an architecture has of
// its own is behind the interface in arch.go.
//
// It is a partial evaluator. Starting from the package main, it instantiates
// parsers and controls and walks their bodies with an environment that binds
// each name to a value: a constant, an instance, or a place (a BMv2 field,
// header or stack). What is known at compile time is computed; what is not
// becomes linear code (code.go) in which calls of functions, sub-parsers and
// sub-controls are already inlined. Out and inout arguments are passed by
// reference where nothing else can name the same place, by copy elsewhere.
// Each block's code is then cut at its labels into what BMv2 knows: parse
// states, tables with conditionals between them, or an action with jumps.
package lower

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/names"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
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

// A lowerer holds what is known while one program is lowered.
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
	tables    map[*syntax.TableDecl][]*table
	instances map[*syntax.InstDecl]*instance // those at top level
	externs   []*instance                    // in order of evaluation, for P4Info
	applied   []*table                       // in order of declaration
	depth     int
	steps     int
	work      int
	// sourceInfo is that of sourceOf, the last node that source was asked for:
	// a statement's instructions share it.
	sourceOf   syntax.Node
	sourceInfo *bmv2.SourceInfo

	pipeline *bmv2.Pipeline
	inTable  *table                         // whose action is being lowered
	inAction *bmv2.Action                   // which is being lowered
	direct   map[*syntax.CallExpr]*instance // of types applied directly
	copied   map[string]bool                // parts of controls' parameters that have places of their own
}

// bail unwinds to Lower after an error that leaves nothing sensible to do.
type bail struct{}

// Lower translates the checked program into BMv2 JSON. The configuration is
// nil iff one of the errors is not a warning.
func Lower(file *syntax.File, info *types.Info, opts Options) (cfg *bmv2.Config, errs syntax.Errors) {
	l, errs := run(file, info, opts)
	if l == nil || errs.Err() != nil {
		return nil, errs
	}
	return l.cfg, errs
}

// run lowers everything; the lowerer knows afterwards what P4Info needs. A
// control that turns out to be applied to different arguments (blocks.go) asks
// for another run, in which its parameters have places of their own.
func run(file *syntax.File, info *types.Info, opts Options) (*lowerer, syntax.Errors) {
	copied := map[string]bool{}
	for {
		l := newLowerer(file, info, opts, copied)
		before := len(copied)
		if l.attempt(); len(copied) == before {
			return l, l.errs
		}
	}
}

func newLowerer(file *syntax.File, info *types.Info, opts Options, copied map[string]bool) *lowerer {
	l := &lowerer{
		file: file, info: info, opts: opts,
		cfg:         newConfig(opts),
		copied:      copied,
		names:       map[string]int{},
		claimed:     map[string]bool{},
		headerTypes: map[string]*bmv2.HeaderType{},
		headerIDs:   map[string]int{},
		unionIDs:    map[string]int{},
		fieldLists:  map[int]int{},
		ids:         map[string]int{},
		acts:        map[actionKey]*bmv2.Action{},
		profiles:    map[*instance]*bmv2.ActionProfile{},
		tables:      map[*syntax.TableDecl][]*table{},
		instances:   map[*syntax.InstDecl]*instance{},
		direct:      map[*syntax.CallExpr]*instance{},
	}
	l.scalars = &scalars{l: l}
	l.arch = architectureOf(l)
	return l
}

// attempt lowers the program as far as it goes.
func (l *lowerer) attempt() {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bail); !ok {
				panic(r)
			}
		}
	}()
	l.program()
}

func newConfig(opts Options) *bmv2.Config {
	compiler := opts.Compiler
	if compiler == "" {
		compiler = "p4lb"
	}
	meta := &bmv2.Meta{Version: []int{2, 24}, Compiler: compiler}
	if opts.Arch != v1modelName {
		meta.Architecture = opts.Arch
	}
	return &bmv2.Config{Program: opts.Program, Meta: meta}
}

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

// nextID counts the objects of each kind from 0.
func (l *lowerer) nextID(kind string) int {
	id := l.ids[kind]
	l.ids[kind] = id + 1
	return id
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

// program lowers the instance main.
func (l *lowerer) program() {
	main := l.info.Top["main"]
	if main == nil {
		return // a library: checked, nothing to emit
	}
	decl, _ := main.Decl.(*syntax.InstDecl)
	call := l.info.Insts[decl]
	if decl == nil || call == nil {
		l.errorf(main.Decl, "main must be an instance of the package %s", l.arch.traits().pkg)
		panic(bail{})
	}
	l.arch.program(decl, call)
	l.finishDirect()
	l.finishHeaders()
}

func typeName(t types.Type) string {
	if p, ok := t.(*types.Package); ok {
		return p.Name
	}
	return t.String()
}

// blockArg evaluates an argument of a package that is a parser or control.
func (l *lowerer) blockArg(arg syntax.Expr, pkg string) *instance {
	inst, ok := l.eval(arg, &env{l: l}).(*instance)
	if !ok {
		l.unsupported(arg, "%s as an argument of %s", syntax.String(arg), pkg)
	}
	if b, ok := types.BodyOf(inst.typ); ok {
		inst.name = names.Block(b)
	}
	return inst
}

// globals instantiates the extern objects declared at top level.
func (l *lowerer) globals() {
	root := &env{l: l}
	for _, d := range l.file.Decls {
		inst, ok := d.(*syntax.InstDecl)
		if !ok || inst.Name.Value == "main" {
			continue
		}
		if i, ok := l.topInstance(inst, root).(*instance); ok && i.extern() != nil {
			continue
		}
	}
}

// topInstance gives the one instance of a top-level instantiation.
func (l *lowerer) topInstance(d *syntax.InstDecl, root *env) value {
	if i := l.instances[d]; i != nil {
		return i
	}
	i := l.instantiate(d, l.info.Insts[d], root, names.Declared("", d.Annotations, d.Name))
	l.instances[d] = i
	return i
}
