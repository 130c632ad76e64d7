package bmv2

import "reflect"

// This file has the types that are a tuple or a map in JSON, or whose form
// depends on a type field. Expr has its own files.

func (v *NamedValue) decodeNode(d *decoder, n *node) {
	if d.tuple(n, 2, 2) {
		d.member(n, 0, func(e *node) { v.Name = d.text(e) })
		d.member(n, 1, func(e *node) { v.Value = d.integer(e) })
	}
}

func (v *NamedValue) encodeNode() *node { return listNode(textNode(v.Name), intNode(v.Value)) }

func (f *HeaderField) decodeNode(d *decoder, n *node) {
	if !d.tuple(n, 2, 3) {
		return
	}
	d.member(n, 0, func(e *node) { f.Name = d.text(e) })
	d.member(n, 1, func(e *node) {
		if f.VarLen = e.kind == stringNode && e.text == "*"; !f.VarLen {
			f.Width = d.integer(e)
		}
	})
	if len(n.list) == 3 {
		d.member(n, 2, func(e *node) { f.Signed = d.boolean(e) })
	}
}

func (f *HeaderField) encodeNode() *node {
	if f.VarLen {
		return listNode(textNode(f.Name), textNode("*"))
	}
	return listNode(textNode(f.Name), intNode(f.Width), boolNode(f.Signed))
}

func (m *UnionMember) decodeNode(d *decoder, n *node) {
	d.names(n, &m.Name, &m.HeaderType)
}

func (m *UnionMember) encodeNode() *node { return listNode(textNode(m.Name), textNode(m.HeaderType)) }

func (r *FieldRef) decodeNode(d *decoder, n *node) {
	if n.kind == stringNode {
		r.Header = n.text
		return
	}
	if d.tuple(n, 1, 2) {
		d.member(n, 0, func(e *node) { r.Header = d.text(e) })
	}
	if d.err == nil && len(n.list) == 2 {
		d.member(n, 1, func(e *node) { r.Field = d.text(e) })
	}
}

func (r *FieldRef) encodeNode() *node {
	if r.Field == "" {
		return textNode(r.Header)
	}
	return listNode(textNode(r.Header), textNode(r.Field))
}

// String returns "header.field".
func (r FieldRef) String() string {
	if r.Field == "" {
		return r.Header
	}
	return r.Header + "." + r.Field
}

func (a *FieldAlias) decodeNode(d *decoder, n *node) {
	if d.tuple(n, 2, 2) {
		d.member(n, 0, func(e *node) { a.Alias = d.text(e) })
		d.member(n, 1, func(e *node) { a.Field.decodeNode(d, e) })
	}
}

func (a *FieldAlias) encodeNode() *node { return listNode(textNode(a.Alias), a.Field.encodeNode()) }

func (a *ExternAttribute) decodeNode(d *decoder, n *node) {
	if !d.is(n, objectNode) {
		return
	}
	d.key(n, "name", func(e *node) { a.Name = d.text(e) })
	a.Value = new(Expr)
	a.Value.decodeNode(d, n)
}

func (a *ExternAttribute) encodeNode() *node {
	value := (&Expr{}).encodeNode()
	if a.Value != nil {
		value = a.Value.encodeNode()
	}
	if value.kind != objectNode {
		value = object("type", textNode(string(TypeString)), "value", value)
	}
	n := object("name", textNode(a.Name))
	for i, key := range value.keys {
		n.set(key, value.list[i])
	}
	return n
}

func (p *ParserOp) decodeNode(d *decoder, n *node) {
	if !d.is(n, objectNode) {
		return
	}
	d.key(n, "op", func(e *node) { p.Op = d.text(e) })
	d.key(n, "source_info", func(e *node) { d.into(e, reflect.ValueOf(&p.SourceInfo).Elem()) })
	d.key(n, "parameters", func(e *node) {
		if p.Op != "primitive" {
			d.into(e, reflect.ValueOf(&p.Parameters).Elem())
			return
		}
		if d.tuple(e, 1, 1) {
			d.member(e, 0, func(e *node) { d.into(e, reflect.ValueOf(&p.Primitive).Elem()) })
		}
	})
}

func (p *ParserOp) encodeNode() *node {
	params := listNode()
	if p.Primitive != nil {
		params.list = append(params.list, encode(reflect.ValueOf(p.Primitive)))
	} else {
		params = encode(reflect.ValueOf(p.Parameters))
	}
	n := object("parameters", params, "op", textNode(p.Op))
	if p.SourceInfo != nil {
		n.set("source_info", encode(reflect.ValueOf(p.SourceInfo)))
	}
	return n
}

func (t *NextTables) decodeNode(d *decoder, n *node) {
	if n.kind == arrayNode && len(n.list) == 0 || !d.is(n, objectNode) {
		return
	}
	for i, label := range n.keys {
		next := NextTable{Label: label}
		d.at("."+label, func() {
			if n.list[i].kind != nullNode {
				next.Next = d.text(n.list[i])
			}
		})
		*t = append(*t, next)
	}
}

func (t *NextTables) encodeNode() *node {
	n := object()
	for _, next := range *t {
		n.set(next.Label, nullable(next.Next))
	}
	return n
}

func nullable(s string) *node {
	if s == "" {
		return &node{kind: nullNode}
	}
	return textNode(s)
}

func (k *MatchKey) decodeNode(d *decoder, n *node) {
	if !d.is(n, objectNode) {
		return
	}
	d.key(n, "match_type", func(e *node) { k.MatchType = d.text(e) })
	d.key(n, "key", func(e *node) { k.Key = d.keyText(e) })
	d.key(n, "mask", func(e *node) { k.Mask = d.text(e) })
	d.key(n, "prefix_length", func(e *node) { k.PrefixLength = d.integer(e) })
	d.key(n, "start", func(e *node) { k.Start = d.text(e) })
	d.key(n, "end", func(e *node) { k.End = d.text(e) })
}

// keyText reads the key of an entry, which for a valid match is a boolean.
func (d *decoder) keyText(n *node) string {
	switch n.kind {
	case trueNode:
		return "0x01"
	case falseNode:
		return "0x00"
	}
	return d.text(n)
}

func (k *MatchKey) encodeNode() *node {
	n := object("match_type", textNode(k.MatchType))
	switch k.MatchType {
	case MatchRange:
		n.set("start", textNode(k.Start))
		n.set("end", textNode(k.End))
		return n
	case MatchValid:
		n.set("key", boolNode(k.Key == "0x01"))
		return n
	}
	n.set("key", textNode(k.Key))
	switch k.MatchType {
	case MatchTernary, MatchOptional:
		n.set("mask", textNode(k.Mask))
	case MatchLPM:
		n.set("prefix_length", intNode(k.PrefixLength))
	}
	return n
}
