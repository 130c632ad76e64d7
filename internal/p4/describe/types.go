package describe

import (
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// typeSpec describes t and records the named types that it mentions.
func (g *infoGen) typeSpec(t types.Type) *configv1.P4DataTypeSpec {
	switch t := t.(type) {
	case *types.Bits, *types.Varbit:
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bitstring{Bitstring: bitstring(t)}}
	case *types.Struct:
		return g.structSpec(t)
	case *types.New:
		g.recordNew(t)
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_NewType{NewType: named(typeLabelOf(t))}}
	case *types.Enum:
		return g.enumSpec(t)
	case *types.Tuple:
		list := &configv1.P4TupleTypeSpec{}
		for _, e := range t.Elems {
			list.Members = append(list.Members, g.typeSpec(e))
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Tuple{Tuple: list}}
	case *types.Stack:
		s, ok := t.Elem.(*types.Struct)
		if !ok {
			return &configv1.P4DataTypeSpec{}
		}
		elem := g.structSpec(s)
		if u := elem.GetHeaderUnion(); u != nil {
			return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_HeaderUnionStack{
				HeaderUnionStack: &configv1.P4HeaderUnionStackTypeSpec{HeaderUnion: u, Size: int32(t.Size)},
			}}
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_HeaderStack{
			HeaderStack: &configv1.P4HeaderStackTypeSpec{Header: elem.GetHeader(), Size: int32(t.Size)},
		}}
	}
	switch t {
	case types.Bool:
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bool{Bool: &configv1.P4BoolType{}}}
	case types.Error:
		if ti := g.typeInfo(); ti.Error == nil {
			ti.Error = &configv1.P4ErrorTypeSpec{Members: g.info.Errors}
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Error{Error: &configv1.P4ErrorType{}}}
	}
	return &configv1.P4DataTypeSpec{}
}

func named(name string) *configv1.P4NamedType { return &configv1.P4NamedType{Name: name} }

func bitstring(t types.Type) *configv1.P4BitstringLikeTypeSpec {
	switch t := t.(type) {
	case *types.Bits:
		if t.Signed {
			return &configv1.P4BitstringLikeTypeSpec{TypeSpec: &configv1.P4BitstringLikeTypeSpec_Int{Int: &configv1.P4IntTypeSpec{Bitwidth: int32(t.Width)}}}
		}
		return &configv1.P4BitstringLikeTypeSpec{TypeSpec: &configv1.P4BitstringLikeTypeSpec_Bit{Bit: &configv1.P4BitTypeSpec{Bitwidth: int32(t.Width)}}}
	case *types.Varbit:
		return &configv1.P4BitstringLikeTypeSpec{TypeSpec: &configv1.P4BitstringLikeTypeSpec_Varbit{Varbit: &configv1.P4VarbitTypeSpec{MaxBitwidth: int32(t.Max)}}}
	}
	w, _ := types.WidthOf(t)
	return bitstring(&types.Bits{Width: w})
}

// typeLabelOf returns the control plane's name of a named type. As in p4c, the name
// of an instance of a generic type includes the type arguments.
func typeLabelOf(t types.Type) string {
	switch t := t.(type) {
	case *types.Struct:
		name := names.Declared("", t.Decl.Annotations, t.Decl.Name)
		for _, a := range t.Args {
			name += "_" + strings.NewReplacer("<", "", ">", "", " ", "", ",", "_", ".", "_").Replace(a.String())
		}
		return name
	case *types.New:
		return names.Declared("", t.Decl.Annotations, t.Decl.Name)
	case *types.Enum:
		return names.Declared("", t.Decl.Annotations, t.Decl.Name)
	}
	return t.String()
}

