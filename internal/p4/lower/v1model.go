package lower

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// v1model lowers the constructs that are specific to BMv2's simple_switch.
type v1model struct{ *lowerer }

// v1switch is the package of v1model.p4.
const v1switch = "V1Switch"

func (l v1model) traits() traits {
	return traits{runner: "BMv2", target: "BMv2", pkg: v1switch, addHeader: "add_header"}
}

// program lowers the six programmable blocks of V1Switch.
func (l v1model) program(decl *syntax.InstDecl, call *types.Call) {
	pkg, ok := call.Result.(*types.Package)
	if !ok || pkg.Name != v1switch || len(call.Args) != 6 {
		l.unsupported(decl, "package %s: the package of v1model is V1Switch", typeName(call.Result))
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

// places creates the places of V1Switch's parameters: headers, user metadata and
// standard metadata.
func (l v1model) places(parser *instance, t *types.Parser) (meta, std value) {
	paramType := func(i int) types.Type {
		return types.Underlying(parser.env.subst(l.info.Defs[t.Decl.Params[i]].Type))
	}
	l.reserveScalars()
	std = l.metadataHeader(standardName, standardName, paramType(3))
	l.hdrs = l.archHeaders("", paramType(1), t.Decl.Params[1])
	return l.userMetadata("userMetadata.", paramType(2), t.Decl.Params[2]), std
}

// finish does nothing: no extern of v1model depends on tables.
func (l v1model) finish(*instance) {}

func (l v1model) selectorAlgorithm(inst *instance) string {
	return l.hashAlgorithm(inst.args[0], inst.at)
}

// declare emits an extern object of v1model.
func (l v1model) declare(i *instance) bool {
	switch i.extern().Name {
	case "counter":
		l.declareCounter(i)
	case "meter":
		l.declareMeter(i)
	case "register":
		l.declareRegister(i)
	case "direct_counter", "direct_meter", "action_profile", "action_selector", "Checksum16", "packet_in", "packet_out":
	default:
		return false
	}
	return true
}

// method lowers the methods of v1model's extern objects.
func (l v1model) method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value {
	kind := inst.extern().Name
	switch kind + "." + method {
	case "counter.count":
		l.prim("count", bmv2.Ref(bmv2.TypeCounterArray, inst.name), l.scalar(call.Args[0], e))
		return nil
	case "direct_counter.count":
		l.uses(inst)
		return nil
	case "direct_meter.read":
		l.uses(inst)
		// BMv2 runs a direct meter during the lookup and stores the colour in one
		// fixed field, which the meter names.
		p := l.lvalue(call.Args[0], e)
		f, ok := p.(*field)
		if !ok {
			l.unsupported(x, "reading a direct meter into anything but a field")
		}
		if inst.target != nil && inst.target != value(f) {
			l.unsupported(x, "reading direct meter %s into two different fields", inst.name)
		}
		inst.target = f
		return nil
	case "meter.execute_meter", "meter.execute":
		args := l.operands(call, e)
		d := l.destination(args[1], call.Type.Params[1].Type, x)
		l.prim("execute_meter", bmv2.Ref(bmv2.TypeMeterArray, inst.name), l.toEx(args[0], x), d.f)
		d.back()
		return nil
	case "register.read":
		args := l.operands(call, e)
		t := e.subst(call.Type.Params[0].Type)
		if isStructured(t) {
			l.assign(args[0], l.readCell(inst, l.toEx(args[1], x), t))
			return nil
		}
		d := l.destination(args[0], t, x)
		l.prim("register_read", d.f, bmv2.Ref(bmv2.TypeRegisterArray, inst.name), l.toEx(args[1], x))
		d.back()
		return nil
	case "register.write":
		args := l.operands(call, e)
		if t := e.subst(call.Type.Params[1].Type); isStructured(t) {
			l.writeCell(inst, l.toEx(args[0], x), args[1], t)
			return nil
		}
		v := l.toEx(args[1], x)
		l.prim("register_write", bmv2.Ref(bmv2.TypeRegisterArray, inst.name), l.toEx(args[0], x), boolData(v, v.st))
		return nil
	}
	if kind == "Checksum16" || kind == "packet_in" || kind == "packet_out" {
		l.unsupported(x, "the method %s of %s in v1model on BMv2", method, kind)
	}
	self := bmv2.Ref(bmv2.TypeExtern, inst.name)
	return l.foreign(x, "_"+kind+"_"+method, []any{self}, call, e)
}

// function lowers the extern functions of v1model.p4.
func (l v1model) function(x *syntax.CallExpr, call *types.Call, e *env) value {
	name := call.Callee.Name
	switch name {
	case "mark_to_drop":
		l.prim("mark_to_drop", bmv2.Ref(bmv2.TypeHeader, standardName))
	case "random":
		args := l.operands(call, e)
		d := l.destination(args[0], call.Type.Params[0].Type, x)
		lo, hi := l.toEx(args[1], x), l.toEx(args[2], x)
		for _, bound := range []*ex{lo, hi} { // BMv2 crashes on a negative bound
			if bound.st.signed && (!bound.isConst() || bound.v.Sign() < 0) {
				l.unsupported(x, "random numbers between bounds that may be negative")
			}
		}
		l.prim("modify_field_rng_uniform", d.f, lo, hi)
		d.back()
	case "hash":
		// The result is base + H(data) % max.
		args := l.operands(call, e)
		d := l.destination(args[0], call.Type.Params[0].Type, x)
		algo := l.hashAlgorithm(args[1], call.Args[1])
		input := l.hashInput(args[3], call.Args[3])
		l.prim("modify_field_with_hash_based_offset", d.f, l.toEx(args[2], x), l.calculation(algo, input, false), l.toEx(args[4], x))
		d.back()
	case "digest":
		l.digest(x, call, e)
	case "clone", "clone3", "clone_preserving_field_list":
		l.clone(x, call, e)
	case "resubmit", "resubmit_preserving_field_list":
		l.repeatPass(x, "resubmit", ingressBlock, call, e)
	case "recirculate", "recirculate_preserving_field_list":
		l.repeatPass(x, "recirculate", egressBlock, call, e)
	case "truncate":
		l.prim("truncate", l.scalar(call.Args[0], e))
	case "assert", "assume":
		l.prim(name, boolData(l.scalar(call.Args[0], e), scalar{width: 1}))
	case "log_msg":
		l.logMsg(x, call, e)
	case "verify_checksum", "verify_checksum_with_payload", "update_checksum", "update_checksum_with_payload":
		l.unsupported(x, "%s outside of the checksum controls", name)
	default:
		return l.foreign(x, name, nil, call, e)
	}
	return nil
}

// digest sends a learn list that has the name of the struct.
func (l v1model) digest(x *syntax.CallExpr, call *types.Call, e *env) {
	args := l.operands(call, e)
	name := ""
	if len(call.TypeArgs) > 0 {
		if s, ok := types.Underlying(e.subst(call.TypeArgs[0])).(*types.Struct); ok {
			name = l.headerTypeName(s)
		}
	}
	if name == "" {
		name = fmt.Sprintf("digest_%d", l.nextID("unnamed digests"))
	}
	id := l.learnList(name, args[1], x, call.Args[1])
	l.prim("generate_digest", l.toEx(args[0], x), id)
}

// clone lowers the calls that clone a packet: type, session and, if metadata are
// preserved, a field list.
func (l v1model) clone(x *syntax.CallExpr, call *types.Call, e *env) {
	args := l.operands(call, e)
	kind := l.toEx(args[0], x)
	if !kind.isConst() {
		l.unsupported(x, "a clone with a type that is not a constant")
	}
	op, want, label := "clone_ingress_pkt_to_egress", ingressBlock, "I2E"
	if kind.v.Sign() != 0 {
		op, want, label = "clone_egress_pkt_to_egress", egressBlock, "E2E"
	}
	if l.block != want {
		l.unsupported(x, "clone(%s, …) outside of the %s", label, blockName(want))
	}
	var list *bmv2.FieldList
	if call.Callee.Name == "clone" {
		list = l.anonymousList(nil)
	} else {
		list = l.preserved(call.Callee.Name == "clone3", args[2], call.Args[2])
	}
	l.prim(op, l.toEx(args[1], x), intEx(int64(list.ID), code32))
}

func blockName(b block) string {
	if b == ingressBlock {
		return "ingress"
	}
	return "egress"
}

// preserved returns the field list that a call names by number or, in the
// deprecated forms, by the data.
func (l v1model) preserved(inline bool, arg value, x syntax.Expr) *bmv2.FieldList {
	if inline {
		return l.anonymousList(l.inputs(arg, x))
	}
	v := l.toEx(arg, x)
	if !v.isConst() || !v.v.IsInt64() {
		l.unsupported(x, "a field list with a number that is not a constant")
	}
	index := int(v.v.Int64())
	if _, ok := l.fieldLists[index]; !ok {
		l.report(x, true, "no metadata field is marked @field_list(%d): nothing is preserved", index)
	}
	return l.fieldList(index)
}

func (l v1model) anonymousList(elems []*bmv2.Expr) *bmv2.FieldList {
	if elems == nil {
		elems = []*bmv2.Expr{}
	}
	list := &bmv2.FieldList{ID: len(l.cfg.FieldLists) + 1, Elements: elems}
	list.Name = fmt.Sprintf("fl_%d", list.ID)
	l.cfg.FieldLists = append(l.cfg.FieldLists, list)
	return list
}

// repeatPass lowers resubmit and recirculate.
func (l v1model) repeatPass(x *syntax.CallExpr, op string, want block, call *types.Call, e *env) {
	if l.block != want {
		l.unsupported(x, "%s outside of the %s", op, blockName(want))
	}
	list := l.preserved(call.Callee.Name == op, l.eval(call.Args[0], e), call.Args[0])
	l.prim(op, intEx(int64(list.ID), code32))
}

func (l v1model) logMsg(x *syntax.CallExpr, call *types.Call, e *env) {
	msg := l.scalar(call.Args[0], e)
	if msg.op != opString {
		l.unsupported(x, "a message that is not a literal")
	}
	format := msg.str
	var list []*bmv2.Expr
	if len(call.Args) > 1 {
		format, list = l.logValues(format, l.eval(call.Args[1], e), x)
	}
	l.prim("log_msg", &bmv2.Expr{Type: bmv2.TypeString, Name: format}, bmv2.Vector(list...))
}

// logValues expands a log message's format, and returns the format with the numbers
// that fill its placeholders. Each {} takes one value. For a header or struct, the
// {} becomes (field:{},field:{}), as simple_switch prints it.
func (l v1model) logValues(format string, v value, x *syntax.CallExpr) (string, []*bmv2.Expr) {
	elems := []value{v}
	if a, ok := v.(*aggregate); ok {
		elems = a.elems
	}
	var list []*bmv2.Expr
	rest, shown := format, ""
	for _, el := range elems {
		text, numbers := l.logValue(el, x)
		list = append(list, numbers...)
		before, place, after := cutPlace(rest)
		if len(numbers) != 1 && place != "" {
			place = text
		}
		shown, rest = shown+before+place, after
	}
	return shown + rest, list
}

// cutPlace splits a format at its first {…}; place is "" if there is none.
func cutPlace(s string) (before, place, after string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			continue
		}
		if n := strings.IndexByte(s[i:], '}'); s[i] == '{' && n > 0 {
			return s[:i], s[i : i+n+1], s[i+n+1:]
		}
	}
	return s, "", ""
}

// logValue returns the placeholder text for one value, and its numbers.
func (l v1model) logValue(v value, x *syntax.CallExpr) (string, []*bmv2.Expr) {
	var names []string
	var parts []value
	switch v := v.(type) {
	case *aggregate:
		names, _, _ = components(v.typ)
		parts = v.elems
	case *header:
		for _, f := range v.fields {
			names = append(names, f.name)
			parts = append(parts, f)
		}
	default:
		return "{}", []*bmv2.Expr{param(l.toEx(v, x))}
	}
	var texts []string
	var list []*bmv2.Expr
	for i, p := range parts {
		text, numbers := l.logValue(p, x)
		list = append(list, numbers...)
		texts = append(texts, names[i]+":"+text)
	}
	return "(" + strings.Join(texts, ",") + ")", list
}
