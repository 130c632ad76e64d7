package types

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// count formats a number with its noun.
func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// staticAssert evaluates static_assert(condition, message).
func (c *checker) staticAssert(e *syntax.CallExpr, call *Call) {
	if len(call.Args) == 0 || call.Args[0] == nil {
		return
	}
	cond := c.info.Types[call.Args[0]]
	ok, folded := cond.Value.(bool)
	switch {
	case !cond.known:
		c.errorf(e.Pos(), "the condition of static_assert is not known at compile time")
	case folded && !ok:
		msg := "static_assert failed: " + show(call.Args[0]) + " is false"
		if len(call.Args) > 1 && call.Args[1] != nil {
			if s, ok := c.info.Types[call.Args[1]].Value.(string); ok {
				msg = "static_assert failed: " + s
			}
		}
		c.errorf(e.Pos(), "%s", msg)
	}
}

func isBlockType(t Type) bool {
	switch t.(type) {
	case *Parser, *Control, *Package:
		return true
	}
	return false
}

func (c *checker) checkExtract(e *syntax.CallExpr, call *Call) {
	if len(call.TypeArgs) != 1 {
		return
	}
	t := call.TypeArgs[0]
	if _, ok := t.(*TypeParam); ok || t == wildcard {
		return
	}
	s, ok := t.(*Struct)
	if !ok || !s.isHeader() {
		c.errorf(e.Args[0].Pos(), "extract needs a header, but %s has type %s", show(e.Args[0].Value), t)
		return
	}
	if c.secondVarbit(e, s) {
		return
	}
	switch v := varbitField(s); {
	case len(call.Args) == 1 && v != nil:
		c.errorf(e.Args[0].Pos(), "%s has the varbit field %s: extract needs its size as a second argument", s, v.Name)
	case len(call.Args) == 2 && v == nil:
		c.errorf(e.Args[0].Pos(), "%s has no varbit field for the second argument of extract", s)
	}
}

// secondVarbit reports a second varbit field in a header that is extracted: extract
// takes only one size, for the first.
func (c *checker) secondVarbit(e *syntax.CallExpr, s *Struct) bool {
	var first *Field
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, ok := f.Type.(*Varbit); !ok {
			continue
		}
		if first != nil {
			c.errorf(first.Decl.Pos(), "header %s has two varbit fields, %s and %s; the extract at %s can fill one", s, first.Name, f.Name, e.Pos())
			return true
		}
		first = f
	}
	return false
}

func varbitField(s *Struct) *Field {
	for i := range s.Fields {
		if _, ok := s.Fields[i].Type.(*Varbit); ok {
			return &s.Fields[i]
		}
	}
	return nil
}

func emittable(t Type) bool {
	switch t := t.(type) {
	case *Stack:
		return emittable(t.Elem)
	case *Struct:
		if t.Kind != syntax.StructKindStruct {
			return true
		}
		return !slices.ContainsFunc(t.Fields, func(f Field) bool { return !emittable(f.Type) })
	case *Tuple:
		return !slices.ContainsFunc(t.Elems, func(e Type) bool { return !emittable(e) })
	case *TypeParam:
		return true
	}
	return t == Invalid || t == wildcard
}

// whyReadOnly explains why an expression cannot be written.
func (c *checker) whyReadOnly(e syntax.Expr) string {
	switch x := syntax.Unparen(e).(type) {
	case *syntax.Name:
		o := c.info.Uses[x]
		switch {
		case o.Kind == ConstObj:
			return ": it is a constant"
		case o.Kind == ParamObj && o.Dir == syntax.In:
			return ": it is an in parameter"
		case o.Kind == ParamObj:
			return ": it is a parameter without direction"
		}
		return ""
	case *syntax.SelectorExpr:
		if x.Sel.Value == "last" || x.Sel.Value == "lastIndex" || x.Sel.Value == "size" {
			return ": " + x.Sel.Value + " can only be read"
		}
		return c.whyReadOnly(x.X)
	case *syntax.IndexExpr:
		return c.whyReadOnly(x.X)
	case *syntax.SliceExpr:
		return c.whyReadOnly(x.X)
	}
	return ": it is no variable"
}

