package syntax

import "reflect"

// Inspect calls f for root and, where f returns true, for all that is below
// it, in the order of the source; only the parts of a table come by their kind.
func Inspect(root Node, f func(Node) bool) {
	if isNil(root) || !f(root) {
		return
	}
	Children(root, func(n Node) { Inspect(n, f) })
}

// isNil reports whether n is nothing at all, be it in an interface or not.
func isNil(n Node) bool { return n == nil || reflect.ValueOf(n).IsNil() }

// Children calls visit for each node right below n, in Inspect's order; what
// is absent is left out.
func Children(n Node, visit func(Node)) {
	c := children{visit}
	switch n := n.(type) {
	case *Annotation:
		c.one(n.Name)
		each(c, n.Exprs)
		each(c, n.Fields)
	case *Arg:
		c.one(n.Name, n.Value)
	case *NamedExpr:
		c.one(n.Name, n.Value)
	case *SelectCase:
		c.one(n.Key, n.Next)
	case *Param:
		each(c, n.Annotations)
		c.one(n.Type, n.Name, n.Default)
	case *Field:
		each(c, n.Annotations)
		c.one(n.Type, n.Name)
	case *EnumMember:
		c.one(n.Name, n.Value)
	case *SwitchCase:
		c.one(n.Label, n.Body)
	case Expr:
		c.expr(n)
	case Stmt:
		c.stmt(n)
	case Decl:
		c.decl(n)
	default:
		switch n := n.(type) {
		case *TableKey:
			each(c, n.Elems)
		case *KeyElem:
			c.one(n.X, n.Match)
			each(c, n.Annotations)
		case *TableActions:
			each(c, n.Refs)
		case *ActionRef:
			each(c, n.Annotations)
			c.one(n.Name)
			each(c, n.Args)
		case *TableEntries:
			each(c, n.Annotations)
			each(c, n.List)
		case *Entry:
			c.one(n.Priority)
			each(c, n.Keys)
			c.one(n.Action)
			each(c, n.Annotations)
		case *Property:
			each(c, n.Annotations)
			c.one(n.Name, n.Value)
		}
	}
}

type children struct{ visit func(Node) }

func (c children) one(nodes ...Node) {
	for _, n := range nodes {
		if !isNil(n) {
			c.visit(n)
		}
	}
}

func each[N Node](c children, nodes []N) {
	for _, n := range nodes {
		c.one(n)
	}
}

func (c children) expr(x Expr) {
	switch x := x.(type) {
	case *ParenExpr:
		c.one(x.X)
	case *UnaryExpr:
		c.one(x.X)
	case *BinaryExpr:
		c.one(x.X, x.Y)
	case *RangeExpr:
		c.one(x.Lo, x.Hi)
	case *MaskExpr:
		c.one(x.X, x.Mask)
	case *CondExpr:
		c.one(x.Cond, x.Then, x.Else)
	case *CastExpr:
		c.one(x.Type, x.X)
	case *IndexExpr:
		c.one(x.X, x.Index)
	case *SliceExpr:
		c.one(x.X, x.Hi, x.Lo, x.Width)
	case *SelectorExpr:
		c.one(x.X, x.Sel)
	case *CallExpr:
		c.one(x.Fun)
		each(c, x.TypeArgs)
		each(c, x.Args)
	case *ListExpr:
		each(c, x.Elems)
	case *RecordExpr:
		each(c, x.Fields)
		c.one(x.Dots)
	case *SelectExpr:
		each(c, x.Args)
		each(c, x.Cases)
	case *BaseType:
		c.one(x.Size)
	case *SpecializedType:
		c.one(x.Base)
		each(c, x.Args)
	case *StackType:
		c.one(x.Elem, x.Size)
	case *TupleType:
		each(c, x.Elems)
	case *ListType:
		c.one(x.Elem)
	}
}

func (c children) stmt(s Stmt) {
	switch s := s.(type) {
	case *DeclStmt:
		c.one(s.Decl)
	case *AssignStmt:
		c.one(s.LHS, s.RHS)
	case *CallStmt:
		c.one(s.Call)
	case *BlockStmt:
		each(c, s.Annotations)
		each(c, s.Stmts)
	case *IfStmt:
		c.one(s.Cond, s.Then, s.Else)
	case *SwitchStmt:
		c.one(s.X)
		each(c, s.Cases)
	case *ForStmt:
		each(c, s.Annotations)
		each(c, s.Init)
		c.one(s.Cond)
		each(c, s.Post)
		c.one(s.Body)
	case *ForInStmt:
		each(c, s.Annotations)
		c.one(s.Var, s.Coll, s.Body)
	case *ReturnStmt:
		c.one(s.Value)
	}
}

func (c children) decl(d Decl) {
	switch d := d.(type) {
	case *ConstDecl:
		each(c, d.Annotations)
		c.one(d.Type, d.Name, d.Value)
	case *VarDecl:
		each(c, d.Annotations)
		c.one(d.Type, d.Name, d.Value)
	case *InstDecl:
		each(c, d.Annotations)
		c.one(d.Type)
		each(c, d.Args)
		c.one(d.Name)
		each(c, d.Body)
	case *TypedefDecl:
		each(c, d.Annotations)
		c.one(d.Inline, d.Type, d.Name)
	case *StructDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.TypeParams)
		each(c, d.Fields)
	case *EnumDecl:
		each(c, d.Annotations)
		c.one(d.Type, d.Name)
		each(c, d.Members)
	case *ErrorDecl:
		each(c, d.Members)
	case *MatchKindDecl:
		each(c, d.Members)
	case *ValueSetDecl:
		each(c, d.Annotations)
		c.one(d.Type, d.Size, d.Name)
	case *TableDecl:
		each(c, d.Annotations)
		c.one(d.Name, d.Key, d.Actions, d.Entries)
		each(c, d.Props)
	case *StateDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.Stmts)
		c.one(d.Transition)
	default:
		c.callable(d)
	}
}

// callable visits the declarations that have parameters.
func (c children) callable(d Decl) {
	switch d := d.(type) {
	case *ExternDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.TypeParams)
		each(c, d.Methods)
	case *FuncDecl:
		each(c, d.Annotations)
		c.one(d.Return, d.Name)
		each(c, d.TypeParams)
		each(c, d.Params)
		c.one(d.Body)
	case *ActionDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.Params)
		c.one(d.Body)
	case *PackageDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.TypeParams)
		each(c, d.Params)
	case *ParserDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.TypeParams)
		each(c, d.Params)
		each(c, d.CtorParams)
		each(c, d.Locals)
		each(c, d.States)
	case *ControlDecl:
		each(c, d.Annotations)
		c.one(d.Name)
		each(c, d.TypeParams)
		each(c, d.Params)
		each(c, d.CtorParams)
		each(c, d.Locals)
		c.one(d.Body)
	}
}
