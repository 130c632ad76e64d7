package lower

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// alloc creates a variable of type t from scalar fields, header instances and
// stacks. Their names start with name.
func (l *lowerer) alloc(name string, t types.Type, temp bool) value {
	l.spend(costVariable)
	t = types.Underlying(t)
	if isNothing(t) {
		return nothing{}
	}
	if st, ok := scalarOf(t); ok {
		if st.varbit {
			return l.allocVarbit(l.unique(name), st)
		}
		return l.scalars.add(l.unique(name), st, temp)
	}
	if v := l.allocHeader(name, t, true); v != nil {
		return v
	}
	names, parts, ok := components(t)
	if !ok {
		l.unsupported(l.at, "a variable of type %s", t)
		return nil
	}
	a := &aggregate{typ: t}
	for i := range parts {
		a.elems = append(a.elems, l.alloc(name+"."+names[i], parts[i], temp))
	}
	return a
}

// allocHeader creates a header, a union, or a stack of either. It returns nil if t
// is none of these.
func (l *lowerer) allocHeader(name string, t types.Type, local bool) value {
	switch t := t.(type) {
	case *types.Struct:
		switch t.Kind {
		case syntax.StructKindHeader:
			return l.newHeader(l.unique(name), t, local)
		case syntax.StructKindUnion:
			return l.newUnion(l.unique(name), t, local)
		}
	case *types.Stack:
		if s, ok := types.Underlying(t.Elem).(*types.Struct); ok && s.Kind != syntax.StructKindStruct {
			return l.newStack(l.unique(name), t, local)
		}
	}
	return nil
}

// unique returns name, changed if it was given out before.
func (l *lowerer) unique(name string) string {
	n := l.names[name]
	l.names[name] = n + 1
	if n == 0 {
		return name
	}
	return l.unique(fmt.Sprintf("%s_%d", name, n))
}

// temp creates a variable for an intermediate value.
func (l *lowerer) temp(st scalar) *field {
	if st.width == 0 {
		st = scalar{width: 32, signed: true}
	}
	if st.varbit {
		return l.allocVarbit(l.unique("tmp"), st)
	}
	return l.scalars.add(l.unique("tmp"), st, true)
}

const (
	scalarsName  = "scalars"
	standardName = "standard_metadata"
)

func (s *scalars) add(name string, st scalar, temp bool) *field {
	f := &field{header: scalarsName, name: name, st: st, temp: temp}
	s.fields = append(s.fields, f)
	return f
}

// headerType returns the BMv2 layout of a header, which it creates on first use.
func (l *lowerer) headerType(t *types.Struct) *bmv2.HeaderType {
	name := l.headerTypeName(t)
	if ht := l.headerTypes[name]; ht != nil {
		return ht
	}
	ht := &bmv2.HeaderType{Name: name, ID: l.nextID("header_types"), Fields: []bmv2.HeaderField{}}
	l.headerTypes[name] = ht
	l.cfg.HeaderTypes = append(l.cfg.HeaderTypes, ht)
	bits, varbits := 0, 0
	out := slices.Concat(lists.Map(l.headerParts(t, "", ""), leaves)...)
	for _, f := range out {
		hf := layoutField(f.name, f.st)
		bits += f.st.width
		if f.st.varbit {
			hf.Width, hf.VarLen = 0, true
			varbits += f.st.width
		}
		ht.Fields = append(ht.Fields, hf)
	}
	if varbits > 0 {
		ht.MaxLength = bytesOf(bits)
	}
	if bits%8 != 0 {
		// A parsed header must fill whole bytes, so a header that serves only as a
		// variable is padded.
		ht.Fields = pad(ht.Fields, bits)
		if !flexible(t) {
			l.report(t.Decl, true, "header %s has %d bits, which is not a whole number of bytes; %s pads it", t.Name, bits, l.arch.traits().runner)
		}
	}
	return ht
}

// layoutField returns the layout of one field. BMv2 has no signed field of one bit,
// so int<1> is an unsigned field, and reading it adds the sign (emit.go).
func layoutField(name string, st scalar) bmv2.HeaderField {
	return bmv2.HeaderField{Name: name, Width: st.width, Signed: st.signed && st.width > 1}
}

// flexible reports whether the compiler may choose the layout of the header, as
// TNA's annotation allows.
func flexible(t *types.Struct) bool {
	return t.Decl.Annotations.Get("flexible") != nil || slices.ContainsFunc(t.Fields, func(f types.Field) bool { return f.Decl != nil && f.Decl.Annotations.Get("flexible") != nil })
}