func (g *infoGen) structSpec(t *types.Struct) *configv1.P4DataTypeSpec {
	name := typeLabelOf(t)
	switch t.Kind {
	case syntax.StructKindHeader:
		m := &g.typeInfo().Headers
		if (*m)[name] == nil {
			spec := &configv1.P4HeaderTypeSpec{}
			for _, f := range flatHeader(t) {
				g.typeSpec(f.typ)
				spec.Members = append(spec.Members, &configv1.P4HeaderTypeSpec_Member{Name: f.name, TypeSpec: bitstring(plain(f.typ))})
			}
			record(m, name, spec)
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Header{Header: named(name)}}
	case syntax.StructKindUnion:
		m := &g.typeInfo().HeaderUnions
		if (*m)[name] == nil {
			spec := &configv1.P4HeaderUnionTypeSpec{}
			for _, f := range t.Fields {
				spec.Members = append(spec.Members, &configv1.P4HeaderUnionTypeSpec_Member{Name: fieldLabel(f), Header: g.typeSpec(f.Type).GetHeader()})
			}
			record(m, name, spec)
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_HeaderUnion{HeaderUnion: named(name)}}
	}
	m := &g.typeInfo().Structs
	if (*m)[name] == nil {
		spec := &configv1.P4StructTypeSpec{}
		for _, f := range t.Fields {
			spec.Members = append(spec.Members, &configv1.P4StructTypeSpec_Member{Name: fieldLabel(f), TypeSpec: g.typeSpec(f.Type)})
		}
		record(m, name, spec)
	}
	return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Struct{Struct: named(name)}}
}

func record[V any](m *map[string]V, name string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[name] = v
}

// fieldLabel returns the control plane's name of a field.
func fieldLabel(f types.Field) string {
	if f.Decl == nil {
		return f.Name
	}
	return names.Declared("", f.Decl.Annotations, f.Decl.Name)
}

// plain strips newtypes and the names of enum members.
func plain(t types.Type) types.Type {
	t = types.Underlying(t)
	if e, ok := t.(*types.Enum); ok && e.Repr != nil {
		return e.Repr
	}
	return t
}

// scalarWidth returns the width of a type that is sent as one number, or 0 if the
// width varies. ok is false for types with parts.
func scalarWidth(t types.Type) (width int, ok bool) {
	switch t := plain(t).(type) {
	case *types.Bits:
		return t.Width, true
	case *types.Varbit:
		return t.Max, true
	case *types.Enum:
		return 32, true
	case *types.Basic:
		switch t {
		case types.Bool:
			return 1, true
		case types.Error, types.MatchKind:
			return 32, true
		}
		return 0, t == types.Int || t == types.String
	}
	return 0, false
}

// A flatField is a field of a header after structs have been flattened.
type flatField struct {
	name  string
	typ   types.Type
	notes syntax.Annotations
}

// flatHeader flattens the structs in a header. If there is one, all names are the
// declared paths and @name has no effect, as in p4c.
func flatHeader(t *types.Struct) []flatField {
	var out []flatField
	if flat := flatten(t, "", nil, &out); flat {
		return out
	}
	for i, f := range t.Fields {
		out[i].name = fieldLabel(f)
	}
	return out
}

// flatten appends the fields of t and reports whether it found a struct. A field
// also has the annotations of the structs that contain it, inner ones first.
func flatten(t *types.Struct, prefix string, outer []syntax.Annotations, out *[]flatField) bool {
	found := false
	for _, f := range t.Fields {
		notes := outer
		if f.Decl != nil {
			notes = append([]syntax.Annotations{f.Decl.Annotations}, outer...)
		}
		if s, ok := f.Type.(*types.Struct); ok {
			found = true
			flatten(s, prefix+f.Name+".", notes, out)
			continue
		}
		*out = append(*out, flatField{name: prefix + f.Name, typ: f.Type, notes: mergeNotes(notes)})
	}
	return found
}

// mergeNotes returns the first annotation of each name.
func mergeNotes(lists []syntax.Annotations) syntax.Annotations {
	var out syntax.Annotations
	for _, as := range lists {
		for _, a := range as {
			if out.Get(a.Name.Value) == nil {
				out = append(out, a)
			}
		}
	}
	return out
}

