package bmv2

import "math"

// field checks that a header has a field. Every header has the hidden field
// $valid$, also spelled "_valid" by old compilers; p4c also uses it for unions.
func (v *validator) field(path, header, field string) {
	t := v.instances[header]
	if t == nil {
		if v.unionsOf[header] != nil && field == "$valid$" {
			return
		}
		v.failf(path, "unknown header %q", header)
		return
	}
	v.fieldOf(path, t, field)
}

func (v *validator) fieldOf(path string, t *HeaderType, field string) {
	if field != "$valid$" && !v.fields[t][field] {
		v.failf(path, "header type %s has no field %q", t.Name, field)
	}
}

func (v *validator) exprs(path string, list []*Expr) {
	for i, e := range list {
		v.expr(at(path, i), e)
	}
}

// expr checks the references in e and its subexpressions.
func (v *validator) expr(path string, e *Expr) {
	if e == nil || v.err != nil {
		return
	}
	switch e.Type {
	case TypeField:
		v.field(path, e.Name, e.Field)
	case TypeStackField:
		if t, ok := v.stacksOf[e.Name]; !ok {
			v.failf(path, "unknown header_stack %q", e.Name)
		} else {
			v.fieldOf(path, v.types[t], e.Field)
		}
	case TypeUnionStackField:
		if t := v.member(path, e.Name, e.Member); t != nil {
			v.fieldOf(path, t, e.Field)
		}
	case TypeUnionStack:
		v.member(path, e.Name, e.Member)
	case TypeHexstr:
		if _, err := ParseHex(e.Hex); err != nil {
			v.failf(path, "%w", err)
		}
	case TypeLookahead:
		if e.Offset < 0 || e.Width <= 0 || e.Width > maxWidth || e.Offset > math.MaxInt32 {
			v.failf(path, "lookahead(%d, %d) is out of range", e.Offset, e.Width)
		}
	case TypeInt, TypeBool, TypeString, TypeLocal, TypeRuntimeData, TypePayload,
		TypeExpression, TypeParametersVector:
	default:
		if !v.objects[e.Type][e.Name] {
			v.failf(path, "unknown %s %q", e.Type, e.Name)
		}
	}
	for _, sub := range []*Expr{e.Left, e.Right, e.Cond, e.Inner} {
		v.expr(path, sub)
	}
	v.exprs(path, e.List)
}

// member returns the header type of a member of a union stack.
func (v *validator) member(path, stack, member string) *HeaderType {
	t := v.unionStack[stack]
	if t == nil {
		v.failf(path, "unknown header_union_stack %q", stack)
		return nil
	}
	for _, m := range t.Headers {
		if m.Name == member {
			return v.types[m.HeaderType]
		}
	}
	v.failf(path, "union type %s has no member %q", t.Name, member)
	return nil
}

func (v *validator) primitives(path string, list []*Primitive) {
	for i, p := range list {
		if p.Op == "" {
			v.failf(at(path, i), "a primitive without op")
		}
		v.exprs(at(path, i)+".parameters", p.Parameters)
	}
}

func (v *validator) actions() {
	list := v.c.Actions
	ids := map[int]bool{}
	v.actionsOf = map[int]*Action{}
	for i, a := range list {
		path := at("actions", i)
		// Names need not be unique: p4c gives the copies of an action used by
		// several tables the same name.
		if ids[a.ID] {
			v.failf(path, "a second id %d (%s)", a.ID, a.Name)
		}
		ids[a.ID], v.actionsOf[a.ID] = true, a
		for j, p := range a.RuntimeData {
			if p.Bitwidth <= 0 || p.Bitwidth > maxWidth {
				v.failf(at(path+".runtime_data", j), "bitwidth %d is outside 1..%d", p.Bitwidth, maxWidth)
			}
		}
		v.primitives(path+".primitives", a.Primitives)
	}
}

func (v *validator) parsers() {
	vsets := map[string]bool{}
	for i, s := range v.c.ParseVSets {
		vsets[s.Name] = true
		if s.CompressedBitwidth <= 0 || s.CompressedBitwidth > maxWidth {
			v.failf(at("parse_vsets", i), "compressed_bitwidth %d is outside 1..%d", s.CompressedBitwidth, maxWidth)
		}
	}
	for i, p := range v.c.Parsers {
		path := at("parsers", i)
		states := map[string]bool{}
		for _, s := range p.ParseStates {
			states[s.Name] = true
		}
		if p.InitState != "" && !states[p.InitState] {
			v.failf(path, "unknown init_state %q", p.InitState)
		}
		for j, s := range p.ParseStates {
			v.state(at(path+".parse_states", j), s, states, vsets)
		}
	}
}

func (v *validator) state(path string, s *ParseState, states, vsets map[string]bool) {
	for i, op := range s.ParserOps {
		where := at(path+".parser_ops", i)
		v.exprs(where+".parameters", op.Parameters)
		if op.Primitive != nil {
			v.primitives(where+".parameters", []*Primitive{op.Primitive})
		}
	}
	v.exprs(path+".transition_key", s.TransitionKey)
	for i, t := range s.Transitions {
		where := at(path+".transitions", i)
		if t.NextState != "" && !states[t.NextState] {
			v.failf(where, "unknown next_state %q", t.NextState)
		}
		if t.Type == "parse_vset" && !vsets[t.Value] {
			v.failf(where, "unknown parse_vset %q", t.Value)
		}
	}
}

func (v *validator) deparsers() {
	for i, d := range v.c.Deparsers {
		path := at("deparsers", i)
		for j, h := range d.Order {
			if v.instances[h] == nil {
				v.failf(at(path+".order", j), "unknown header %q", h)
			}
		}
		v.primitives(path+".primitives", d.Primitives)
	}
}

func (v *validator) checksums() {
	for i, k := range v.c.Checksums {
		path := at("checksums", i)
		v.field(path+".target", k.Target.Header, k.Target.Field)
		if !v.objects[TypeCalculation][k.Calculation] {
			v.failf(path, "unknown calculation %q", k.Calculation)
		}
		v.expr(path+".if_cond", k.IfCond)
	}
}

// bindings checks that each direct counter or meter belongs to a table.
func (v *validator) bindings() {
	for i, a := range v.c.MeterArrays {
		if a.IsDirect && !v.tables[a.Binding] {
			v.failf(at("meter_arrays", i), "bound to unknown table %q", a.Binding)
		}
	}
	for i, a := range v.c.CounterArrays {
		if a.IsDirect && !v.tables[a.Binding] {
			v.failf(at("counter_arrays", i), "bound to unknown table %q", a.Binding)
		}
	}
}
