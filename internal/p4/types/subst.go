package types

import (
	"hash/maphash"
	"reflect"
	"slices"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// Subst returns t with the type parameters in m replaced. It returns t itself if
// nothing changes.
func Subst(t Type, m map[*TypeParam]Type) Type {
	if len(m) == 0 || !mentions(t, m) {
		return t
	}
	switch t := t.(type) {
	case *TypeParam:
		return m[t]
	case *Stack:
		return &Stack{Elem: Subst(t.Elem, m), Size: t.Size}
	case *Tuple:
		return &Tuple{Elems: substAll(t.Elems, m)}
	case *List:
		return &List{Elem: Subst(t.Elem, m)}
	case *Func:
		return substFunc(t, m)
	}
	n := namedOf(t)
	return n.generic.instance(substAll(n.Args, m))
}

// mentions reports whether t contains a key of m. For a named type, it examines
// only the type arguments.
func mentions(t Type, m map[*TypeParam]Type) bool {
	switch t := t.(type) {
	case *TypeParam:
		_, ok := m[t]
		return ok
	case *Stack:
		return mentions(t.Elem, m)
	case *Tuple:
		return anyMentions(t.Elems, m)
	case *List:
		return mentions(t.Elem, m)
	case *Func:
		return slices.ContainsFunc(t.Params, func(p *Object) bool { return mentions(p.Type, m) }) ||
			t.Result != nil && mentions(t.Result, m)
	}
	return anyMentions(argsOf(t), m)
}

func anyMentions(ts []Type, m map[*TypeParam]Type) bool {
	return slices.ContainsFunc(ts, func(t Type) bool { return mentions(t, m) })
}

// argsOf returns the type arguments of a named type.
func argsOf(t Type) []Type {
	if n := namedOf(t); n != nil {
		return n.Args
	}
	return nil
}

func substAll(ts []Type, m map[*TypeParam]Type) []Type {
	return lists.Map(ts, func(t Type) Type { return Subst(t, m) })
}

func substFields(fs []Field, m map[*TypeParam]Type) []Field {
	out := make([]Field, len(fs))
	for i, f := range fs {
		f.Type = Subst(f.Type, m)
		out[i] = f
	}
	return out
}

// substFunc substitutes in the parameters and the result. Type parameters of the
// signature that m replaces are removed.
func substFunc(f *Func, m map[*TypeParam]Type) *Func {
	if f == nil || len(m) == 0 {
		return f
	}
	out := &Func{Result: f.Result}
	if f.Result != nil {
		out.Result = Subst(f.Result, m)
	}
	for _, p := range f.TypeParams {
		if _, ok := m[p]; !ok {
			out.TypeParams = append(out.TypeParams, p)
		}
	}
	out.Params = make([]*Object, len(f.Params))
	for i, p := range f.Params {
		q := *p
		q.Type = Subst(p.Type, m)
		out.Params[i] = &q
	}
	return out
}

// instance returns the instance for args, which has one element for each parameter.
// A declaration cannot name itself, so instances cannot nest endlessly.
func (g *generic) instance(args []Type) Type {
	candidates := g.insts
	if len(candidates) > maxLinear {
		candidates = g.found[likeness(args)]
	}
	for _, t := range candidates {
		if allIdentical(argsOf(t), args) {
			return t
		}
	}
	t := g.shell(args)
	g.insts = append(g.insts, t)
	if len(g.insts) > maxLinear {
		fresh := []Type{t}
		if g.found == nil {
			g.found, fresh = map[uint64][]Type{}, g.insts
		}
		for _, t := range fresh {
			like := likeness(argsOf(t))
			g.found[like] = append(g.found[like], t)
		}
	}
	g.fill(t)
	return t
}

// likeness returns a hash of a list of types: identical lists have the same hash.
// It examines only a few levels.
func likeness(ts []Type) uint64 { return likenessTo(3, ts) }

func likenessTo(deep int, ts []Type) (n uint64) {
	for _, t := range ts {
		var of any = reflect.TypeOf(t)
		var parts []Type
		switch t := t.(type) {
		case *Bits:
			of = *t
		case *Varbit:
			of = *t
		case *Enum:
			of = t.Decl
		case *New:
			of = t.Decl
		case *Stack:
			of, parts = t.Size, []Type{t.Elem}
		case *Tuple:
			parts = t.Elems
		case *Struct:
			of, parts = t.Decl, t.Args
		}
		var below uint64
		if deep > 0 {
			below = likenessTo(deep-1, parts)
		}
		n = maphash.Comparable(likenessSeed, [...]any{n, of, below})
	}
	return n
}

var likenessSeed = maphash.MakeSeed()

// shell creates an instance without contents, so that the contents can refer to it.
func (g *generic) shell(args []Type) Type {
	n := Named{Name: namedOf(g.self).Name, Args: args, generic: g}
	switch t := g.self.(type) {
	case *Struct:
		return &Struct{Named: n, Kind: t.Kind, Decl: t.Decl}
	case *Extern:
		return &Extern{Named: n, Decl: t.Decl}
	case *Parser:
		return &Parser{Block: Block{Named: n}, Decl: t.Decl}
	case *Control:
		return &Control{Block: Block{Named: n}, Decl: t.Decl}
	}
	return &Package{Named: n, Decl: g.self.(*Package).Decl}
}

func (g *generic) fill(inst Type) {
	m := make(map[*TypeParam]Type, len(g.params))
	for i, p := range g.params {
		m[p] = argsOf(inst)[i]
	}
	switch t := inst.(type) {
	case *Struct:
		self := g.self.(*Struct)
		g.spend(costField * len(self.Fields))
		t.Fields, t.index = substFields(self.Fields, m), self.index
	case *Extern:
		ms := g.self.(*Extern).Methods
		out := make([]*Method, len(ms))
		for i, method := range ms {
			g.spend(costMethod + costParam*len(method.Type.Params))
			copied := *method
			copied.Type = substFunc(method.Type, m)
			out[i] = &copied
		}
		t.Methods = out
	case *Package:
		t.Ctor = substFunc(g.self.(*Package).Ctor, m)
	default:
		self, b := blockOf(g.self), blockOf(inst)
		b.Apply, b.Ctor = substFunc(self.Apply, m), substFunc(self.Ctor, m)
	}
}

// genericOf returns the generic of a named type, or nil if the type has no type
// parameters.
func genericOf(t Type) *generic {
	if n := namedOf(t); n != nil {
		return n.generic
	}
	return nil
}

// hasTypeParam reports whether a size depends on a type parameter.
func hasTypeParam(t Type) bool {
	switch t := t.(type) {
	case *TypeParam:
		return true
	case *Stack:
		return hasTypeParam(t.Elem)
	case *Tuple:
		return slices.ContainsFunc(t.Elems, hasTypeParam)
	case *Struct:
		return slices.ContainsFunc(t.Fields, func(f Field) bool { return hasTypeParam(f.Type) })
	}
	return false
}