func (g *infoGen) enumSpec(t *types.Enum) *configv1.P4DataTypeSpec {
	name := typeLabelOf(t)
	if t.Repr == nil {
		if m := &g.typeInfo().Enums; (*m)[name] == nil {
			spec := &configv1.P4EnumTypeSpec{}
			for _, e := range t.Members {
				spec.Members = append(spec.Members, &configv1.P4EnumTypeSpec_Member{Name: e.Name})
			}
			record(m, name, spec)
		}
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Enum{Enum: named(name)}}
	}
	if m := &g.typeInfo().SerializableEnums; (*m)[name] == nil {
		spec := &configv1.P4SerializableEnumTypeSpec{UnderlyingType: &configv1.P4BitTypeSpec{Bitwidth: int32(t.Repr.Width)}}
		for _, e := range t.Members {
			spec.Members = append(spec.Members, &configv1.P4SerializableEnumTypeSpec_Member{Name: e.Name, Value: bytesValue(e.Value, t.Repr.Width)})
		}
		record(m, name, spec)
	}
	return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_SerializableEnum{SerializableEnum: named(name)}}
}

// recordNew describes a type declared by "type": by its underlying type, or by the
// controller's type if it has @p4runtime_translation.
func (g *infoGen) recordNew(t *types.New) {
	name := typeLabelOf(t)
	m := &g.typeInfo().NewTypes
	if (*m)[name] != nil {
		return
	}
	as := t.Decl.Annotations
	spec := &configv1.P4NewTypeSpec{Annotations: g.annotations(as, "p4runtime_translation"), StructuredAnnotations: g.structured(as)}
	inner := g.typeSpec(types.Underlying(t))
	if a := as.Get("p4runtime_translation"); a == nil {
		spec.Representation = &configv1.P4NewTypeSpec_OriginalType{OriginalType: inner}
	} else {
		sdn, ok := translation(a)
		if !ok {
			g.errorf(a, "@p4runtime_translation wants a URI and string or bit<W>")
		}
		spec.Representation = &configv1.P4NewTypeSpec_TranslatedType{TranslatedType: sdn}
		if _, ok := types.Underlying(t).(*types.Bits); !ok {
			g.errorf(a, "@p4runtime_translation wants a type made from bit<W>, not %s", types.Underlying(t))
		}
	}
	record(m, name, spec)
}

// translation parses @p4runtime_translation("uri", string), (…, bit<W>) or (…, W).
// ok is false for any other form.
func translation(a *syntax.Annotation) (t *configv1.P4NewTypeTranslation, ok bool) {
	t = &configv1.P4NewTypeTranslation{}
	words := a.Tokens
	if len(words) < 3 || !words[0].IsString() || words[1].Text != "," {
		return t, false
	}
	t.Uri, _ = tokenValue(words[0]).(string)
	var what strings.Builder
	for _, w := range words[2:] {
		what.WriteString(w.Text)
	}
	if what.String() == "string" {
		t.SdnType = &configv1.P4NewTypeTranslation_SdnString_{SdnString: &configv1.P4NewTypeTranslation_SdnString{}}
		return t, true
	}
	width, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(what.String(), "bit<"), ">"), 0, 32)
	t.SdnType = &configv1.P4NewTypeTranslation_SdnBitwidth{SdnBitwidth: int32(width)}
	return t, err == nil
}

// newTypeName returns the name of a type that is declared by "type", or nil for
// other types.
func newTypeName(t types.Type) *configv1.P4NamedType {
	if n, ok := t.(*types.New); ok {
		return named(n.Decl.Name.Value)
	}
	return nil
}

// noBits reports whether t is bit<0>, which is not sent to the control plane.
func noBits(t types.Type) bool {
	b, ok := types.Underlying(t).(*types.Bits)
	return ok && b.Width == 0
}

// bitwidth returns the width of t for the controller, or 0 if the controller sees a
// string or a value without width.
func bitwidth(t types.Type) int {
	if n, ok := t.(*types.New); ok {
		if a := n.Decl.Annotations.Get("p4runtime_translation"); a != nil {
			sdn, _ := translation(a)
			return int(sdn.GetSdnBitwidth())
		}
	}
	if v, ok := types.Underlying(t).(*types.Varbit); ok {
		return v.Max
	}
	w, _ := types.WidthOf(t)
	return w
}
