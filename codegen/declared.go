package codegen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/p4src"
)

// declared completes the manifest from the program text: header fields, keys and
// actions of tables. It keeps existing descriptions.
func declared(m *manifest.Manifest, text string) error {
	lines := strings.Split(text, "\n")
	name := m.Scheme + ".p4"
	file, errs := syntax.Parse(syntax.OneFile(name, []byte(text)), name, syntax.Options{Includes: p4src.Include()})
	if file == nil {
		return fmt.Errorf("%w: %s", errs[0], strings.TrimSpace(lines[max(0, min(len(lines), errs[0].Pos.Line())-1)]))
	}
	d := &declarations{lines: lines, widths: map[string]int{"PortId_t": 9}}
	for i := range m.Headers {
		h := &m.Headers[i]
		r := &headerReader{h, h.Fields}
		h.Fields = nil
		d.headers = append(d.headers, r)
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		r := &tableReader{t, t.Keys, t.Actions}
		t.Keys, t.Actions = nil, nil
		d.tables = append(d.tables, r)
	}
	for _, decl := range file.Decls {
		var err error
		switch decl := decl.(type) {
		case *syntax.TypedefDecl:
			d.widths[decl.Name.Value] = d.widthOf(decl.Type)
		case *syntax.StructDecl:
			err = d.header(decl)
		case *syntax.ControlDecl:
			err = d.control(decl)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A declarations holds the state of reading a program's declarations.
type declarations struct {
	lines   []string
	widths  map[string]int // widths of types by name
	headers []*headerReader
	tables  []*tableReader
}

// widthOf returns the width of a type, or 0 if it is unknown.
func (d *declarations) widthOf(t syntax.Expr) int {
	switch t := t.(type) {
	case *syntax.BaseType:
		if n, ok := t.Size.(*syntax.IntLit); ok && t.Kind == syntax.BitKind {
			return int(n.Value.Int64())
		}
	case *syntax.Name:
		return d.widths[t.Value]
	}
	return 0
}

func (d *declarations) header(decl *syntax.StructDecl) error {
	i := slices.IndexFunc(d.headers, func(h *headerReader) bool { return h.Name+"_t" == decl.Name.Value })
	if i < 0 || decl.Kind != syntax.StructKindHeader {
		return nil
	}
	for _, f := range decl.Fields {
		width := d.widthOf(f.Type)
		if width == 0 {
			return fmt.Errorf("header %s: field %s is of the type %s, whose width is not known", d.headers[i].Name, f.Name.Value, syntax.String(f.Type))
		}
		_, meaning, _ := strings.Cut(d.lines[f.Name.Pos().Line()-1], "// ") // the parser drops comments
		d.headers[i].add(f.Name.Value, width, meaning)
	}
	return nil
}

func (d *declarations) control(decl *syntax.ControlDecl) error {
	params := map[string][]*syntax.Param{}
	for _, local := range decl.Locals {
		switch local := local.(type) {
		case *syntax.ActionDecl:
			params[local.Name.Value] = local.Params
		case *syntax.TableDecl:
			name := decl.Name.Value + "." + local.Name.Value
			i := slices.IndexFunc(d.tables, func(t *tableReader) bool { return t.Name == name })
			switch {
			case i >= 0:
				d.tables[i].read(local, params)
			case local.Entries == nil || !local.Entries.Const: // otherwise the program fills the table itself
				return fmt.Errorf("the manifest does not know table %s", name)
			}
		}
	}
	return nil
}

// A headerReader sorts the fields of a header in the program's order.
type headerReader struct {
	*manifest.Header
	said []manifest.HeaderField // fields described by the template
}

func (r *headerReader) add(name string, width int, meaning string) {
	f := manifest.HeaderField{Name: name, Width: width, Meaning: meaning}
	if i := slices.IndexFunc(r.said, func(s manifest.HeaderField) bool { return s.Name == name }); i >= 0 {
		f.Carries, f.Value = r.said[i].Carries, r.said[i].Value
	}
	r.Fields = append(r.Fields, f)
}

// A tableReader sorts the keys and actions of a table in the program's order.
type tableReader struct {
	*manifest.Table
	keys    []manifest.Key
	actions []manifest.Action
}

// read adds the table's keys, and its actions with their parameters.
func (r *tableReader) read(t *syntax.TableDecl, params map[string][]*syntax.Param) {
	if t.Key != nil {
		for _, k := range t.Key.Elems {
			r.addKey(keyName(k), k.Match.Value)
		}
	}
	if t.Actions != nil {
		for _, ref := range t.Actions.Refs {
			name := ref.Name.Value
			a := manifest.Action{Name: name}
			for _, p := range params[name] {
				a.Params = append(a.Params, r.param(name, p.Name.Value))
			}
			r.Actions = append(r.Actions, a)
		}
	}
}

// keyName returns the name of a key's field for controllers.
func keyName(k *syntax.KeyElem) string {
	if a := k.Annotations.Get("name"); a != nil && len(a.Tokens) == 1 {
		return strings.Trim(a.Tokens[0].Text, `"`)
	}
	return syntax.String(k.X)
}

func (r *tableReader) addKey(name, match string) {
	k := manifest.Key{Name: name, Match: match, Carries: factOf(r.Purpose, name)}
	if i := slices.IndexFunc(r.keys, func(s manifest.Key) bool { return s.Name == name }); i >= 0 {
		k.Carries, k.Value = r.keys[i].Carries, r.keys[i].Value
	}
	r.Keys = append(r.Keys, k)
}

// param returns the description of a parameter. A name such as port_3 refers to a
// path.
func (r *tableReader) param(action, name string) manifest.Param {
	p := manifest.Param{Name: name, Carries: factOf(r.Purpose, name)}
	if base, slot, ok := strings.Cut(name, "_"); ok && r.Purpose == manifest.Group {
		if n, err := strconv.Atoi(slot); err == nil {
			p.Carries, p.Slot = factOf(r.Purpose, base), n
		}
	}
	for _, a := range r.actions {
		for _, said := range a.Params {
			if a.Name == action && said.Name == name {
				return said
			}
		}
	}
	return p
}

// factOf returns the fact that a name in a table with a purpose stands for.
func factOf(purpose manifest.Purpose, name string) manifest.Fact {
	switch {
	case purpose == manifest.BakedTable || purpose == manifest.Program || purpose == "":
		return ""
	case purpose == manifest.Polynomial:
		return manifest.Coefficient
	case name == "id" && purpose != manifest.Leaf:
		return manifest.NodeNumber
	}
	return facts[name]
}

// facts maps the names of fields and parameters in templates to facts.
var facts = map[string]manifest.Fact{
	"hdr.ipv4.dst": manifest.Destination, "hdr.ipv4.src": manifest.Destination,
	"hdr.ipv6.dst": manifest.Destination, "hdr.ipv6.src": manifest.Destination,
	"meta.gid": manifest.GroupID, "meta.slot": manifest.SlotNumber,
	"meta.slot_a": manifest.SlotNumber, "meta.slot_b": manifest.SlotNumber, "meta.slot_m": manifest.SlotNumber,
	"std.egress_port": manifest.EgressPort, "eg.egress_port": manifest.EgressPort,
	"std.ingress_port": manifest.IngressPort, "ig.ingress_port": manifest.IngressPort, "meta.in_port": manifest.IngressPort,
	"hdr.probe.origin": manifest.LeafNumber, "hdr.path_probe.dst": manifest.LeafNumber,
	"port": manifest.EgressPort, "in_port": manifest.IngressPort, "dmac": manifest.NextMAC, "smac": manifest.OwnMAC,
	"gid": manifest.GroupID, "n": manifest.PathCount, "slot": manifest.SlotNumber,
	"id": manifest.LeafNumber, "leaf": manifest.LeafNumber,
	"queue": manifest.QueueNumber, "svc": manifest.ServiceTime, "weight": manifest.PathWeight, "end": manifest.WeightEnd,
	"rl": manifest.Reciprocal, "session": manifest.CloneTo, "onward": manifest.FloodTo,
}
