package types

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// typeParams declares type parameters in the current scope.
func (c *checker) typeParams(names []*syntax.Name) []*TypeParam {
	var ps []*TypeParam
	for _, n := range names {
		p := &TypeParam{Name: n.Value, Decl: n}
		c.declare(&Object{Kind: TypeObj, Type: p}, n, n)
		ps = append(ps, p)
	}
	return ps
}

// generics declares the type parameters of self. Inside the declaration, they are
// also its arguments.
func (c *checker) generics(n *Named, self Type, names []*syntax.Name) []*TypeParam {
	ps := c.typeParams(names)
	n.Args = lists.Map(ps, func(p *TypeParam) Type { return p })
	if len(ps) > 0 {
		n.generic = &generic{params: ps, self: self, spend: func(steps int) { c.spend(names[0].Pos(), steps) }}
	}
	return ps
}

func (c *checker) structDecl(d *syntax.StructDecl) {
	c.annotations(d.Annotations)
	s := &Struct{Named: Named{Name: d.Name.Value}, Kind: d.Kind, Decl: d, index: map[string]int{}}
	old := c.env
	c.env.apply = d.Name
	c.block(func() {
		c.generics(&s.Named, s, d.TypeParams)
		for _, f := range d.Fields {
			c.annotations(f.Annotations)
			t := c.typ(f.Type)
			name := f.Name.Value
			if s.field(name) != nil {
				c.errorf(f.Name.Pos(), "%s has two fields %s", s.Name, name)
				continue
			}
			if why := badField(s.Kind, t); why != "" && t != Invalid {
				c.errorf(f.Pos(), "field %s of %s %s cannot have type %s: %s", name, [...]string{"struct", "header", "header_union"}[s.Kind], s.Name, t, why)
				t = Invalid
			}
			s.add(Field{Name: name, Type: t, Decl: f})
		}
	})
	c.env = old
	o := &Object{Kind: TypeObj, Type: s}
	if !c.bounded(d.Name.Pos(), s) {
		o.Type = Invalid
	}
	c.declare(o, d, d.Name)
}

// badField returns the reason why t cannot be the type of a field, or "" if it can.
func badField(kind syntax.StructKind, t Type) string {
	t = Underlying(t)
	switch kind {
	case syntax.StructKindUnion:
		s, ok := t.(*Struct)
		if _, param := t.(*TypeParam); param || ok && s.isHeader() {
			return ""
		}
		return "the members of a header_union are headers"
	case syntax.StructKindHeader:
		if _, ok := t.(*Varbit); ok || onlyBits(t) {
			return ""
		}
		return "a header holds bits, bools, enums with a representation and structs of these"
	}
	switch t.(type) {
	case *Bits, *Varbit, *Struct, *Enum, *Stack, *Tuple, *TypeParam:
		return ""
	}
	if t == Bool || t == Error || t == MatchKind {
		return ""
	}
	return "a struct holds data"
}

// onlyBits reports whether a header can contain t.
func onlyBits(t Type) bool {
	switch t := t.(type) {
	case *Bits, *TypeParam:
		return true
	case *Enum:
		return t.Repr != nil
	case *New:
		return onlyBits(t.Underlying)
	case *Stack:
		return onlyBits(t.Elem)
	case *Struct:
		if t.Kind != syntax.StructKindStruct {
			return false
		}
		return !slices.ContainsFunc(t.Fields, func(f Field) bool { return !onlyBits(f.Type) })
	}
	return t == Bool || t == Invalid
}

// checkInstance checks the fields of a generic struct's instance, because type
// arguments may break rules that the declaration itself obeys.
func (c *checker) checkInstance(pos syntax.Pos, t Type) {
	if x, ok := t.(*Extern); ok {
		// The same rules apply to the parameters of methods.
		for _, m := range x.Methods {
			for _, p := range m.Type.Params {
				if p.Dir != syntax.NoDir && (p.Type == String || p.Type == Int || isExternType(p.Type)) {
					c.errorf(p.Decl.Pos(), "parameter %s of %s.%s cannot be %s, which %s at %s makes it: such a parameter has no direction", p.Name, x.Name, m.Name, p.Type, x, pos)
				}
			}
		}
	}
	s, ok := t.(*Struct)
	if !ok {
		return
	}
	for _, f := range s.Fields {
		if why := badField(s.Kind, f.Type); why != "" && f.Type != Invalid && f.Type != wildcard {
			c.errorf(f.Decl.Pos(), "field %s of %s cannot have type %s, which %s has it at %s: %s", f.Name, s.Name, f.Type, s, pos, why)
			return
		}
	}
}

// params declares parameters and returns their objects.
func (c *checker) params(ds []*syntax.Param, ctor bool) []*Object {
	var out []*Object
	for _, d := range ds {
		c.annotations(d.Annotations)
		o := &Object{Kind: ParamObj, Type: c.paramType(d, ctor), Dir: d.Dir, Ctor: ctor, Default: d.Default}
		o.Optional = d.Annotations.Get("optional") != nil
		if d.Default != nil {
			switch {
			case d.Dir == syntax.Out || d.Dir == syntax.InOut:
				c.errorf(d.Pos(), "parameter %s is %s and cannot have a default value", d.Name.Value, dirString(d.Dir))
			case o.Optional:
				c.errorf(d.Pos(), "parameter %s is @optional and cannot have a default value too", d.Name.Value)
			}
			tv := c.value(d.Default)
			tv = c.assignValue(d.Default, tv, c.openType(o.Type, tv.Type), "parameter "+d.Name.Value)
			if tv.Type != Invalid && !tv.known {
				c.errorf(d.Default.Pos(), "the default value of %s is not known at compile time", d.Name.Value)
			}
		}
		c.declare(o, d, d.Name)
		out = append(out, o)
	}
	return out
}

