package p4rt

import (
	"fmt"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A dataType is the type of a register cell or a digest. A struct, header or
// tuple has members; any other type is a single number.
type dataType struct {
	form    dataForm
	width   int
	names   *translation // of a stringForm
	members []*dataType
}

type dataForm byte

// String names the field of a message that a value of the form needs.
func (f dataForm) String() string {
	return [...]string{"bitstring", "bitstring", "bool", "enum_value", "bitstring", "struct", "header", "tuple"}[f]
}

const (
	bitForm dataForm = iota
	intForm
	boolForm
	enumForm // serializable enum
	stringForm
	structForm
	headerForm
	tupleForm
)

// maxMembers bounds the nested members of a type, so a recursive type in P4Info
// is an error and not an endless loop.
const maxMembers = 1 << 12

// A typeResolver converts types of P4Info to dataTypes.
type typeResolver struct {
	types   *configv1.P4TypeInfo
	names   translations
	members int // visited so far
}

// newDataType resolves a type of P4Info.
func newDataType(types *configv1.P4TypeInfo, names translations, spec *configv1.P4DataTypeSpec) (*dataType, error) {
	return (&typeResolver{types: types, names: names}).resolve(spec)
}

func (r *typeResolver) resolve(spec *configv1.P4DataTypeSpec) (*dataType, error) {
	if r.members++; r.members > maxMembers {
		return nil, fmt.Errorf("its type has more than %d members", maxMembers)
	}
	switch s := spec.GetTypeSpec().(type) {
	case *configv1.P4DataTypeSpec_Bitstring:
		return bitstringType(s.Bitstring)
	case *configv1.P4DataTypeSpec_Bool:
		return &dataType{form: boolForm, width: 1}, nil
	case *configv1.P4DataTypeSpec_SerializableEnum:
		e := r.types.GetSerializableEnums()[s.SerializableEnum.GetName()]
		if e == nil {
			return nil, fmt.Errorf("there is no enum %q", s.SerializableEnum.GetName())
		}
		return scalarType(enumForm, e.GetUnderlyingType().GetBitwidth())
	case *configv1.P4DataTypeSpec_NewType:
		return r.newType(s.NewType.GetName())
	case *configv1.P4DataTypeSpec_Struct:
		return r.structType(s.Struct.GetName())
	case *configv1.P4DataTypeSpec_Header:
		return r.headerType(s.Header.GetName())
	case *configv1.P4DataTypeSpec_Tuple:
		return r.membersOf(tupleForm, s.Tuple.GetMembers())
	}
	return nil, fmt.Errorf("values of type %s are not supported", variant(spec))
}

func bitstringType(s *configv1.P4BitstringLikeTypeSpec) (*dataType, error) {
	switch b := s.GetTypeSpec().(type) {
	case *configv1.P4BitstringLikeTypeSpec_Bit:
		return scalarType(bitForm, b.Bit.GetBitwidth())
	case *configv1.P4BitstringLikeTypeSpec_Int:
		return scalarType(intForm, b.Int.GetBitwidth())
	}
	return nil, fmt.Errorf("values of type %s are not supported", variant(s))
}

func scalarType(form dataForm, width int32) (*dataType, error) {
	if width <= 0 || width > maxWidth {
		return nil, fmt.Errorf("it has numbers of %d bits, want 1 to %d", width, maxWidth)
	}
	return &dataType{form: form, width: int(width)}, nil
}

func (r *typeResolver) newType(name string) (*dataType, error) {
	t := r.types.GetNewTypes()[name]
	switch {
	case t == nil:
		return nil, fmt.Errorf("there is no type %q", name)
	case t.GetOriginalType() != nil:
		return r.resolve(t.GetOriginalType())
	case t.GetTranslatedType().GetSdnBitwidth() > 0:
		return scalarType(bitForm, t.GetTranslatedType().GetSdnBitwidth())
	case t.GetTranslatedType().GetSdnString() != nil:
		return &dataType{form: stringForm, names: r.names.of(r.types, name)}, nil
	}
	return nil, fmt.Errorf("type %q has no translation", name)
}

func (r *typeResolver) structType(name string) (*dataType, error) {
	s := r.types.GetStructs()[name]
	if s == nil {
		return nil, fmt.Errorf("there is no struct %q", name)
	}
	var specs []*configv1.P4DataTypeSpec
	for _, m := range s.GetMembers() {
		specs = append(specs, m.GetTypeSpec())
	}
	return r.membersOf(structForm, specs)
}

func (r *typeResolver) headerType(name string) (*dataType, error) {
	h := r.types.GetHeaders()[name]
	if h == nil {
		return nil, fmt.Errorf("there is no header %q", name)
	}
	t := &dataType{form: headerForm}
	for _, m := range h.GetMembers() {
		mt, err := bitstringType(m.GetTypeSpec())
		if err != nil {
			return nil, err
		}
		t.members = append(t.members, mt)
	}
	return t, nil
}

func (r *typeResolver) membersOf(form dataForm, specs []*configv1.P4DataTypeSpec) (*dataType, error) {
	t := &dataType{form: form}
	for _, s := range specs {
		mt, err := r.resolve(s)
		if err != nil {
			return nil, err
		}
		t.members = append(t.members, mt)
	}
	return t, nil
}

// scalar reports whether a value is a single number.
func (t *dataType) scalar() bool { return t.form < structForm }

// leaves returns the numbers in a value, in order.
func (t *dataType) leaves() []*dataType {
	if t.scalar() {
		return []*dataType{t}
	}
	var list []*dataType
	for _, m := range t.members {
		list = append(list, m.leaves()...)
	}
	return list
}

// fits reports whether the numbers in a value have these widths.
func (t *dataType) fits(widths []int) bool {
	leaves := t.leaves()
	if len(leaves) != len(widths) {
		return false
	}
	for i, l := range leaves {
		if l.width != widths[i] && l.form != boolForm {
			return false
		}
	}
	return true
}

// number returns the message for a number of the type.
func (t *dataType) number(words []uint64) *p4v1.P4Data {
	switch t.form {
	case boolForm:
		return &p4v1.P4Data{Data: &p4v1.P4Data_Bool{Bool: words[0]&1 == 1}}
	case enumForm:
		return &p4v1.P4Data{Data: &p4v1.P4Data_EnumValue{EnumValue: num.Shortest(words, t.width)}}
	}
	return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: t.bytes(words)}}
}

