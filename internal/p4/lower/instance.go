package lower

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// globals instantiates the extern objects declared at top level.
func (l *lowerer) globals() {
	root := &env{l: l}
	for _, d := range l.file.Decls {
		if inst, ok := d.(*syntax.InstDecl); ok && inst.Name.Value != "main" {
			l.topInstance(inst, root)
		}
	}
}

// topInstance returns the instance of a top-level instantiation, which it creates
// on first use.
func (l *lowerer) topInstance(d *syntax.InstDecl, root *env) *instance {
	if i := l.instances[d]; i != nil {
		return i
	}
	i := l.instantiate(d, l.info.Insts[d], root, names.Declared("", d.Annotations, d.Name))
	l.instances[d] = i
	return i
}

// instantiate evaluates a constructor call.
func (l *lowerer) instantiate(d *syntax.InstDecl, call *types.Call, e *env, name string) *instance {
	l.spend(costCall)
	i := &instance{
		typ: e.subst(call.Result), decl: d, name: name, outer: e, at: l.at, block: l.block,
		vars: map[variable]value{}, params: map[string]value{}, users: map[*bmv2.Action]bool{},
	}
	if d != nil {
		i.at = d
	}
	switch t := i.typ.(type) {
	case *types.Control:
		i.env = l.bodyEnv(i, t.Ctor, call, e)
	case *types.Parser:
		i.env = l.bodyEnv(i, t.Ctor, call, e)
	case *types.Extern:
		for k, arg := range call.Args {
			i.args = append(i.args, l.argument(arg, call.Type, k, e))
		}
		l.externs = append(l.externs, i)
		if i.name != "" {
			l.claim(i.extern().Name, i.name, i.at)
		}
		if !l.arch.declare(i) {
			// An extern that v1model does not define. It must be built into the
			// BMv2 or loaded at its start.
			out := &bmv2.ExternInstance{Name: i.name, ID: l.nextID("extern_instances"), SourceInfo: l.source(i.at), Type: i.extern().Name}
			// Attributes have the names of the constructor's parameters.
			var names []string
			for _, m := range i.extern().Methods {
				if m.IsCtor && len(m.Type.Params) == len(i.args) {
					for _, p := range m.Type.Params {
						names = append(names, p.Name)
					}
					break
				}
			}
			for k, m := range names {
				if v, ok := i.args[k].(*ex); ok && v.isConst() {
					out.AttributeValues = append(out.AttributeValues, bmv2.ExternAttribute{Name: m, Value: bmv2.Hex(v.v, bytesOf(v.st.width))})
				}
			}
			l.cfg.ExternInstances = append(l.cfg.ExternInstances, out)
		}
	}
	return i
}

