package bmv2

import "reflect"

func (e *Expr) decodeNode(d *decoder, n *node) {
	if n.kind == numberNode {
		e.Type, e.Int = TypeInt, d.integer(n)
		return
	}
	if !d.is(n, objectNode) {
		return
	}
	d.key(n, "type", func(v *node) { e.Type = ExprType(d.text(v)) })
	d.key(n, "source_info", func(v *node) { d.into(v, reflect.ValueOf(&e.SourceInfo).Elem()) })
	if e.Type == TypePayload {
		return
	}
	d.key(n, "bitwidth", func(v *node) { e.Bitwidth = d.integer(v) })
	value := n.get("value")
	if value == nil {
		d.failf("the object has no value: want type and value")
		return
	}
	d.at(".value", func() { e.decodeValue(d, value) })
}

func (e *Expr) decodeValue(d *decoder, v *node) {
	switch e.Type {
	case TypeField, TypeStackField:
		d.names(v, &e.Name, &e.Field)
	case TypeUnionStackField:
		d.names(v, &e.Name, &e.Member, &e.Field)
	case TypeUnionStack:
		d.names(v, &e.Name, &e.Member)
	case TypeHexstr:
		e.Hex = d.text(v)
		if _, err := ParseHex(e.Hex); err != nil {
			d.failf("%w", err)
		}
	case TypeBool:
		e.Bool = d.boolean(v)
	case TypeLookahead:
		if d.tuple(v, 2, 2) {
			d.member(v, 0, func(n *node) { e.Offset = d.integer(n) })
			d.member(v, 1, func(n *node) { e.Width = d.integer(n) })
		}
	case TypeLocal, TypeRuntimeData:
		e.Int = d.integer(v)
	case TypeRegister:
		if d.tuple(v, 2, 2) {
			d.member(v, 0, func(n *node) { e.Name = d.text(n) })
			d.member(v, 1, func(n *node) { e.Right = d.expr(n) })
		}
	case TypeExpression:
		e.decodeExpression(d, v)
	case TypeParametersVector:
		// p4c writes an empty object for an empty list.
		if v.kind != objectNode || len(v.list) > 0 {
			d.slice(v, reflect.ValueOf(&e.List).Elem())
		}
	case TypeString, TypeHeader, TypeHeaderStack, TypeHeaderUnion, TypeHeaderUnionStack,
		TypeCalculation, TypeRegisterArray, TypeCounterArray, TypeMeterArray, TypeFilterArray,
		TypeExtern, TypeRegular, TypeStack:
		e.Name = d.text(v)
	default:
		d.failf("unknown type %q", string(e.Type))
	}
}

func (e *Expr) decodeExpression(d *decoder, v *node) {
	if !d.is(v, objectNode) {
		return
	}
	op := v.get("op")
	if op == nil {
		e.Inner = d.expr(v)
		return
	}
	d.at(".op", func() { e.Op = d.text(op) })
	d.key(v, "left", func(n *node) { e.Left = d.expr(n) })
	d.key(v, "right", func(n *node) { e.Right = d.expr(n) })
	d.key(v, "cond", func(n *node) { e.Cond = d.expr(n) })
}

func (d *decoder) expr(n *node) *Expr {
	e := new(Expr)
	e.decodeNode(d, n)
	return e
}

// names reads an array of strings into targets.
func (d *decoder) names(v *node, targets ...*string) {
	if !d.tuple(v, len(targets), len(targets)) {
		return
	}
	for i, t := range targets {
		d.member(v, i, func(n *node) { *t = d.text(n) })
	}
}

func (e *Expr) encodeNode() *node {
	if e.Type == TypeInt {
		return intNode(e.Int)
	}
	n := object("type", textNode(string(e.Type)), "value", e.encodeValue())
	if e.Bitwidth != 0 {
		n.set("bitwidth", intNode(e.Bitwidth))
	}
	if e.SourceInfo != nil {
		n.set("source_info", encode(reflect.ValueOf(e.SourceInfo)))
	}
	return n
}

func (e *Expr) encodeValue() *node {
	switch e.Type {
	case TypePayload:
		return &node{kind: nullNode}
	case TypeField, TypeStackField:
		return listNode(textNode(e.Name), textNode(e.Field))
	case TypeUnionStackField:
		return listNode(textNode(e.Name), textNode(e.Member), textNode(e.Field))
	case TypeUnionStack:
		return listNode(textNode(e.Name), textNode(e.Member))
	case TypeHexstr:
		return textNode(e.Hex)
	case TypeBool:
		return boolNode(e.Bool)
	case TypeLookahead:
		return listNode(intNode(e.Offset), intNode(e.Width))
	case TypeLocal, TypeRuntimeData:
		return intNode(e.Int)
	case TypeRegister:
		return listNode(textNode(e.Name), optional(e.Right))
	case TypeExpression:
		if e.Inner != nil {
			return e.Inner.encodeNode()
		}
		n := object("op", textNode(e.Op), "left", optional(e.Left), "right", optional(e.Right))
		if e.Cond != nil {
			n.set("cond", e.Cond.encodeNode())
		}
		return n
	case TypeParametersVector:
		if len(e.List) == 0 {
			return object()
		}
		return encode(reflect.ValueOf(e.List))
	}
	return textNode(e.Name)
}

func optional(e *Expr) *node {
	if e == nil {
		return &node{kind: nullNode}
	}
	return e.encodeNode()
}
