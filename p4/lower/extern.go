package lower

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// declareExtern emits an extern object at its instantiation.
func (l *lowerer) declareExtern(i *instance) {
	l.externs = append(l.externs, i)
	if i.name != "" {
		l.claim(i.extern().Name, i.name, i.at)
	}
	if !l.arch.declare(i) {
		l.declareForeign(i)
	}
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

func (l *lowerer) declareCounter(i *instance) {
	l.cfg.CounterArrays = append(l.cfg.CounterArrays, &bmv2.CounterArray{
		Name: i.name, ID: l.nextID("counter_arrays"), SourceInfo: l.source(i.at), Size: l.constArg(i, 0),
	})
}

func (l *lowerer) declareMeter(i *instance) {
	l.cfg.MeterArrays = append(l.cfg.MeterArrays, &bmv2.MeterArray{
		Name: i.name, ID: l.nextID("meter_arrays"), SourceInfo: l.source(i.at), Size: l.constArg(i, 0), RateCount: 2, Type: l.meterType(i, 1),
	})
}

// claim notes the control plane's name of an object: one of a kind has it.
func (l *lowerer) claim(kind, name string, at syntax.Node) {
	key := kind + " " + name
	if l.claimed[key] {
		l.errorf(at, "another %s is called %s; name one of them with @name, or its control's instance", kind, name)
		panic(bail{})
	}
	l.claimed[key] = true
}

// declareForeign emits an instance of an extern that is not v1model's own: a
// BMv2 that was built or started with it knows what to do.
func (l *lowerer) declareForeign(i *instance) {
	out := &bmv2.ExternInstance{Name: i.name, ID: l.nextID("extern_instances"), SourceInfo: l.source(i.at), Type: i.extern().Name}
	for k, m := range i.ctorParams() {
		if v, ok := i.args[k].(*ex); ok && v.isConst() {
			out.AttributeValues = append(out.AttributeValues, bmv2.ExternAttribute{Name: m, Value: bmv2.Hex(v.v, bytesOf(v.st.width))})
		}
	}
	l.cfg.ExternInstances = append(l.cfg.ExternInstances, out)
}

// ctorParams names the constructor's parameters, as many as there are arguments.
func (i *instance) ctorParams() []string {
	var names []string
	for _, m := range i.extern().Methods {
		if m.IsCtor && len(m.Type.Params) == len(i.args) {
			for _, p := range m.Type.Params {
				names = append(names, p.Name)
			}
			break
		}
	}
	return names
}

// foreign emits a call of an extern that is not v1model's own.
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
	l.copyBack(bs, e)
	return nil
}

func (l *lowerer) declareRegister(i *instance) {
	size := l.constArg(i, 0)
	if size == 0 {
		l.unsupported(i.at, "a direct register (size 0) in v1model on BMv2")
	}
	st, ok := scalarOf(i.extern().Args[0])
	if !ok || st.bool || st.width == 0 || st.varbit {
		l.unsupported(i.at, "a register of %s; BMv2 has registers of bit<W> and int<W>", i.extern().Args[0])
	}
	l.cfg.RegisterArrays = append(l.cfg.RegisterArrays, &bmv2.RegisterArray{
		Name: i.name, ID: l.nextID("register_arrays"), SourceInfo: l.source(i.at), Size: size, Bitwidth: st.width,
	})
}

// constArg is a constructor argument that must be a constant.
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

// finishDirect emits direct counters and meters, whose tables are known only
// after everything is lowered.
func (l *lowerer) finishDirect() {
	for _, i := range l.externs {
		switch i.extern().Name {
		case "direct_counter", "DirectCounter":
			if i.table == nil {
				l.report(i.at, true, "direct counter %s is not attached to a table", i.name)
				continue
			}
			l.cfg.CounterArrays = append(l.cfg.CounterArrays, &bmv2.CounterArray{
				Name: i.name, ID: l.nextID("counter_arrays"), SourceInfo: l.source(i.at), IsDirect: true, Binding: i.table.name,
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

// uses notes that the action that is being lowered executes a direct counter or
// meter.
func (l *lowerer) uses(i *instance) {
	if l.inAction == nil {
		return
	}
	if i.users == nil {
		i.users = map[*bmv2.Action]bool{}
	}
	i.users[l.inAction] = true
}

// executing are the ids of a table's actions that execute its direct counter or
// meter, none where all or none of them do: BMv2 then counts for all.
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