// bytes returns the canonical byte string of a number of the type.
func (t *dataType) bytes(words []uint64) []byte {
	switch t.form {
	case intForm:
		return num.ShortestSigned(words, t.width)
	case stringForm:
		return t.names.text(num.Shortest(words, t.width))
	}
	return num.Shortest(words, t.width)
}

// parse reads a number of the type from a message, as t.width bits.
func (t *dataType) parse(d *p4v1.P4Data) ([]uint64, error) {
	n := max(1, (t.width+63)/64)
	switch v := d.GetData().(type) {
	case *p4v1.P4Data_Bitstring:
		switch t.form {
		case bitForm:
			b, err := unsigned(v.Bitstring, t.width)
			return num.OfBytes(b, n), err
		case intForm:
			b, err := signed(v.Bitstring, t.width)
			return signedWords(b, n, t.width), err
		case stringForm:
			b, err := t.names.number(v.Bitstring)
			return num.OfBytes(b, n), err
		}
	case *p4v1.P4Data_Bool:
		if t.form == boolForm && v.Bool {
			return []uint64{1}, nil
		} else if t.form == boolForm {
			return []uint64{0}, nil
		}
	case *p4v1.P4Data_EnumValue:
		if t.form == enumForm {
			b, err := unsigned(v.EnumValue, t.width)
			return num.OfBytes(b, n), err
		}
	}
	return nil, failf(codes.InvalidArgument, "the data is %s: want %s", variant(d), t.form)
}

// signedWords converts a two's complement byte string to the low width bits of
// n words.
func signedWords(b []byte, n, width int) []uint64 {
	words := num.OfBytes(b, n)
	if len(b) == 0 || b[0] < 0x80 {
		return words
	}
	for i := len(b) * 8; i < width; i++ {
		words[i/64] |= 1 << (i % 64)
	}
	if width%64 != 0 {
		words[n-1] &= 1<<(width%64) - 1
	}
	return words
}

// build returns the message for a value. next returns the number for each leaf
// in turn.
func (t *dataType) build(next func(*dataType) []uint64) *p4v1.P4Data {
	if t.scalar() {
		return t.number(next(t))
	}
	if t.form == headerForm {
		h := &p4v1.P4Header{IsValid: true}
		for _, m := range t.members {
			h.Bitstrings = append(h.Bitstrings, m.bytes(next(m)))
		}
		return &p4v1.P4Data{Data: &p4v1.P4Data_Header{Header: h}}
	}
	s := &p4v1.P4StructLike{}
	for _, m := range t.members {
		s.Members = append(s.Members, m.build(next))
	}
	if t.form == tupleForm {
		return &p4v1.P4Data{Data: &p4v1.P4Data_Tuple{Tuple: s}}
	}
	return &p4v1.P4Data{Data: &p4v1.P4Data_Struct{Struct: s}}
}

// bits returns the total width of the numbers in a value.
func (t *dataType) bits() int {
	n := t.width
	for _, m := range t.members {
		n += m.bits()
	}
	return n
}