func (l *lowerer) headerTypeName(t *types.Struct) string {
	name := names.Declared("", t.Decl.Annotations, t.Decl.Name)
	for _, a := range t.Args {
		name += "<" + a.String() + ">"
	}
	return name
}

// headerParts creates the places of a header's declared fields.
func (l *lowerer) headerParts(t *types.Struct, header, prefix string) []value {
	var parts []value
	l.spend(len(t.Fields))
	for _, f := range t.Fields {
		name := prefix + f.Name
		if f.Decl != nil {
			name = prefix + names.Declared("", f.Decl.Annotations, f.Decl.Name)
		}
		if isNothing(f.Type) {
			parts = append(parts, nothing{})
			continue
		}
		if st, ok := scalarOf(f.Type); ok {
			parts = append(parts, &field{header: header, name: name, st: st})
			continue
		}
		parts = append(parts, l.innerParts(f.Type, header, name, t.Decl))
	}
	return parts
}

// innerParts creates the places of a struct or array inside a header.
func (l *lowerer) innerParts(t types.Type, header, name string, at syntax.Node) value {
	if isNothing(t) {
		return nothing{}
	}
	if st, ok := scalarOf(t); ok {
		return &field{header: header, name: name, st: st}
	}
	a := &aggregate{typ: types.Underlying(t)}
	if s, ok := a.typ.(*types.Struct); ok && s.Kind == syntax.StructKindStruct {
		a.elems = l.headerParts(s, header, name+".")
		return a
	}
	names, parts, ok := components(t)
	if !ok {
		l.unsupported(at, "the field %s of type %s in a header", name, t)
	}
	for i, p := range parts {
		a.elems = append(a.elems, l.innerParts(p, header, name+"."+names[i], at))
	}
	return a
}

// newHeader creates a header instance.
func (l *lowerer) newHeader(name string, t *types.Struct, local bool) *header {
	ht := l.headerType(t)
	h := &header{name: name, typ: t, local: local, parts: l.headerParts(t, name, "")}
	for _, p := range h.parts {
		h.fields = append(h.fields, leaves(p)...)
	}
	id := l.nextID("headers")
	l.headerIDs[name] = id
	l.cfg.Headers = append(l.cfg.Headers, &bmv2.Header{Name: name, ID: id, HeaderType: ht.Name, PIOmit: true})
	return h
}

func (l *lowerer) newUnion(name string, t *types.Struct, local bool) *union {
	u := &union{name: name, typ: t}
	out := &bmv2.HeaderUnion{Name: name, ID: l.nextID("header_unions"), UnionType: l.unionType(t), PIOmit: true}
	for _, f := range t.Fields {
		m := l.newHeader(name+"."+f.Name, types.Underlying(f.Type).(*types.Struct), local)
		m.member = true
		u.members = append(u.members, m)
		out.HeaderIDs = append(out.HeaderIDs, l.headerIDs[m.name])
	}
	l.unionIDs[name] = out.ID
	l.cfg.HeaderUnions = append(l.cfg.HeaderUnions, out)
	return u
}

func (l *lowerer) unionType(t *types.Struct) string {
	name := l.headerTypeName(t)
	for _, ut := range l.cfg.HeaderUnionTypes {
		if ut.Name == name {
			return name
		}
	}
	ut := &bmv2.HeaderUnionType{Name: name, ID: l.nextID("header_union_types")}
	for _, f := range t.Fields {
		ht := l.headerType(types.Underlying(f.Type).(*types.Struct))
		ut.Headers = append(ut.Headers, bmv2.UnionMember{Name: f.Name, HeaderType: ht.Name})
	}
	l.cfg.HeaderUnionTypes = append(l.cfg.HeaderUnionTypes, ut)
	return name
}

