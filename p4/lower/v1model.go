package lower

import (
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// v1modelName is what Options call the architecture.
const v1modelName = "v1model"

// v1model lowers what programs for BMv2's simple_switch have of their own.
type v1model struct{ *lowerer }

// v1switch is the package of v1model.p4.
const v1switch = "V1Switch"

func (l v1model) traits() traits {
	return traits{runner: "BMv2", pkg: v1switch, addHeader: "add_header"}
}

// program lowers the six programmable blocks of V1Switch.
func (l v1model) program(decl *syntax.InstDecl, call *types.Call) {
	pkg, ok := call.Result.(*types.Package)
	if !ok || pkg.Name != v1switch || len(call.Args) != 6 {
		l.unsupported(decl, "package %s; the architecture is v1model, whose package is V1Switch", typeName(call.Result))
	}
	var p [6]*instance
	for i, arg := range call.Args {
		p[i] = l.blockArg(arg, v1switch)
	}
	parser, verify, ingress, egress, compute, deparser := p[0], p[1], p[2], p[3], p[4], p[5]
	t, isParser := parser.typ.(*types.Parser)
	if !isParser || len(t.Decl.Params) != 4 {
		l.unsupported(parser.at, "this parser; V1Switch wants one with four parameters")
	}
	meta, std := l.places(parser, t)
	l.globals()
	l.lowerParser("parser", parser, l.packet(t.Decl.Params[0]), l.hdrs, meta, std)
	l.block = ingressBlock
	l.lowerPipeline("ingress", ingress, l.hdrs, meta, std)
	l.block = egressBlock
	l.lowerPipeline("egress", egress, l.hdrs, meta, std)
	l.block = deparserBlock
	c, ok := types.BodyOf(deparser.typ)
	if !ok || len(c.Params) != 2 {
		l.unsupported(deparser.at, "this deparser; V1Switch wants a control with two parameters")
	}
	l.lowerDeparser("deparser", deparser, l.packet(c.Params[0]), l.hdrs)
	l.block = computeBlock
	l.lowerChecksums(compute, false, meta)
	l.block = verifyBlock
	l.lowerChecksums(verify, true, meta)
}

// places makes the places of V1Switch's parameters: the headers, the user's
// metadata and the standard metadata.
func (l v1model) places(parser *instance, t *types.Parser) (meta, std value) {
	paramType := func(i int) types.Type {
		return types.Underlying(parser.env.subst(l.info.Defs[t.Decl.Params[i]].Type))
	}
	l.headerType0()
	std = l.metadataHeader(standardName, standardName, paramType(3))
	l.hdrs = l.archHeaders("", paramType(1), t.Decl.Params[1])
	return l.userMetadata("userMetadata.", paramType(2), t.Decl.Params[2]), std
}

// finish: v1model has nothing more.
func (l v1model) finish(*instance) {}

func (l v1model) selectorAlgorithm(inst *instance) string {
	return l.hashAlgorithm(inst.args[0], inst.at)
}
