package types

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// follow starts to follow o if its initial value is undefined.
func (c *checker) follow(o *Object) {
	if undefined(o.Type) {
		o.flow = &flow{loops: c.env.loops}
	}
}

// followOut starts to follow the out parameters of a function, action or block with
// a body.
func (c *checker) followOut(f *Func) {
	for _, p := range f.Params {
		if p.Dir == syntax.Out {
			c.follow(p)
		}
	}
}

// undefined reports whether a variable of type t has an undefined initial value.
// Headers do not: they start invalid.
func undefined(t Type) bool {
	switch t := Underlying(t).(type) {
	case *Bits, *Enum:
		return true
	case *Basic:
		return t == Bool || t == Error
	case *Tuple:
		return !slices.ContainsFunc(t.Elems, func(e Type) bool { return !undefined(e) }) && len(t.Elems) > 0
	case *Struct:
		return t.Kind == syntax.StructKindStruct && len(t.Fields) > 0 &&
			!slices.ContainsFunc(t.Fields, func(f Field) bool { return !undefined(f.Type) })
	}
	return false
}

// reads records that n, a use of o, is read. If n turns out to be written, writes
// removes the record.
func (c *checker) reads(n *syntax.Name, o *Object) {
	f := o.flow
	if f == nil || f.written || c.env.loops > f.loops {
		return
	}
	// A use is late if it does not run in the order of the text, seen from the
	// declaration of o: in a state, an action or a table.
	f.late = f.late || (c.env.owner != o.Parent || c.env.place == nowhere || c.env.place == inState && !o.inState)
	f.reads = append(f.reads, n)
}

// writes records that e is written, at least in part.
func (c *checker) writes(e syntax.Expr) {
	n := root(e)
	if n == nil {
		return
	}
	o := c.info.Uses[n]
	if o == nil || o.flow == nil || o.flow.written {
		return
	}
	o.flow.written = true
	o.flow.reads = slices.DeleteFunc(o.flow.reads, func(r *syntax.Name) bool { return r == n })
}

// root returns the variable that contains the l-value e.
func root(e syntax.Expr) *syntax.Name {
	switch x := syntax.Unparen(e).(type) {
	case *syntax.Name:
		return x
	case *syntax.SelectorExpr:
		return root(x.X)
	case *syntax.IndexExpr:
		return root(x.X)
	case *syntax.SliceExpr:
		return root(x.X)
	}
	return nil
}

// warnUnused warns about a local declaration that is never used.
func (c *checker) warnUnused(o *Object) {
	if o.used {
		return
	}
	switch d := o.Decl.(type) {
	case *syntax.VarDecl, *syntax.ConstDecl, *syntax.ActionDecl, *syntax.TableDecl, *syntax.ValueSetDecl:
	case *syntax.InstDecl:
		if c.env.this != nil || d.HasBody {
			return
		}
	default:
		return
	}
	if !quiet(syntax.AnnotationsOf(o.Decl), "unused") {
		c.warnf(declPos(o), "%s %s is never used", describeKind(o), o.Name)
	}
}

// quiet reports whether as contains @noWarn("what") or plain @noWarn.
func quiet(as syntax.Annotations, what string) bool {
	return slices.ContainsFunc(as, func(a *syntax.Annotation) bool {
		s, _ := a.Text()
		return a.Name.Value == "noWarn" && (s == what || s == "")
	})
}

// warnShadow warns about a local declaration or parameter that hides another one.
func (c *checker) warnShadow(o *Object, pos syntax.Pos) {
	if o.Kind != VarObj && o.Kind != ConstObj && o.Kind != InstObj || c.scope.parent == nil {
		return
	}
	if d, ok := o.Decl.(*syntax.VarDecl); ok && quiet(d.Annotations, "shadow") {
		return
	}
	hidden := c.scope.parent.lookup(o.Name, nil)
	if hidden == nil {
		return
	}
	switch hidden.Kind {
	case VarObj, ConstObj, ParamObj, InstObj:
		c.warnf(pos, "%s hides the %s at %s", o.Name, describeKind(hidden), c.posOf(hidden))
	}
}

// maxWhy bounds the part of a deprecation message that each warning repeats.
const maxWhy = 400

// warnDeprecated reports the message of @deprecated when the object is used.
func (c *checker) warnDeprecated(pos syntax.Pos, o *Object) {
	switch o.Decl.(type) {
	case *syntax.FuncDecl, *syntax.ExternDecl, *syntax.ActionDecl, *syntax.ControlDecl, *syntax.ParserDecl, *syntax.PackageDecl,
		*syntax.StructDecl, *syntax.EnumDecl, *syntax.ConstDecl, *syntax.TypedefDecl:
	default:
		return
	}
	if pos.File() == o.Decl.Pos().File() {
		return
	}
	as := syntax.AnnotationsOf(o.Decl)
	if as.Get("deprecated") == nil {
		return
	}
	why, _ := as.Text("deprecated")
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "") + "…"
	}
	if why != "" {
		why = ": " + why
	}
	c.warnf(pos, "%s is deprecated%s", o.Name, why)
}

// changes records that e is read and then written.
func (c *checker) changes(e syntax.Expr) {
	if n := root(e); n != nil {
		if o := c.info.Uses[n]; o != nil && o.flow != nil {
			o.flow.written = true
		}
	}
}

// declPos returns the position of o's name in its declaration.
func declPos(o *Object) syntax.Pos {
	if d, ok := o.Decl.(syntax.Decl); ok && d.DeclName() != nil {
		return d.DeclName().Pos()
	}
	return o.Decl.Pos()
}