func (l *lowerer) newStack(name string, t *types.Stack, local bool) *stack {
	if t.Size == 0 {
		l.unsupported(l.at, "the stack %s has no elements", name)
	}
	elem := types.Underlying(t.Elem).(*types.Struct)
	s := &stack{name: name, typ: t, union: elem.Kind == syntax.StructKindUnion}
	var ids []int
	for i := range t.Size {
		item := fmt.Sprintf("%s[%d]", name, i)
		if s.union {
			s.elems = append(s.elems, l.newUnion(item, elem, local))
			ids = append(ids, l.unionIDs[item])
		} else {
			s.elems = append(s.elems, l.newHeader(item, elem, local))
			ids = append(ids, l.headerIDs[item])
		}
	}
	if s.union {
		l.cfg.HeaderUnionStacks = append(l.cfg.HeaderUnionStacks, &bmv2.HeaderUnionStack{
			Name: name, ID: l.nextID("header_union_stacks"), UnionType: l.unionType(elem), Size: t.Size, HeaderUnionIDs: ids,
		})
		return s
	}
	l.cfg.HeaderStacks = append(l.cfg.HeaderStacks, &bmv2.HeaderStack{
		Name: name, ID: l.nextID("header_stacks"), HeaderType: l.headerType(elem).Name, Size: t.Size, HeaderIDs: ids,
	})
	return s
}

// allocVarbit creates a varbit variable, which is a header with one field.
func (l *lowerer) allocVarbit(name string, st scalar) *field {
	typ := fmt.Sprintf("varbit_%d", st.width)
	ht := l.headerTypes[typ]
	if ht == nil {
		ht = &bmv2.HeaderType{
			Name: typ, ID: l.nextID("header_types"), MaxLength: bytesOf(st.width),
			Fields: []bmv2.HeaderField{{Name: "field", VarLen: true}},
		}
		l.headerTypes[typ] = ht
		l.cfg.HeaderTypes = append(l.cfg.HeaderTypes, ht)
	}
	l.cfg.Headers = append(l.cfg.Headers, &bmv2.Header{Name: name, ID: l.nextID("headers"), HeaderType: typ, PIOmit: true})
	return &field{header: name, name: "field", st: st}
}

// reserveScalars reserves the first header type and instance for the scalars. They
// are complete only at the end of lowering.
func (l *lowerer) reserveScalars() {
	l.cfg.HeaderTypes = append(l.cfg.HeaderTypes, &bmv2.HeaderType{Name: "scalars_0", ID: l.nextID("header_types")})
	l.cfg.Headers = append(l.cfg.Headers, &bmv2.Header{Name: scalarsName, ID: l.nextID("headers"), HeaderType: "scalars_0", Metadata: true, PIOmit: true})
	l.names[scalarsName], l.names[standardName] = 1, 1
}

// archHeaders creates the instances for the struct of headers, with names that
// start with prefix.
func (l *lowerer) archHeaders(prefix string, t types.Type, at syntax.Node) value {
	s, ok := t.(*types.Struct)
	if !ok {
		l.unsupported(at, "headers of type %s; a struct of headers, stacks and unions is wanted", t)
	}
	if s.Kind != syntax.StructKindStruct {
		return l.archHeader(prefix+"hdr", s, at)
	}
	a := &aggregate{typ: s}
	for _, f := range s.Fields {
		a.elems = append(a.elems, l.archHeader(prefix+names.Declared("", f.Decl.Annotations, f.Decl.Name), types.Underlying(f.Type), f.Decl))
	}
	return a
}

func (l *lowerer) archHeader(name string, t types.Type, at syntax.Node) value {
	l.at = at
	if v := l.allocHeader(name, t, false); v != nil {
		return v
	}
	s, ok := t.(*types.Struct)
	if !ok {
		return l.alloc(name, t, false)
	}
	a := &aggregate{typ: s}
	for _, f := range s.Fields {
		a.elems = append(a.elems, l.archHeader(name+"."+f.Name, types.Underlying(f.Type), f.Decl))
	}
	return a
}

// userMetadata creates variables for the user's metadata, with names that start
// with prefix, and the field lists of @field_list.
func (l *lowerer) userMetadata(prefix string, t types.Type, at syntax.Node) value {
	s, ok := t.(*types.Struct)
	if !ok || s.Kind != syntax.StructKindStruct {
		l.unsupported(at, "metadata of type %s; a struct is wanted", t)
	}
	a := &aggregate{typ: s}
	for _, f := range s.Fields {
		name := prefix + names.Declared("", f.Decl.Annotations, f.Decl.Name)
		l.at = f.Decl
		v := l.alloc(name, f.Type, false)
		a.elems = append(a.elems, v)
		if an := f.Decl.Annotations.Get("field_list"); an != nil {
			l.addToFieldLists(an, v, f.Decl)
		}
	}
	return a
}