// bodyEnv returns the environment for the declarations of a parser or control.
func (l *lowerer) bodyEnv(i *instance, ctor *types.Func, call *types.Call, e *env) *env {
	b, _ := types.BodyOf(i.typ)
	body := &env{l: l, inst: i}
	var params []*types.TypeParam
	for _, p := range b.TypeParams {
		if o := l.info.Defs[p]; o != nil {
			if tp, ok := o.Type.(*types.TypeParam); ok {
				params = append(params, tp)
			}
		}
	}
	body.bindTypes(params, b.TypeArgs, e)
	for k, p := range b.CtorParams {
		if k < len(call.Args) {
			v := l.argument(call.Args[k], ctor, k, e)
			if inst, ok := v.(*instance); ok && inst.decl == nil && inst.name == "" {
				inst.name = i.name + "." + p.Name.Value
			}
			i.args = append(i.args, v)
			body.bind(l.info.Defs[p], v)
		}
	}
	return body
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

func (l *lowerer) declareCounter(i *instance) {
	l.cfg.CounterArrays = append(l.cfg.CounterArrays, &bmv2.CounterArray{
		Name: i.name, ID: l.nextID("counter_arrays"), SourceInfo: l.source(i.at), Size: l.cells(i, l.constArg(i, 0), bmv2.CounterWords), TrueEgress: l.trueEgress(i, 2),
	})
}

// trueEgress reports whether a counter counts packets when they leave the switch.
func (l *lowerer) trueEgress(i *instance, arg int) bool {
	x, ok := i.arg(arg).(*ex)
	return ok && x.isTrue()
}

func (l *lowerer) declareMeter(i *instance) {
	l.cfg.MeterArrays = append(l.cfg.MeterArrays, &bmv2.MeterArray{
		Name: i.name, ID: l.nextID("meter_arrays"), SourceInfo: l.source(i.at), Size: l.cells(i, l.constArg(i, 0), bmv2.MeterWords), RateCount: 2, Type: l.meterType(i, 1),
	})
}

// claim reports an object if another object of its kind has the same control-plane
// name.
func (l *lowerer) claim(kind, name string, at syntax.Node) {
	key := kind + " " + name
	if l.claimed[key] {
		l.errorf(at, "another %s is called %s: name one of them with @name, or declare instances of a control that is applied directly twice", kind, name)
		panic(bail{})
	}
	l.claimed[key] = true
}

// foreign emits a call of an extern that v1model does not define.
func (l *lowerer) foreign(x *syntax.CallExpr, op string, self []any, call *types.Call, e *env) value {
	if call.Result != nil && call.Result != types.Void {
		l.unsupported(x, "the result of %s: BMv2 calls externs for their effects", syntax.String(x.Fun))
	}
	if l.block == noBlock || l.block == verifyBlock || l.block == computeBlock {
		l.unsupported(x, "the extern %s in this control", syntax.String(x.Fun))
	}
	args := self
	bs := l.bindArgs(call.Type.Params, call, e, never)
	for _, b := range bs {
		switch b.value.(type) {
		case *ex, *field, *header, *union, *stack:
			args = append(args, b.value)
		default:
			l.unsupported(x, "an argument of this form for %s", syntax.String(x.Fun))
		}
	}
	l.prim(op, args...)
	l.copyBack(bs)
	return nil
}

func (l *lowerer) declareRegister(i *instance) {
	size := l.constArg(i, 0)
	if size == 0 {
		l.unsupported(i.at, "a direct register (size 0) in v1model on BMv2")
	}
	t := i.extern().Args[0]
	st, isScalar := scalarOf(t)
	width := l.widthOf(t)
	if width == 0 || isScalar && (st.bool || st.varbit) {
		l.unsupported(i.at, "a register of %s: want a register of bit<W>, int<W> or a struct of them", t)
	}
	l.cfg.RegisterArrays = append(l.cfg.RegisterArrays, &bmv2.RegisterArray{
		Name: i.name, ID: l.nextID("register_arrays"), SourceInfo: l.source(i.at), Size: l.cells(i, size, bmv2.RegisterWords(width)), Bitwidth: width,
	})
}

// cells returns the size of an array of size cells, of the given number of 64-bit
// words each. It refuses an array that no switch would load. The check is made here
// because the position in the source is known.
func (l *lowerer) cells(i *instance, size, words int) int {
	if size < 0 || size > bmv2.MaxCells {
		l.unsupported(i.at, "%s of %d cells: want 0 to %d (docs/limits.md)", i.extern().Name, size, bmv2.MaxCells)
	}
	if l.words += size * words; l.words > bmv2.MaxWords {
		l.unsupported(i.at, "arrays that take more than %d words of 64 bits up to %s (docs/limits.md)", bmv2.MaxWords, i.name)
	}
	return size
}

// constArg returns constructor argument k, which must be a constant.
func (l *lowerer) constArg(i *instance, k int) int {
	if k < len(i.args) {
		if v, ok := i.args[k].(*ex); ok && v.isConst() && v.v.IsInt64() {
			return int(v.v.Int64())
		}
	}
	l.errorf(i.at, "argument %d of %s must be a constant", k+1, i.extern().Name)
	return 0
}

func (l *lowerer) meterType(i *instance, k int) string {
	if l.constArg(i, k) == 1 {
		return "bytes"
	}
	return "packets"
}

// finishDirect emits direct counters and meters after all tables are known. It
// omits the counters and meters of unreachable tables, because the document does
// not contain these tables.
func (l *lowerer) finishDirect() {
	for _, i := range l.externs {
		switch i.extern().Name {
		case "direct_counter", "DirectCounter":
			if i.table == nil {
				l.report(i.at, true, "direct counter %s is not attached to a table", i.name)
				continue
			}
			if !i.table.reached {
				continue
			}
			l.cfg.CounterArrays = append(l.cfg.CounterArrays, &bmv2.CounterArray{
				Name: i.name, ID: l.nextID("counter_arrays"), SourceInfo: l.source(i.at), IsDirect: true, Binding: i.table.name, TrueEgress: l.trueEgress(i, 1),
			})
			i.table.out.CounterActions = i.table.executing(i)
		case "direct_meter", "DirectMeter":
			l.finishDirectMeter(i)
		case "action_selector", "ActionSelector":
			if i.inputs == nil {
				l.report(i.at, true, "action selector %s belongs to no table", i.name)
			}
		default:
			l.arch.finish(i)
		}
	}
}

func (l *lowerer) finishDirectMeter(i *instance) {
	if i.table == nil {
		if i.target != nil {
			l.errorf(i.at, "direct meter %s is read but attached to no table: add meters = %s to one", i.name, i.decl.Name.Value)
		}
		return
	}
	if !i.table.reached {
		return
	}
	m := &bmv2.MeterArray{
		Name: i.name, ID: l.nextID("meter_arrays"), SourceInfo: l.source(i.at), IsDirect: true, RateCount: 2,
		Type: l.meterType(i, 0), Size: i.table.out.MaxSize, Binding: i.table.name,
	}
	f, ok := i.target.(*field)
	if !ok {
		f = l.temp(scalar{width: 2})
	}
	m.ResultTarget = &bmv2.FieldRef{Header: f.header, Field: f.name}
	l.cfg.MeterArrays = append(l.cfg.MeterArrays, m)
	i.table.out.MeterActions = i.table.executing(i)
}

// uses records that the current action executes a direct counter or meter.
func (l *lowerer) uses(i *instance) {
	if l.inAction != nil {
		i.users[l.inAction] = true
	}
}

// executing returns the ids of a table's actions that execute its direct counter or
// meter. It returns none if all or none of them do: BMv2 then counts for every
// action.
func (t *table) executing(i *instance) []int {
	var ids []int
	for _, a := range t.actions {
		if i.users[a.out] {
			ids = append(ids, a.out.ID)
		}
	}
	if len(ids) == len(t.actions) {
		return nil
	}
	return ids
}

var hashAlgorithms = []string{"crc32", "crc32_custom", "crc16", "crc16_custom", "random", "identity", "csum16", "xor16"}

func (l *lowerer) hashAlgorithm(v value, at syntax.Node) string {
	return l.algorithm(v, at, "HashAlgorithm", hashAlgorithms)
}

// algorithm returns the hash algorithm that a constant of the enum denotes.
func (l *lowerer) algorithm(v value, at syntax.Node, enum string, members []string) string {
	x, ok := v.(*ex)
	if !ok || !x.isConst() || !x.v.IsInt64() || x.v.Int64() >= int64(len(members)) {
		l.unsupported(at, "a hash algorithm that is not a constant of %s", enum)
	}
	return members[x.v.Int64()]
}

// A destination is the field to which a primitive writes a result. A primitive
// cannot write a slice, an element selected at run time, a boolean, or a signed
// field, because BMv2 ignores the sign. For these, the field is a temporary, and the
// function back copies it to the place of the argument.
type destination struct {
	f    *field
	back func()
}

// destination returns the field for an out argument of type t with the place p, or
// nil if the call omits the argument.
func (l *lowerer) destination(p value, t types.Type, at syntax.Node) destination {
	none := func() {}
	st, ok := scalarOf(t)
	if !ok {
		l.unsupported(at, "%s as the result of an extern", t)
	}
	if p == nil {
		return destination{l.temp(st), none}
	}
	if f, ok := p.(*field); ok && !f.st.bool && !f.st.signed {
		return destination{f, none}
	}
	f := l.temp(scalar{width: st.width, bool: st.bool})
	return destination{f, func() { l.assign(p, cast(fieldEx(f), st)) }}
}

// operands evaluates the arguments of an extern's call from left to right: in
// arguments to their values, out and inout arguments to their places.
func (l *lowerer) operands(call *types.Call, e *env) []value {
	var bs []binding
	for k, p := range call.Type.Params {
		m := l.mark()
		b := l.evalArg(p, k, call, e)
		l.keepBefore(bs, m)
		bs = append(bs, b)
	}
	return lists.Map(bs, func(b binding) value {
		if b.param.Dir >= syntax.Out {
			return b.place
		}
		return b.value
	})
}

// inputs flattens the data of a hash or digest into fields and constants. It copies
// inputs that BMv2 does not accept to variables.
func (l *lowerer) inputs(v value, at syntax.Node) []*bmv2.Expr {
	var out []*bmv2.Expr
	switch v := v.(type) {
	case nothing:
	case *aggregate:
		for _, el := range v.elems {
			out = append(out, l.inputs(el, at)...)
		}
	case *literal:
		for _, f := range v.fields {
			out = append(out, l.inputs(f, at)...)
		}
	case *header, *union, *stack:
		for _, f := range leaves(v) {
			out = append(out, bmv2.FieldOf(f.header, f.name))
		}
	default:
		out = append(out, l.input(l.toEx(v, at)))
	}
	return out
}

// hashInput returns the inputs of the hash function. BMv2 leaves the fields of
// invalid headers out of a calculation, but P4 passes their values. So hashInput
// copies fields of headers first, as p4c does.
func (l *lowerer) hashInput(v value, at syntax.Node) []*bmv2.Expr {
	list := l.inputs(v, at)
	for i, x := range list {
		if x.Type != bmv2.TypeField || x.Name == scalarsName || x.Name == standardName {
			continue
		}
		for _, f := range leaves(l.hdrs) {
			if f.header == x.Name && f.name == x.Field && !f.st.varbit {
				t := l.temp(f.st)
				l.set(t, fieldEx(f))
				list[i] = bmv2.FieldOf(t.header, t.name)
			}
		}
	}
	return list
}

func (l *lowerer) input(x *ex) *bmv2.Expr {
	switch {
	case x.op == opField:
		return bmv2.FieldOf(x.f.header, x.f.name)
	case x.isConst() && x.st.width > 0:
		c := bmv2.Hex(wrap(x.v, scalar{width: x.st.width}), bytesOf(x.st.width))
		c.Bitwidth = x.st.width
		return c
	}
	t := l.temp(x.st)
	l.set(t, x)
	return bmv2.FieldOf(t.header, t.name)
}

// calculation declares a hash over input and returns the reference to it.
func (l *lowerer) calculation(algo string, input []*bmv2.Expr, payload bool) *bmv2.Expr {
	name := l.calculationName(algo, input, payload)
	return bmv2.Ref(bmv2.TypeCalculation, name)
}

func (l *lowerer) calculationName(algo string, input []*bmv2.Expr, payload bool) string {
	id := l.nextID("calculations")
	c := &bmv2.Calculation{Name: fmt.Sprintf("calc_%d", id), ID: id, SourceInfo: l.source(l.at), Algo: algo, Input: input}
	if id == 0 {
		c.Name = "calc"
	}
	if payload {
		c.Input = append(c.Input, &bmv2.Expr{Type: bmv2.TypePayload})
	}
	if c.Input == nil {
		c.Input = []*bmv2.Expr{}
	}
	l.cfg.Calculations = append(l.cfg.Calculations, c)
	return c.Name
}

// learnList declares the list of fields that a digest sends.
func (l *lowerer) learnList(name string, v value, x *syntax.CallExpr, at syntax.Node) *ex {
	elems := l.inputs(v, at)
	for i, x := range elems {
		if x.Type == bmv2.TypeHexstr { // a learn list may contain fields only
			v, _ := bmv2.ParseHex(x.Hex)
			t := l.temp(scalar{width: x.Bitwidth})
			l.set(t, constEx(v, t.st))
			elems[i] = bmv2.FieldOf(t.header, t.name)
		}
	}
	id := len(l.cfg.LearnLists) + 1
	l.cfg.LearnLists = append(l.cfg.LearnLists, &bmv2.FieldList{ID: id, Name: name, SourceInfo: l.source(x), Elements: elems})
	return intEx(int64(id), code32)
}
