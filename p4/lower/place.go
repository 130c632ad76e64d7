package lower

import (
	"fmt"
	"strconv"

	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// A value is what an expression evaluates to: *ex, a place (*field, *header,
// *union, *stack, *element), *aggregate, *literal, *instance, or nil for void.
type value any

// A field is one BMv2 field: a header's, or a variable among the scalars.
type field struct {
	header  string
	name    string
	st      scalar
	temp    bool // made by the compiler; its value dies with its last use
	named   bool // the program names it
	dropped bool // a variable that nothing mentions after all
	result  bool // a temporary that a whole body may write: see renamed
	// asked is a variable that is 1 once the program has written the field, for
	// those of the architecture whose 0 has a meaning; nil for all others.
	asked *field
}

// A header is one BMv2 header instance. Parts mirror the declared fields, of
// which a struct is an aggregate; fields are the scalars below in order.
type header struct {
	name   string
	typ    *types.Struct
	parts  []value
	fields []*field
	local  bool // a variable: not parsed, not deparsed
}

// A union is one BMv2 header union; its members are headers of their own.
type union struct {
	name    string
	typ     *types.Struct
	members []*header
}

// A stack is a BMv2 header stack or header union stack.
type stack struct {
	name  string
	typ   *types.Stack
	elems []value // *header or *union
	union bool
}

// An aggregate is a struct or tuple: its parts are values, places where it is a place.
type aggregate struct {
	typ   types.Type
	elems []value
}

// A literal is a header given by its scalars in order, or the invalid header.
type literal struct {
	typ     *types.Struct
	fields  []*ex
	invalid bool
}

// An element is stack[index], or an array's, with an index known only at run
// time, or what is inside of it: sel selects below each element.
type element struct {
	elems []value
	index *ex
	sel   []int
	last  *stack // of stack.last, which BMv2's parser reads directly
}

// A next is stack.next, or a member of such a union.
type next struct {
	stack  *stack
	member int // of a union stack's element, -1 for the element itself
}

// components lists the parts of a struct, tuple or array; ok is false for the
// types that BMv2 has objects for: headers, unions and stacks of these.
func components(t types.Type) (names []string, parts []types.Type, ok bool) {
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		for _, f := range t.Fields {
			names = append(names, f.Name)
			parts = append(parts, f.Type)
		}
		return names, parts, t.Kind == syntax.StructKindStruct
	case *types.Tuple:
		for i, e := range t.Elems {
			names = append(names, fmt.Sprintf("f%d", i))
			parts = append(parts, e)
		}
		return names, parts, true
	case *types.Stack:
		for i := range t.Size {
			names = append(names, strconv.Itoa(i))
			parts = append(parts, t.Elem)
		}
		s, isStruct := types.Underlying(t.Elem).(*types.Struct)
		return names, parts, !isStruct || s.Kind == syntax.StructKindStruct
	}
	return nil, nil, false
}

// partIndex finds a part of a struct or tuple by its name, -1 where there is none.
func partIndex(t types.Type, name string) int {
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		return t.FieldIndex(name)
	case *types.Tuple:
		for i := range t.Elems {
			if name == fmt.Sprintf("f%d", i) {
				return i
			}
		}
	}
	return -1
}

// alloc makes a variable of type t, as fields of the scalars, header instances
// and stacks whose names start with name.
func (l *lowerer) alloc(name string, t types.Type, temp bool) value {
	l.spend(costVariable)
	t = types.Underlying(t)
	if st, ok := scalarOf(t); ok {
		if st.varbit {
			return l.allocVarbit(l.unique(name), st)
		}
		return l.scalars.add(l.unique(name), st, temp)
	}
	switch t := t.(type) {
	case *types.Struct:
		switch t.Kind {
		case syntax.StructKindHeader:
			return l.newHeader(l.unique(name), t, true)
		case syntax.StructKindUnion:
			return l.newUnion(l.unique(name), t, true)
		}
	case *types.Stack:
		if s, ok := types.Underlying(t.Elem).(*types.Struct); ok && s.Kind != syntax.StructKindStruct {
			return l.newStack(l.unique(name), t, true)
		}
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

// unique makes name differ from all names given before.
func (l *lowerer) unique(name string) string {
	n := l.names[name]
	l.names[name] = n + 1
	if n == 0 {
		return name
	}
	return l.unique(fmt.Sprintf("%s_%d", name, n))
}

// temp makes a variable for an intermediate value.
func (l *lowerer) temp(st scalar) *field {
	if st.width == 0 {
		st = scalar{width: 32, signed: true}
	}
	if st.varbit {
		return l.allocVarbit(l.unique("tmp"), st)
	}
	return l.scalars.add(l.unique("tmp"), st, true)
}

// leaves lists the scalar places below p in order; headers give their fields.
func leaves(p value) []*field {
	switch p := p.(type) {
	case *field:
		return []*field{p}
	case *header:
		return p.fields
	case *union:
		var fs []*field
		for _, m := range p.members {
			fs = append(fs, m.fields...)
		}
		return fs
	case *stack:
		var fs []*field
		for _, e := range p.elems {
			fs = append(fs, leaves(e)...)
		}
		return fs
	case *aggregate:
		var fs []*field
		for _, e := range p.elems {
			fs = append(fs, leaves(e)...)
		}
		return fs
	}
	return nil
}

// isPlace reports whether v is a fixed place that can be passed by reference.
func isPlace(v value) bool {
	switch v := v.(type) {
	case *field, *header, *union, *stack:
		return true
	case *aggregate:
		for _, e := range v.elems {
			if !isPlace(e) {
				return false
			}
		}
		return true
	}
	return false
}