func (l *lowerer) addToFieldLists(an *syntax.Annotation, v value, at syntax.Node) {
	for _, x := range an.Exprs {
		n := l.annotationNumber(x)
		if n == nil || !n.IsInt64() {
			l.errorf(x, "@field_list takes constant numbers")
			continue
		}
		list := l.fieldList(int(n.Int64()))
		for _, f := range leaves(v) {
			list.Elements = append(list.Elements, bmv2.FieldOf(f.header, f.name))
		}
	}
}

// annotationNumber reads a number in an annotation: a literal, a constant, or a
// member of an enum. The checker does not evaluate expressions in annotations.
func (l *lowerer) annotationNumber(x syntax.Expr) *big.Int {
	switch x := syntax.Unparen(x).(type) {
	case *syntax.IntLit:
		return x.Value
	case *syntax.Name:
		if o := l.info.Top[x.Value]; o != nil {
			return types.Number(o.Value)
		}
	case *syntax.SelectorExpr:
		n, ok := x.X.(*syntax.Name)
		if !ok || l.info.Top[n.Value] == nil {
			return nil
		}
		if t, ok := l.info.Top[n.Value].Type.(*types.Enum); ok {
			for _, m := range t.Members {
				if m.Name == x.Sel.Value {
					return m.Value
				}
			}
		}
	}
	return nil
}

// fieldList returns the list of @field_list(index), which it creates on first use.
func (l *lowerer) fieldList(index int) *bmv2.FieldList {
	if id, ok := l.fieldLists[index]; ok {
		return l.cfg.FieldLists[id-1]
	}
	list := &bmv2.FieldList{ID: len(l.cfg.FieldLists) + 1, Name: fmt.Sprintf("field_list%d", index), Elements: []*bmv2.Expr{}}
	l.fieldLists[index] = list.ID
	l.cfg.FieldLists = append(l.cfg.FieldLists, list)
	return list
}

// metadataHeader creates the header for a metadata struct of the architecture, with
// its aliases.
func (l *lowerer) metadataHeader(name, typ string, t types.Type) *aggregate {
	s, ok := t.(*types.Struct)
	if !ok {
		l.unsupported(l.at, "%s of type %s", name, t)
	}
	ht := &bmv2.HeaderType{Name: typ, ID: l.nextID("header_types")}
	l.cfg.HeaderTypes = append(l.cfg.HeaderTypes, ht)
	l.headerTypes[typ] = ht
	l.cfg.Headers = append(l.cfg.Headers, &bmv2.Header{Name: name, ID: l.nextID("headers"), HeaderType: typ, Metadata: true, PIOmit: true})
	a, bits := &aggregate{typ: s}, 0
	for _, f := range s.Fields {
		st, _ := scalarOf(f.Type)
		ht.Fields = append(ht.Fields, layoutField(f.Name, st))
		a.elems = append(a.elems, &field{header: name, name: f.Name, st: st})
		bits += st.width
		if an := f.Decl.Annotations.Get("alias"); an != nil {
			if alias, ok := an.Text(); ok {
				l.cfg.FieldAliases = append(l.cfg.FieldAliases, bmv2.FieldAlias{Alias: alias, Field: bmv2.FieldRef{Header: name, Field: f.Name}})
			}
		}
	}
	ht.Fields = pad(ht.Fields, bits)
	return a
}

func pad(fs []bmv2.HeaderField, bits int) []bmv2.HeaderField {
	if bits%8 != 0 {
		fs = append(fs, bmv2.HeaderField{Name: "_padding", Width: 8 - bits%8})
	}
	return fs
}

// finishHeaders writes the objects collected during lowering: variables, errors and
// enums.
func (l *lowerer) finishHeaders() {
	ht, bits := l.cfg.HeaderTypes[0], 0
	ht.Fields = []bmv2.HeaderField{}
	for _, f := range l.scalars.fields {
		if f.dropped {
			continue
		}
		ht.Fields = append(ht.Fields, layoutField(f.name, f.st))
		bits += f.st.width
	}
	ht.Fields = pad(ht.Fields, bits)
	for i, name := range l.info.Errors {
		l.cfg.Errors = append(l.cfg.Errors, bmv2.NamedValue{Name: name, Value: i})
	}
	for _, d := range l.file.Decls {
		if e, ok := d.(*syntax.EnumDecl); ok && e.Type == nil {
			out := &bmv2.Enum{Name: e.Name.Value}
			for i, m := range e.Members {
				out.Entries = append(out.Entries, bmv2.NamedValue{Name: m.Name.Value, Value: i})
			}
			l.cfg.Enums = append(l.cfg.Enums, out)
		}
	}
}
