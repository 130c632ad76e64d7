package syntax

import "github.com/p4lb/p4lb/internal/text/lists"

// oneLine reports whether a declaration fits on a single line.
func oneLine(d Decl) bool {
	switch d := d.(type) {
	case *ConstDecl, *VarDecl, *PackageDecl, *ValueSetDecl:
		return true
	case *InstDecl:
		return !d.HasBody
	case *TypedefDecl:
		return d.Inline == nil
	case *ExternDecl:
		return d.Opaque
	case *FuncDecl:
		return d.Body == nil
	case *ParserDecl:
		return d.TypeOnly
	case *ControlDecl:
		return d.TypeOnly
	}
	return false
}

func (p *printer) decl(d Decl) {
	if _, ok := d.(*VarDecl); !ok { // a variable has its annotations on the same line
		p.annotations(AnnotationsOf(d), "\n")
	}
	switch d := d.(type) {
	case *ConstDecl:
		p.print("const ", d.Type, " ", d.Name, " = ", d.Value, ";")
	case *VarDecl:
		p.varDecl(d)
		p.print(";")
	case *InstDecl:
		t, size := d.Type, Expr(nil)
		if several, ok := t.(*StackType); ok {
			t, size = several.Elem, several.Size
		}
		p.print(t)
		p.args(d.Args)
		p.print(" ", d.Name)
		if size != nil {
			p.print("[", size, "]")
		}
		if d.HasBody {
			p.print(" = ")
			p.braces(len(d.Body), func(i int) { p.decl(d.Body[i]) })
		}
		p.print(";")
	case *TypedefDecl:
		p.typedefDecl(d)
	case *StructDecl:
		p.print([]string{"struct ", "header ", "header_union "}[d.Kind], d.Name)
		p.typeParams(d.TypeParams)
		p.print(" ")
		p.braces(len(d.Fields), func(i int) { p.print(d.Fields[i]) })
	case *EnumDecl:
		p.print("enum ")
		if d.Type != nil {
			p.print(d.Type, " ")
		}
		p.print(d.Name, " ")
		memberList(p, d.Members)
	case *ErrorDecl:
		p.print("error ")
		memberList(p, d.Members)
	case *MatchKindDecl:
		p.print("match_kind ")
		memberList(p, d.Members)
	case *ValueSetDecl:
		p.print("value_set<", d.Type, ">(", d.Size, ") ", d.Name, ";")
	case *TableDecl:
		p.table(d)
	case *StateDecl:
		p.state(d)
	default:
		p.callable(d)
	}
}

func memberList[N Node](p *printer, members []N) {
	p.braces(len(members), func(i int) {
		p.node(members[i])
		if i < len(members)-1 {
			p.print(",")
		}
	})
}

// varDecl writes a variable without the semicolon.
func (p *printer) varDecl(d *VarDecl) {
	p.annotations(d.Annotations, " ")
	p.print(d.Type, " ", d.Name)
	if d.Value != nil {
		p.print(" = ", d.Value)
	}
}

func (p *printer) typedefDecl(d *TypedefDecl) {
	p.print([]string{"typedef ", "type "}[btoi(d.New)])
	if d.Inline != nil {
		p.decl(d.Inline)
		// The brackets after the name turned the inline type into a stack type.
		p.print(" ", d.Name)
		p.stackSizes(d.Type)
		p.print(";")
		return
	}
	p.print(d.Type, " ", d.Name, ";")
}

func (p *printer) stackSizes(t Expr) {
	if s, ok := t.(*StackType); ok {
		p.stackSizes(s.Elem)
		p.print("[", s.Size, "]")
	}
}

// callable writes declarations with parameters.
func (p *printer) callable(d Decl) {
	switch d := d.(type) {
	case *ExternDecl:
		p.print("extern ", d.Name)
		p.typeParams(d.TypeParams)
		if d.Opaque {
			p.print(";")
			return
		}
		p.print(" ")
		p.braces(len(d.Methods), func(i int) { p.decl(d.Methods[i]) })
	case *FuncDecl:
		p.funcDecl(d)
	case *ActionDecl:
		p.print("action ", d.Name)
		p.params(d.Params)
		p.print(" ", d.Body)
	case *PackageDecl:
		p.print("package ", d.Name)
		p.typeParams(d.TypeParams)
		p.params(d.Params)
		p.print(";")
	case *ParserDecl:
		p.block("parser ", &d.Block, len(d.States), func(i int) { p.decl(d.States[i]) })
	case *ControlDecl:
		p.block("control ", &d.Block, 1, func(int) { p.print("apply ", d.Body) })
	}
}

// block prints a parser or control. In its braces, n parts come after the
// declarations; the function part prints them.
func (p *printer) block(word string, b *Block, n int, part func(i int)) {
	p.print(word, b.Name)
	p.typeParams(b.TypeParams)
	p.params(b.Params)
	if b.CtorParams != nil {
		p.params(b.CtorParams)
	}
	if b.TypeOnly {
		p.print(";")
		return
	}
	p.print(" ")
	locals := len(b.Locals)
	p.braces(locals+n, func(i int) {
		if i < locals {
			p.decl(b.Locals[i])
		} else {
			part(i - locals)
		}
	})
}

func (p *printer) typeParams(names []*Name) {
	if len(names) > 0 {
		p.print("<")
		commaList(p, names)
		p.print(">")
	}
}

func (p *printer) params(params []*Param) {
	p.print("(")
	commaList(p, params)
	p.print(")")
}

