package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// This file adds the tables that every program has: value sets, snapshots of the
// pipe, port metadata, and a counter for each hardware table.

// stages is the number of match-action stages of each chip.
var stages = map[string]int{bmv2.TNA: 12, bmv2.T2NA: 20}

const (
	tablesOfStage = 16
	channels      = 4 * 4 * 18 // pipes, ports and their channels
)

func (b *schemaGen) addValueSets() {
	for _, u := range b.view.units {
		for _, o := range u.objects {
			s, ok := o.(*setSite)
			if !ok {
				continue
			}
			n := types.Number(b.view.fold(s.decl.Size, s.site.scope))
			if n == nil {
				continue
			}
			notes := notesOf(b.annotations(s.decl.Annotations))
			t := bfrt.NewTable(b.full(s.name()), b.id(bfrt.ValueSet, s.name()), "ParserValueSet", n.Int64()).Notes(notes)
			for _, f := range b.fields(s.site.scope.subst(b.info.Types[s.decl.Type].Type), "", 1) {
				t.AddKey(f.ID, f.Name, false, "Ternary", f.Type)
			}
			t.Attributes = append(t.Attributes, "EntryScope")
			b.out.Tables = append(b.out.Tables, t)
		}
	}
}

// A gressUnit is the parser and the control of a gress.
type gressUnit struct {
	name            string
	parser, control *unit
}

// gresses lists the ingress and egress halves of the pipes. Each half consists of a
// parser, followed by its control and its deparser.
func (b *schemaGen) gresses() []gressUnit {
	var list []gressUnit
	for _, u := range b.view.units {
		if _, ok := u.root.typ.(*types.Parser); ok {
			name := "ingress"
			if len(list)%2 == 1 {
				name = "egress"
			}
			list = append(list, gressUnit{name: name, parser: u})
		} else if k := len(list) - 1; k >= 0 && list[k].control == nil {
			list[k].control = u
		}
	}
	return list
}

// pipeOf returns the name of the pipe that contains a unit.
func (b *schemaGen) pipeOf(u *unit) string {
	if len(b.view.pipes) > 0 {
		name, _, _ := strings.Cut(u.root.name, ".")
		return name
	}
	return cmp.Or(b.ids.pipe, "pipe0")
}

// addSnapshots numbers the fields of all controls by name, ingress first. It adds
// the egress table of a pipe before the ingress table. In p4c, that order depends
// on the addresses of objects.
func (b *schemaGen) addSnapshots() {
	ids := map[string]uint32{}
	gresses := b.gresses()
	var list []bfrt.SnapshotOf
	for _, g := range gresses {
		if g.control == nil {
			return
		}
		s := g.control.root
		of := bfrt.SnapshotOf{
			Pipe: b.pipeOf(g.control), Gress: g.name, Hash: hashName(b.full(s.name) + "." + s.name[strings.LastIndexByte(s.name, '.')+1:]),
			Stages: stages[b.chip], Second: b.chip == bmv2.T2NA,
		}
		for i, p := range s.body.Params {
			b.vector(p.Name.Value, s.scope.subst(b.info.Defs[p].Type), i == 0, func(name string, width int) {
				ids[name] = cmp.Or(ids[name], uint32(len(ids)+1))
				of.Fields = append(of.Fields, bfrt.SnapshotField{ID: ids[name], Name: name, Width: width})
			})
		}
		slices.SortFunc(of.Fields, func(x, y bfrt.SnapshotField) int { return cmp.Compare(x.ID, y.ID) })
		list = append(list, of)
	}
	for k := 0; k+1 < len(list); k += 2 {
		b.out.AddSnapshot(list[k+1])
		b.out.AddSnapshot(list[k])
	}
}

// vector calls visit for each number in a parameter of a control. If valid is set,
// it also visits the validity bits of headers.
func (b *schemaGen) vector(name string, t types.Type, valid bool, visit func(name string, width int)) {
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		if t.Kind == syntax.StructKindHeader {
			if valid {
				visit(name+".$valid", 1)
			}
			for _, f := range flatHeader(t) {
				b.vector(name+"."+f.name, f.typ, false, visit)
			}
			return
		}
		for _, f := range t.Fields {
			b.vector(name+"."+fieldLabel(f), f.Type, valid, visit)
		}
	case *types.Stack:
		for i := range t.Size {
			b.vector(fmt.Sprintf("%s$%d", name, i), t.Elem, valid, visit)
		}
	case *types.Bits:
		visit(name, t.Width)
	case *types.Enum:
		if t.Repr != nil {
			visit(name, t.Repr.Width)
		}
	}
}

// addPortMetadata adds the table of the port metadata, which ingress parsers read
// after the intrinsic metadata. Its fields are the fields of the struct that the
// program unpacks, or one field of bits.
func (b *schemaGen) addPortMetadata() {
	width := map[string]int{bmv2.TNA: 64, bmv2.T2NA: 128}[b.chip]
	for _, g := range b.gresses() {
		if g.name != "ingress" {
			continue
		}
		s := g.parser.root
		name := s.name + ".$PORT_METADATA"
		t := bfrt.NewTable(b.full(name), b.id(bfrt.PortMetadata, name), "PortMetadata", channels).Notes(nil)
		key := "ig_intr_md"
		for _, p := range s.body.Params {
			if x, ok := types.Underlying(b.info.Defs[p].Type).(*types.Struct); ok && x.Name == "ingress_intrinsic_metadata_t" {
				key = p.Name.Value
			}
		}
		t.AddKey(bfrt.PortMetadataPort, key+".ingress_port", true, "Exact", bfrt.Bytes(9))
		if unpacked := b.unpacked(s.body.Name); unpacked != nil {
			for _, f := range b.fields(unpacked, "", 1) {
				t.Data = append(t.Data, bfrt.Mandatory(f))
			}
		} else {
			t.Data = append(t.Data, bfrt.Optional(bfrt.NewField(bfrt.PortMetadataDefault, "$DEFAULT_FIELD", bfrt.Bytes(width))))
		}
		b.out.Tables = append(b.out.Tables, t)
	}
}

// unpacked returns the type with which a parser calls port_metadata_unpack, or nil
// if it does not call it.
func (b *schemaGen) unpacked(parser *syntax.Name) types.Type {
	for _, d := range b.file.Decls {
		if p, ok := d.(*syntax.ParserDecl); !ok || p.Name != parser {
			continue
		}
		for x := range syntax.Each[*syntax.CallExpr](d) {
			c := b.info.Calls[x]
			if c != nil && c.Kind == types.ExternCall && c.Callee != nil && c.Callee.Name == "port_metadata_unpack" && len(c.TypeArgs) > 0 {
				return c.TypeArgs[0]
			}
		}
	}
	return nil
}
