package lower

import (
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// tofino lowers programs for TNA and T2NA to a document of one pipe: a parser, a
// pipeline and a deparser for ingress, and the same for egress. Ingress and egress
// share only registers and other extern objects. If the pipes have different
// programs, the document contains all of them, the names of the second pipe's
// objects in the document begin with pipe1, and so on. Names for the control plane
// begin with the pipe's name.
//
// A parser receives Tofino's metadata as bytes before the packet, and the program
// extracts them. Controls read and write other metadata in headers with fixed names
// and the fields of tofino.p4. When a parser starts, all state of its gress is 0
// and its headers are invalid.
type tofino struct {
	*lowerer
	gress *gress // the gress that is being lowered
	// pipe is the prefix for names in the document of the current pipe.
	pipe string
	// shared maps an instance name to the place of the architecture's metadata.
	shared map[string]value
	// message is the metadata of the ghost thread, or nil if there is no ghost
	// thread.
	message value
	// logs maps a register to the register that counts its log entries.
	logs map[*instance]*bmv2.Expr
	// queues maps a register to the register with the indices of its queue or
	// stack.
	queues map[*instance]*bmv2.Expr
	// counters are the values below the top of each parser counter.
	counters map[*instance][]coveredCounter
	// deposits are the checksum residuals to write when the parser of the gress
	// ends.
	deposits []*instr
	// prefixes are the headers that Mirror and Resubmit objects add before packets.
	prefixes map[*instance]*header
}

// A gress is the ingress or the egress of a pipe: the state that its parser,
// control and deparser share.
type gress struct {
	name string // ingress or egress
	// headers and metadata of the program
	hdrs, meta value
	// given maps a type of the architecture to the place of the parameter.
	given map[string]value
}

// intrinsics maps a gress to the types of the architecture's parameters and the
// names of their instances.
var intrinsics = map[string][]struct{ typ, name string }{
	"ingress": {
		{"ingress_intrinsic_metadata_t", "ig_intr_md"},
		{"ingress_intrinsic_metadata_from_parser_t", "ig_prsr_md"},
		{"ingress_intrinsic_metadata_for_deparser_t", "ig_dprsr_md"},
		{"ingress_intrinsic_metadata_for_tm_t", "ig_tm_md"},
	},
	"egress": {
		{"egress_intrinsic_metadata_t", "eg_intr_md"},
		{"egress_intrinsic_metadata_from_parser_t", "eg_prsr_md"},
		{"egress_intrinsic_metadata_for_deparser_t", "eg_dprsr_md"},
		{"egress_intrinsic_metadata_for_output_port_t", "eg_oport_md"},
	},
}

// The packages of tna.p4 and t2na.p4 that hold the blocks of a pipe.
const (
	pipelinePackage      = "Pipeline"
	multiPipelinePackage = "MultiParserPipeline"
)

func (l *tofino) traits() traits {
	return traits{runner: "p4lb", target: "Tofino", wideShifts: true, pkg: "Switch", addHeader: "add_header_fast", branches: true, defaults: true, divides: true}
}

// program lowers the pipes of Switch, or one pipe if all have the same program.
func (l *tofino) program(decl *syntax.InstDecl, call *types.Call) {
	if l.opts.Arch == bmv2.TNA && names.Tofino2(l.info) {
		l.cfg.Meta.Chip = bmv2.T2NA
	}
	pipes, of := names.Pipes(l.info, call)
	if len(pipes) == 0 {
		l.unsupported(decl, "package %s; p4lb runs the package %s", typeName(call.Result), l.traits().pkg)
	}
	var blocks [][]*instance
	for k, pipe := range pipes {
		list := l.pipeBlocks(pipe)
		for _, b := range list {
			if len(pipes) > 1 {
				b.name = names.Pipe(pipe, k) + "." + b.name
			}
		}
		blocks = append(blocks, list)
	}
	l.reserveScalars()
	l.globals()
	for k, list := range blocks {
		if k > 0 {
			l.pipe = bmv2.PipePrefix(k)
			l.cfg.Meta.Pipes = of
		}
		l.lowerPipe(list)
	}
}

// lowerPipe lowers the program of a pipe.
func (l *tofino) lowerPipe(blocks []*instance) {
	l.message = nil
	if len(blocks) > 6 || l.wantsMessage(blocks[1]) {
		t, ok := l.topType(messageType).(*types.Struct)
		if !ok {
			l.unsupported(blocks[1].at, "a ghost thread without %s", messageType)
		}
		l.message = l.intrinsic(messageName, t)
	}
	l.lowerGress("ingress", blocks[:3])
	l.lowerGress("egress", blocks[3:6])
	if len(blocks) > 6 {
		// the ghost thread's control
		control := blocks[6]
		l.gress = &gress{name: ghostThread, given: map[string]value{messageType: l.message}}
		l.block, l.hdrs = ingressBlock, nil
		l.lowerPipeline(l.pipe+ghostThread, control, l.args(control)...)
		for _, f := range leaves(l.message) {
			l.pipeline.PingPong = l.pipeline.PingPong || f.name == "ping_pong" && f.named
		}
	}
}

// construction returns the call that constructs a package, either in x itself or in
// the declaration that x names.
func construction(info *types.Info, x syntax.Expr) *types.Call {
	switch n := syntax.Unparen(x).(type) {
	case *syntax.Name:
		if o := info.Uses[n]; o != nil {
			if d, ok := o.Decl.(*syntax.InstDecl); ok {
				return info.Insts[d]
			}
		}
	case *syntax.CallExpr:
		return info.Calls[n]
	}
	return nil
}

// pipeBlocks evaluates the blocks of a Pipeline: six, and the ghost thread's
// control if there is one.
func (l *tofino) pipeBlocks(x syntax.Expr) []*instance {
	call := construction(l.info, x)
	if call == nil || typeName(call.Result) != pipelinePackage && typeName(call.Result) != multiPipelinePackage {
		l.unsupported(x, "%s as a pipe", syntax.String(x))
	}
	var blocks []*instance
	for _, arg := range call.Args {
		if arg == nil {
			continue
		}
		blocks = append(blocks, l.blockArg(l.firstParser(arg), pipelinePackage))
	}
	return blocks
}

// firstParser returns the first of several parsers; the hardware assigns one to
// each port. It returns arg itself if arg is neither IngressParsers nor
// EgressParsers.
func (l *tofino) firstParser(arg syntax.Expr) syntax.Expr {
	call := construction(l.info, arg)
	if call == nil {
		return arg
	}
	if _, ok := call.Result.(*types.Package); !ok || len(call.Args) == 0 {
		return arg
	}
	if slices.ContainsFunc(call.Args[1:], func(x syntax.Expr) bool { return x != nil }) {
		l.report(arg, true, "p4lb uses the first parser for all ports: it does not know the parsers of the ports")
	}
	return call.Args[0]
}

// lowerGress lowers a parser, a control and a deparser.
func (l *tofino) lowerGress(name string, blocks []*instance) {
	parser, control, deparser := blocks[0], blocks[1], blocks[2]
	l.gress = l.newGress(name, parser)
	l.hdrs = l.gress.hdrs
	l.deposits = nil
	p := l.lowerParser(l.pipe+name+"_parser", parser, l.args(parser)...)
	if len(l.deposits) > 0 {
		l.after(p, lists.Map(l.deposits, l.parserOp))
	}
	if name == "egress" && !extracts(p, "eg_intr_md") {
		l.before(p, "advance", intEx(int64(l.widthOf(l.topType("egress_intrinsic_metadata_t"))), code32))
	}
	if h, ok := l.gress.meta.(*header); ok {
		l.before(p, "add_header_fast", h) // metadata headers keep their fields, whatever their type
	}
	l.block = ingressBlock
	if name == "egress" {
		l.block = egressBlock
	}
	l.lowerPipeline(l.pipe+name, control, l.args(control)...)
	p.ReadsError = l.gress.intrinsic("from_parser", "parser_err").named
	if f := l.gress.intrinsic("for_deparser", "adv_flow_ctl"); f != nil && f.named {
		l.cfg.Meta.FlowControl = true
	}
	if f := l.gress.intrinsic("for_tm", "deflect_on_drop"); f != nil && f.named {
		l.report(control.at, true, "deflect_on_drop has no effect: the switch drops a packet that finds its queue full and deflects none")
	}
	l.lowerDeparser(l.pipe+name+"_deparser", deparser, l.args(deparser)...)
}

// extracts reports whether the parser reads the header called name.
func extracts(p *bmv2.Parser, name string) bool {
	for _, st := range p.ParseStates {
		for _, op := range st.ParserOps {
			if op.Op == "extract" && op.Parameters[0].Name == name {
				return true
			}
		}
	}
	return false
}

// before inserts an operation before everything else in the parser. It adds a new
// start state, because the program's first state may be entered again.
func (l *tofino) before(p *bmv2.Parser, op string, args ...any) {
	first := &bmv2.ParseState{
		Name: "$before_" + p.InitState, ID: l.nextID("parse_states"),
		ParserOps:   []*bmv2.ParserOp{l.parserOp(&instr{kind: iPrim, prim: op, args: args})},
		Transitions: []bmv2.Transition{{Type: "default"}}, TransitionKey: []*bmv2.Expr{},
	}
	if len(p.ParseStates) > 0 {
		first.Transitions = jumpTo(p.InitState)
	}
	p.ParseStates = append([]*bmv2.ParseState{first}, p.ParseStates...)
	p.InitState = first.Name
}

// after adds a state with the operations ops, and redirects every transition that
// ends the parser to it.
func (l *tofino) after(p *bmv2.Parser, ops []*bmv2.ParserOp) {
	last := &bmv2.ParseState{
		Name: "$after_" + p.Name, ID: l.nextID("parse_states"),
		ParserOps: ops, Transitions: []bmv2.Transition{{Type: "default"}}, TransitionKey: []*bmv2.Expr{},
	}
	for _, st := range p.ParseStates {
		for i := range st.Transitions {
			if t := &st.Transitions[i]; t.NextState == "" {
				t.NextState = last.Name
			}
		}
	}
	p.ParseStates = append(p.ParseStates, last)
}

// newGress creates the places that the blocks of a gress share.
func (l *tofino) newGress(name string, parser *instance) *gress {
	g := &gress{name: name, given: map[string]value{}}
	for _, in := range intrinsics[name] {
		t, ok := l.topType(in.typ).(*types.Struct)
		if !ok {
			l.unsupported(parser.at, "a program without %s", in.typ)
		}
		g.given[in.typ] = l.intrinsic(in.name, t)
	}
	if l.message != nil && name == "ingress" {
		g.given[messageType] = l.message
	}
	// written records whether the program wrote a field that selects an object of
	// the deparser (resubmit_type and the like). It is needed if 0 is the number of
	// an object: a packet without such a write selects none. A program may read the
	// record with is_validated.
	for _, w := range []struct{ extern, field string }{{"Resubmit", "resubmit_type"}, {"Digest", "digest_type"}, {"", "mirror_type"}} {
		if f := g.intrinsic("for_deparser", w.field); f != nil && f.written == nil && (w.extern != "" && l.hasZeroType(w.extern) || l.calls("is_validated")) {
			f.written = l.scalars.add(l.unique(f.header+"."+f.name), scalar{width: 1}, false)
		}
	}
	// The program chooses the types of these parameters.
	b, _ := types.BodyOf(parser.typ)
	var own []*syntax.Param
	for _, p := range b.Params {
		t := l.paramType(parser, p)
		if _, isExtern := t.(*types.Extern); !isExtern && g.of(t) == nil {
			own = append(own, p)
		}
	}
	if len(own) != 2 {
		l.unsupported(parser.at, "a parser with these parameters as a block of %s", pipelinePackage)
	}
	g.hdrs = l.archHeaders(l.pipe+name+".", l.paramType(parser, own[0]), own[0])
	if t, ok := l.paramType(parser, own[1]).(*types.Struct); ok && t.Kind == syntax.StructKindStruct {
		g.meta = l.userMetadata(l.pipe+name+".meta.", t, own[1])
	} else {
		g.meta = l.alloc(l.pipe+name+".meta", t, false)
	}
	return g
}

// intrinsic returns the place of the architecture's metadata, which all pipes
// share.
func (l *tofino) intrinsic(name string, t *types.Struct) value {
	v, ok := l.shared[name]
	switch {
	case ok:
	case t.Kind == syntax.StructKindHeader && name != messageName:
		v = l.newHeader(l.unique(name), t, false)
	default:
		v = l.metadataHeader(l.unique(name), t.Name, t)
	}
	l.shared[name] = v
	for _, f := range leaves(v) {
		f.named = false
	}
	return v
}

// calls reports whether the program calls the extern function called name.
func (l *tofino) calls(name string) bool {
	for _, c := range l.info.Calls {
		if c.Kind == types.ExternCall && c.Callee != nil && c.Callee.Name == name {
			return true
		}
	}
	return false
}

// hasZeroType reports whether an object of the extern has the type 0, or a type
// that is not constant.
func (l *tofino) hasZeroType(extern string) bool {
	for _, call := range l.info.Insts {
		if x, ok := call.Result.(*types.Extern); !ok || x.Name != extern {
			continue
		}
		if len(call.Args) == 0 {
			return true
		}
		if n := types.Number(l.info.Types[syntax.Unparen(call.Args[0])].Value); n == nil || n.Sign() == 0 {
			return true
		}
	}
	return false
}

func (l *tofino) topType(name string) types.Type {
	if o := l.info.Top[name]; o != nil {
		return o.Type
	}
	return nil
}

// wantsMessage reports whether a control has a parameter for the ghost thread's
// metadata. A pipe without a ghost thread may have one too.
func (l *tofino) wantsMessage(control *instance) bool {
	b, _ := types.BodyOf(control.typ)
	return slices.ContainsFunc(b.Params, func(p *syntax.Param) bool {
		s, ok := l.paramType(control, p).(*types.Struct)
		return ok && s.Name == messageType
	})
}

func (l *tofino) paramType(inst *instance, p *syntax.Param) types.Type {
	return types.Underlying(inst.env.subst(l.info.Defs[p].Type))
}

// of returns the place of the parameter with the architecture's type t.
func (g *gress) of(t types.Type) value {
	if s, ok := t.(*types.Struct); ok {
		return g.given[s.Name]
	}
	return nil
}

// args returns the arguments of a block. Most parameters of the architecture are
// optional, so args finds them by type and not by position.
func (l *tofino) args(inst *instance) []value {
	b, _ := types.BodyOf(inst.typ)
	own := []value{l.gress.hdrs, l.gress.meta}
	var args []value
	for _, p := range b.Params {
		t := l.paramType(inst, p)
		given := l.gress.of(t)
		_, isExtern := t.(*types.Extern)
		switch {
		case isExtern:
			args = append(args, l.packet(p))
		case given != nil:
			args = append(args, given)
		case len(own) > 0:
			args = append(args, own[0])
			own = own[1:]
		default:
			l.unsupported(p, "the parameter %s of a block of %s", p.Name.Value, pipelinePackage)
		}
	}
	return args
}

// intrinsic returns a field of the architecture's metadata, or nil if the gress
// does not have this field.
func (g *gress) intrinsic(typ, name string) *field {
	return lists.First(leaves(g.given[g.name+"_intrinsic_metadata_"+typ+"_t"]), func(f *field) bool { return f.name == name })
}

// A coveredCounter is a value below the top of a parser counter. If follows is 1, a
// change of the value above changes it too.
type coveredCounter struct{ value, follows *field }

// The ghost thread of Tofino 2 is a control without packets. The traffic manager
// gives it metadata under a fixed name. Ingress may read this metadata too.
const (
	ghostThread = "ghost"
	messageType = "ghost_intrinsic_metadata_t"
	messageName = "gh_intr_md"
)
