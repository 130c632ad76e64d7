package lower

import (
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// tofino lowers what programs for TNA and T2NA have of their own, to a document
// of one pipe: a parser, a pipeline and a deparser of ingress, the same of
// egress, and nothing in common between the two but registers and the like.
//
// What Tofino tells a parser are bytes before the packet, which the program
// extracts. What it tells the controls and wants to be told are metadata
// headers of fixed names, with the fields of tofino.p4. All state of a gress is
// 0, and its headers invalid, when its parser begins.
type tofino struct {
	*lowerer
	gress *gress // that is being lowered
	// message is what the ghost thread is told; nil where there is none.
	message value
	// prefixes are the headers that Mirror and Resubmit objects put before packets.
	prefixes map[*instance]*header
}

// A gress is one half of a pipe: what its parser, control and deparser share.
type gress struct {
	name string // ingress or egress
	// own are the program's headers and metadata.
	hdrs, meta value
	// given are the places of the architecture's parameters, by their types.
	given map[string]value
}

// intrinsics lists the types of the architecture's parameters with the names of
// their instances.
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

// The packages of tna.p4 and t2na.p4.
const (
	switchPackage   = "Switch"
	pipelinePackage = "Pipeline"
)

func (l *tofino) traits() traits {
	return traits{runner: "p4lb", pkg: switchPackage, addHeader: "add_header_fast", branches: true, defaults: true}
}

// program lowers the one pipe of Switch.
func (l *tofino) program(decl *syntax.InstDecl, call *types.Call) {
	pkg, ok := call.Result.(*types.Package)
	if !ok || pkg.Name != switchPackage || len(call.Args) == 0 {
		l.unsupported(decl, "package %s; p4lb runs the package %s", typeName(call.Result), switchPackage)
	}
	pipe := call.Args[0]
	for _, other := range call.Args[1:] {
		if other != nil && !l.samePipe(pipe, other) {
			l.unsupported(other, "pipes with different programs")
		}
	}
	blocks := l.pipeBlocks(pipe)
	l.headerType0()
	l.globals()
	if len(blocks) > 6 {
		l.message = l.newMessage(blocks[6])
	}
	l.lowerGress("ingress", blocks[:3])
	l.lowerGress("egress", blocks[3:6])
	if len(blocks) > 6 {
		l.lowerGhost(blocks[6])
	}
}

func (l *tofino) samePipe(a, b syntax.Expr) bool {
	x, ok1 := syntax.Unparen(a).(*syntax.Name)
	y, ok2 := syntax.Unparen(b).(*syntax.Name)
	return ok1 && ok2 && l.info.Uses[x] == l.info.Uses[y]
}

// pipeBlocks evaluates the blocks of a Pipeline, which is made in place or has a
// name: six, and the ghost thread's.
func (l *tofino) pipeBlocks(x syntax.Expr) []*instance {
	var call *types.Call
	switch n := syntax.Unparen(x).(type) {
	case *syntax.Name:
		if o := l.info.Uses[n]; o != nil {
			if d, ok := o.Decl.(*syntax.InstDecl); ok {
				call = l.info.Insts[d]
			}
		}
	case *syntax.CallExpr:
		call = l.info.Calls[n]
	}
	if call == nil || typeName(call.Result) != pipelinePackage {
		l.unsupported(x, "%s as a pipe", syntax.String(x))
	}
	var blocks []*instance
	for _, arg := range call.Args {
		if arg == nil {
			continue
		}
		blocks = append(blocks, l.blockArg(arg, pipelinePackage))
	}
	return blocks
}

// lowerGress lowers a parser, a control and a deparser.
func (l *tofino) lowerGress(name string, blocks []*instance) {
	parser, control, deparser := blocks[0], blocks[1], blocks[2]
	l.gress = l.newGress(name, parser)
	l.hdrs = l.gress.hdrs
	p := l.lowerParser(name+"_parser", parser, l.args(parser)...)
	l.block = ingressBlock
	if name == "egress" {
		l.block = egressBlock
	}
	l.lowerPipeline(name, control, l.args(control)...)
	p.ReadsError = l.gress.intrinsic("from_parser", "parser_err").named
	l.lowerDeparser(name+"_deparser", deparser, l.args(deparser)...)
}

// newGress makes the places of what the blocks of a gress share.
func (l *tofino) newGress(name string, parser *instance) *gress {
	g := &gress{name: name, given: map[string]value{}}
	for _, in := range intrinsics[name] {
		t, ok := l.topType(in.typ).(*types.Struct)
		switch {
		case !ok:
			l.unsupported(parser.at, "a program without %s", in.typ)
		case t.Kind == syntax.StructKindHeader:
			g.given[in.typ] = l.newHeader(l.unique(in.name), t, false)
		default:
			g.given[in.typ] = l.metadataHeader(l.unique(in.name), in.typ, t)
		}
	}
	if l.message != nil && name == "ingress" {
		g.given[messageType] = l.message
	}
	l.watchTypes(g)
	own := l.ownParams(parser, g)
	if len(own) != 2 {
		l.unsupported(parser.at, "a parser with these parameters as a block of %s", pipelinePackage)
	}
	g.hdrs = l.archHeaders(name+".", l.paramType(parser, own[0]), own[0])
	if t := l.paramType(parser, own[1]); isStruct(t) {
		g.meta = l.userMetadata(name+".meta.", t, own[1])
	} else {
		g.meta = l.alloc(name+".meta", t, false)
	}
	return g
}

// watchTypes notes whether the program writes the fields that tell which object
// of the deparser is to do something, if 0 is one of their values: a packet for
// which they are not written is not for that one.
func (l *tofino) watchTypes(g *gress) {
	for _, w := range []struct{ extern, field string }{{"Resubmit", "resubmit_type"}, {"Digest", "digest_type"}} {
		if f := g.intrinsic("for_deparser", w.field); f != nil && l.hasZeroType(w.extern) {
			f.asked = l.scalars.add(l.unique(f.header+"."+f.name), scalar{width: 1}, false)
		}
	}
}

// hasZeroType reports whether the program has an object of the extern whose
// type is 0, or not known.
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

func isStruct(t types.Type) bool {
	s, ok := t.(*types.Struct)
	return ok && s.Kind == syntax.StructKindStruct
}

func (l *tofino) paramType(inst *instance, p *syntax.Param) types.Type {
	return underlying(inst.env.subst(l.info.Defs[p].Type))
}

// ownParams lists the parameters of a block whose types the program chooses.
func (l *tofino) ownParams(inst *instance, g *gress) []*syntax.Param {
	b, _ := bodyOf(inst.typ)
	var own []*syntax.Param
	for _, p := range b.params {
		t := l.paramType(inst, p)
		if _, isExtern := t.(*types.Extern); !isExtern && g.of(t) == nil {
			own = append(own, p)
		}
	}
	return own
}

// of is the place of a parameter of the architecture's type t.
func (g *gress) of(t types.Type) value {
	if s, ok := t.(*types.Struct); ok {
		return g.given[s.Name]
	}
	return nil
}

// args are the arguments of a block. Most of the architecture's parameters are
// optional, so that types and not places tell what is what.
func (l *tofino) args(inst *instance) []value {
	b, _ := bodyOf(inst.typ)
	own := []value{l.gress.hdrs, l.gress.meta}
	var args []value
	for _, p := range b.params {
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

// intrinsic is a field of the architecture's metadata, nil where the gress has
// no such field.
func (g *gress) intrinsic(typ, name string) *field {
	for _, f := range leaves(g.given[g.name+"_intrinsic_metadata_"+typ+"_t"]) {
		if f.name == name {
			return f
		}
	}
	return nil
}