// paramType resolves the type of a parameter and checks it against the direction.
func (c *checker) paramType(d *syntax.Param, ctor bool) Type {
	t := c.typ(d.Type)
	name := d.Name.Value
	if ctor && d.Dir != syntax.NoDir {
		c.errorf(d.Pos(), "the constructor parameter %s cannot have a direction", name)
	}
	if d.Dir == syntax.NoDir {
		return t
	}
	switch t.(type) {
	case *Extern, *Parser, *Control, *Package:
		c.errorf(d.Pos(), "parameter %s has type %s and so no direction: %s is only for data", name, t, dirString(d.Dir))
	}
	if t == String || t == Int {
		c.errorf(d.Pos(), "parameter %s has type %s and so no direction: its argument is known at compile time", name, t)
	}
	return t
}

// openType returns the type of a parameter as its default value sees it: the
// default fixes the type parameters in it.
func (c *checker) openType(t, dflt Type) Type {
	var vars []*TypeParam
	for _, o := range c.scope.names {
		if p, ok := o.Type.(*TypeParam); ok && o.Kind == TypeObj {
			vars = append(vars, p)
		}
	}
	in := newInference(vars)
	in.unify(t, dflt)
	return Subst(t, in.substitution())
}

// forbid reports parameters that would take an instance (a parser, a control, an
// extern object) where the language allows none.
func (c *checker) forbid(ps []*Object, blocks bool) {
	for _, p := range ps {
		switch p.Type.(type) {
		case *Package:
			c.errorf(p.Decl.Pos(), "parameter %s cannot be a package", p.Name)
		case *Parser, *Control:
			if !blocks {
				c.errorf(p.Decl.Pos(), "parameter %s cannot have type %s: only the constructors of parsers, controls and packages take such", p.Name, p.Type)
			}
		}
	}
}

func (c *checker) packageDecl(d *syntax.PackageDecl) {
	c.annotations(d.Annotations)
	p := &Package{Named: Named{Name: d.Name.Value}, Decl: d}
	c.block(func() {
		ps := c.generics(&p.Named, p, d.TypeParams)
		p.Ctor = &Func{TypeParams: ps, Params: c.params(d.Params, true), Result: p}
		c.checkConcrete(p.Ctor.Params)
	})
	c.declare(&Object{Kind: TypeObj, Type: p}, d, d.Name)
}

// checkConcrete checks that parameters have parser and control types, not the types
// of particular parsers and controls.
func (c *checker) checkConcrete(ps []*Object) {
	for _, p := range ps {
		if b, ok := BodyOf(p.Type); ok && !b.TypeOnly {
			c.errorf(p.Decl.Pos(), "parameter %s needs a %s type, but %s has a body", p.Name, typeKind(p.Type), p.Type)
		}
	}
}

func (c *checker) externDecl(d *syntax.ExternDecl) {
	c.annotations(d.Annotations)
	x := &Extern{Named: Named{Name: d.Name.Value}, Decl: d}
	o := &Object{Kind: TypeObj, Name: x.Name, Decl: d, Type: x}
	env := c.env
	env.owner, env.apply = o, d.Name
	c.within(env, func() {
		c.generics(&x.Named, x, d.TypeParams)
		for _, m := range d.Methods {
			x.Methods = append(x.Methods, c.method(x, m))
		}
	})
	// A call must be able to distinguish overloaded methods.
	for _, m := range x.Methods {
		same := x.called(m.Name)
		if len(same) > maxOverloads {
			if m == same[maxOverloads] {
				c.errorf(m.Decl.Pos(), "%s.%s is declared more than %d times (docs/limits.md)", x.Name, m.Name, maxOverloads)
			}
			continue
		}
		before := same[:slices.Index(same, m)]
		if n := lists.First(before, func(n *Method) bool { return sameParamNames(m.Type, n.Type) }); n != nil {
			c.errorf(m.Decl.Pos(), "%s.%s is declared twice with the same parameters; the first is at %s", x.Name, m.Name, n.Decl.Pos())
		}
	}
	c.declare(o, d, d.Name)
}

func (c *checker) method(x *Extern, d *syntax.FuncDecl) *Method {
	c.annotations(d.Annotations)
	m := &Method{Name: d.Name.Value, Decl: d, Type: &Func{Result: Void}}
	m.IsCtor = m.Name == x.Name
	env := c.env
	env.owner = &Object{Kind: FuncObj, Name: m.Name, Decl: d, Type: m.Type, Parent: c.env.owner}
	c.within(env, func() {
		m.Type.TypeParams = c.typeParams(d.TypeParams)
		switch {
		case m.IsCtor && d.Return != nil:
			c.errorf(d.Pos(), "%s is the name of the extern: a constructor has no return type", m.Name)
			c.typ(d.Return)
		case m.IsCtor:
			m.Type.Result = x
		default:
			m.Type.Result = c.resultType(d)
		}
		m.Type.Params = c.params(d.Params, m.IsCtor)
		c.forbid(m.Type.Params, false)
	})
	return m
}

// resultType resolves the result type of a function or method.
func (c *checker) resultType(d *syntax.FuncDecl) Type {
	t := c.typ(d.Return)
	switch t.(type) {
	case *Parser, *Control, *Package:
		c.errorf(d.Return.Pos(), "%s cannot return %s", d.Name.Value, t)
		return Invalid
	}
	if t == Int || t == String {
		c.errorf(d.Return.Pos(), "%s cannot return %s, which is known only at compile time", d.Name.Value, t)
		return Invalid
	}
	return t
}