// sameExpr reports whether two expressions have the same text.
func sameExpr(a, b syntax.Expr) bool {
	x, ok1 := syntax.Unparen(a).(*syntax.RecordExpr)
	y, ok2 := syntax.Unparen(b).(*syntax.RecordExpr)
	if ok1 && ok2 {
		values := map[string]syntax.Expr{}
		for _, f := range x.Fields {
			values[f.Name.Value] = f.Value
		}
		for _, f := range y.Fields {
			if v := values[f.Name.Value]; v == nil || !sameExpr(v, f.Value) {
				return false
			}
		}
		return len(x.Fields) == len(y.Fields)
	}
	return syntax.String(syntax.Unparen(a)) == syntax.String(syntax.Unparen(b))
}

// annotations checks the annotations that the language defines.
func (c *checker) annotations(as syntax.Annotations) {
	before := map[string]bool{} // annotation names, and whether the first of that name is structured
	for _, a := range as {
		name := a.Name.Value
		structured := a.Kind == syntax.AnnotationExprs || a.Kind == syntax.AnnotationKeyValues
		if other, twice := before[name]; twice {
			switch {
			case structured || other:
				c.errorf(a.Pos(), "the annotation @%s comes twice", name)
			case name == "name":
				c.warnf(a.Pos(), "@name comes twice; the first one counts")
			}
		}
		if len(as) > 1 {
			before[name] = before[name] || structured
		}
		if structured {
			exprs := a.Exprs
			seen := map[string]bool{}
			for _, f := range a.Fields {
				if seen[f.Name.Value] {
					c.errorf(f.Pos(), "@%s has %s twice", a.Name.Value, f.Name.Value)
				}
				seen[f.Name.Value] = true
				exprs = append(exprs, f.Value)
			}
			for _, e := range exprs {
				tv := c.value(e)
				switch {
				case tv.Type == Invalid:
				case !tv.known:
					c.errorf(e.Pos(), "%s in the annotation @%s is not known at compile time", show(e), a.Name.Value)
				case tv.Type != Int && tv.Type != String && tv.Type != Bool:
					c.errorf(e.Pos(), "an annotation takes numbers without width, strings and bools; %s has type %s", show(e), tv.Type)
				}
			}
		}
		switch name {
		case "name", "deprecated", "noWarn":
			c.stringAnnotation(a)
		case "match":
			c.matchAnnotation(a)
		}
	}
}

// stringAnnotation checks that @name and similar annotations have one string.
func (c *checker) stringAnnotation(a *syntax.Annotation) {
	if a.Kind != syntax.AnnotationBody {
		return
	}
	if len(a.Exprs) == 1 {
		if tv := c.value(a.Exprs[0]); tv.Type == String || tv.Type == Invalid {
			return
		}
	}
	c.errorf(a.Pos(), "@%s needs one string, as in @%s(\"x\")", a.Name.Value, a.Name.Value)
}

func (c *checker) matchAnnotation(a *syntax.Annotation) {
	if a.Kind != syntax.AnnotationBody || len(a.Exprs) == 0 {
		return
	}
	if len(a.Exprs) != 1 {
		c.errorf(a.Pos(), "@match needs one match kind")
		return
	}
	if tv := c.value(a.Exprs[0]); tv.Type != MatchKind && tv.Type != Invalid {
		c.errorf(a.Exprs[0].Pos(), "@match needs a match kind, %s has type %s", show(a.Exprs[0]), tv.Type)
	}
}

// controlPlaneName checks that actions have different names for the control plane,
// unless they have the same text. The name is the path of declarations, or the
// @name, which is absolute if it begins with a dot. Tables are checked during
// lowering, because only applied tables count.
func (c *checker) controlPlaneName(o *Object, as syntax.Annotations) {
	name, _ := as.Text("name")
	named := name != ""
	if !named {
		name = o.Name
	}
	if name[0] != '.' {
		for p := o.Parent; p != nil; p = p.Parent {
			name = p.Name + "." + name
		}
		name = "." + name
	}
	if old := c.paths[name]; old != nil && (named || old.named) && old.Name != "NoAction" && syntax.String(old.Decl) != syntax.String(o.Decl) {
		c.errorf(declPos(o), "the action %s has the name %s for the control plane, which the one at %s has too", o.Name, name[1:], c.posOf(old))
		return
	}
	o.named = named
	c.paths[name] = o
}