func (p *printer) funcDecl(d *FuncDecl) {
	if d.Extern {
		p.print("extern ")
	}
	if d.Abstract {
		p.print("abstract ")
	}
	if d.Return != nil {
		p.print(d.Return, " ")
	}
	p.print(d.Name)
	p.typeParams(d.TypeParams)
	p.params(d.Params)
	if d.Body == nil {
		p.print(";")
		return
	}
	p.print(" ", d.Body)
}

func (p *printer) state(d *StateDecl) {
	p.print("state ", d.Name, " ")
	n := len(d.Stmts)
	p.braces(n+btoi(d.Transition != nil), func(i int) {
		if i < n {
			p.stmt(d.Stmts[i])
			return
		}
		p.print("transition ", d.Transition)
		if _, ok := d.Transition.(*Name); ok {
			p.print(";")
		}
	})
}

func (p *printer) table(d *TableDecl) {
	p.print("table ", d.Name, " ")
	parts := lists.Filter([]Node{d.Key, d.Actions, d.Entries}, func(n Node) bool { return !isNil(n) })
	for _, prop := range d.Props {
		parts = append(parts, prop)
	}
	p.braces(len(parts), func(i int) { p.print(parts[i]) })
}

func (p *printer) tablePart(n Node) {
	switch n := n.(type) {
	case *TableKey:
		p.print("key = ")
		p.braces(len(n.Elems), func(i int) { p.print(n.Elems[i]) })
	case *KeyElem:
		p.print(n.X, ": ", n.Match)
		p.annotationsBehind(n.Annotations)
		p.print(";")
	case *TableActions:
		p.print("actions = ")
		p.braces(len(n.Refs), func(i int) { p.print(n.Refs[i], ";") })
	case *ActionRef:
		p.annotations(n.Annotations, " ")
		p.print(n.Name)
		if n.HasArgs {
			p.args(n.Args)
		}
	case *TableEntries:
		p.annotations(n.Annotations, "\n")
		p.constWord(n.Const)
		p.print("entries = ")
		p.braces(len(n.List), func(i int) { p.print(n.List[i]) })
	case *Entry:
		p.constWord(n.Const)
		switch x := n.Priority.(type) {
		case nil:
		case *IntLit:
			p.print("priority = ", x, ": ")
		default:
			p.print("priority = (", x, "): ")
		}
		if len(n.Keys) == 1 {
			p.print(n.Keys[0])
		} else {
			p.print("(")
			commaList(p, n.Keys)
			p.print(")")
		}
		p.print(": ", n.Action)
		p.annotationsBehind(n.Annotations)
		p.print(";")
	case *Property:
		p.annotations(n.Annotations, "\n")
		p.constWord(n.Const)
		p.print(n.Name, " = ", n.Value, ";")
	}
}

func (p *printer) constWord(isConst bool) {
	if isConst {
		p.print("const ")
	}
}

func (p *printer) stmt(s Stmt) {
	switch s := s.(type) {
	case *EmptyStmt:
		p.print(";")
	case *DeclStmt:
		p.decl(s.Decl)
	case *AssignStmt, *CallStmt:
		p.simpleStmt(s)
		p.print(";")
	case *BlockStmt:
		p.annotations(s.Annotations, " ")
		p.braces(len(s.Stmts), func(i int) { p.stmt(s.Stmts[i]) })
	case *IfStmt:
		p.ifStmt(s)
	case *SwitchStmt:
		p.print("switch (", s.X, ") ")
		p.braces(len(s.Cases), func(i int) { p.print(s.Cases[i]) })
	case *ForStmt:
		p.annotations(s.Annotations, " ")
		p.print("for (")
		p.simpleList(s.Init)
		p.print("; ", s.Cond, ";")
		if len(s.Post) > 0 {
			p.print(" ")
		}
		p.simpleList(s.Post)
		p.print(") ")
		p.stmt(s.Body)
	case *ForInStmt:
		p.annotations(s.Annotations, " ")
		p.print("for (")
		p.varDecl(s.Var)
		p.print(" in ", s.Coll, ") ")
		p.stmt(s.Body)
	case *ReturnStmt:
		p.print("return")
		if s.Value != nil {
			p.print(" ", s.Value)
		}
		p.print(";")
	case *ExitStmt:
		p.print("exit;")
	case *BreakStmt:
		p.print("break;")
	case *ContinueStmt:
		p.print("continue;")
	}
}

func (p *printer) simpleList(list []Stmt) {
	for i, s := range list {
		if i > 0 {
			p.print(", ")
		}
		p.simpleStmt(s)
	}
}

// simpleStmt writes an assignment, a call or a variable without the semicolon.
func (p *printer) simpleStmt(s Stmt) {
	switch s := s.(type) {
	case *AssignStmt:
		p.print(s.LHS, " ", s.Op.String(), "= ", s.RHS)
	case *CallStmt:
		p.print(s.Call)
	case *DeclStmt:
		if v, ok := s.Decl.(*VarDecl); ok {
			p.varDecl(v)
		}
	}
}

// ifStmt writes a chain of else if without recursion.
func (p *printer) ifStmt(s *IfStmt) {
	for {
		p.print("if (", s.Cond, ") ")
		p.stmt(s.Then)
		if s.Else == nil {
			return
		}
		if _, ok := s.Then.(*BlockStmt); ok {
			p.print(" else ")
		} else {
			p.line()
			p.print("else ")
		}
		next, ok := s.Else.(*IfStmt)
		if !ok {
			p.stmt(s.Else)
			return
		}
		s = next
	}
}
