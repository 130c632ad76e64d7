package lint

import (
	"maps"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// The linter follows a packet through a control statement by statement and records
// the tables and registers that it uses. It follows the branches of a condition
// separately and joins their records after the condition. It reports objects that
// are used twice and chains of dependent steps that are too long.

// A state is the record of the path so far.
type state struct {
	before  *state          // the state at the beginning of the branch; the other fields hold the changes since
	touched map[string]bool // registers and tables used so far
	written map[string]int  // field → the last stage that wrote it
	gate    int             // stage of the enclosing conditions
}

// fork starts a branch. The state before it must not change until the branch is
// joined.
func (s *state) fork() *state {
	return &state{before: s, touched: map[string]bool{}, written: map[string]int{}, gate: s.gate}
}

// join merges the changes of the branches.
func (s *state) join(branches ...*state) {
	for _, b := range branches {
		maps.Copy(s.touched, b.touched)
		for f, stage := range b.written {
			at, _ := s.writtenAt(f)
			s.written[f] = max(at, stage)
		}
	}
}

// writtenAt returns the last stage that wrote a field.
func (s *state) writtenAt(field string) (stage int, ok bool) {
	for ; s != nil && !ok; s = s.before {
		stage, ok = s.written[field]
	}
	return stage, ok
}

// hasTouched reports whether a register or table was used.
func (s *state) hasTouched(key string) (touched bool) {
	for ; s != nil && !touched; s = s.before {
		touched = s.touched[key]
	}
	return touched
}

// A walk follows one control.
type walk struct {
	l      *linter
	prefix string            // prefix of instance names
	names  map[string]string // parameter of a nested control → its argument
	deep   *bool             // the warning about too many steps was given
}

func (w *walk) stmt(s syntax.Stmt, st *state) {
	switch s := s.(type) {
	case *syntax.BlockStmt:
		for _, s := range s.Stmts {
			w.stmt(s, st)
		}
	case *syntax.IfStmt:
		w.calls(s.Cond, st)
		inside := st.fork()
		inside.gate = max(st.gate, st.after(w.reads(s.Cond)))
		other := st.fork()
		other.gate = inside.gate
		w.stmt(s.Then, inside)
		if s.Else != nil {
			w.stmt(s.Else, other)
		}
		st.join(inside, other)
	case *syntax.SwitchStmt:
		w.calls(s.X, st)
		var branches []*state
		for _, c := range s.Cases {
			if c.Body == nil {
				continue
			}
			b := st.fork()
			w.stmt(c.Body, b)
			branches = append(branches, b)
		}
		st.join(branches...)
	case *syntax.AssignStmt, *syntax.CallStmt:
		w.step(s, st)
	case *syntax.DeclStmt:
		if v, ok := s.Decl.(*syntax.VarDecl); ok && v.Value != nil {
			w.calls(v.Value, st)
			w.write(s, st, w.reads(v.Value), []string{w.name(v.Name)})
		}
	}
}

// after returns the first stage that can read all of fields.
func (s *state) after(fields []string) int {
	stage := s.gate
	for _, f := range fields {
		if at, ok := s.writtenAt(f); ok {
			stage = max(stage, at+1)
		}
	}
	return stage
}

// write records a step that reads and writes fields, and checks the number of
// stages.
func (w *walk) write(at syntax.Node, st *state, reads, writes []string) {
	stage := max(st.after(reads), st.after(writes))
	for _, f := range writes {
		st.written[f] = stage
	}
	if stage >= w.l.target.Stages && !*w.deep {
		*w.deep = true
		w.l.warnf(at, "step %d of a chain of dependent steps: %s has %d stages", stage+1, w.l.target.Name, w.l.target.Stages)
	}
}

// step follows one statement of a control's body, which becomes an action of its
// own.
func (w *walk) step(s syntax.Stmt, st *state) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		w.calls(s.RHS, st)
		if w.copied(s) {
			// The copy is ready as soon as the original is.
			to, from := w.field(s.LHS), w.field(s.RHS)
			if at, ok := st.writtenAt(from); ok && !w.l.constant(s.RHS) {
				st.written[to] = max(at, st.gate)
			} else if _, ok := st.writtenAt(to); !ok && st.gate > 0 {
				st.written[to] = st.gate
			}
			return
		}
		w.write(s, st, w.reads(s.RHS), []string{w.field(s.LHS)})
	case *syntax.CallStmt:
		w.call(s.Call, st)
	}
}

// copied reports whether a statement copies a field or constant. The compiler may
// read the original instead of the copy.
func (w *walk) copied(s *syntax.AssignStmt) bool {
	switch x := syntax.Unparen(s.RHS).(type) {
	case *syntax.Name, *syntax.SelectorExpr:
		return true
	default:
		return w.l.constant(x)
	}
}

// calls follows the calls in an expression.
func (w *walk) calls(x syntax.Expr, st *state) {
	syntax.Inspect(x, func(n syntax.Node) bool {
		c, ok := n.(*syntax.CallExpr)
		if ok {
			w.call(c, st)
		}
		return !ok
	})
}

func (w *walk) call(c *syntax.CallExpr, st *state) {
	call := w.l.info.Calls[c]
	if call == nil {
		return
	}
	switch call.Kind {
	case types.MethodCall:
		w.access(c, st)
	case types.ActionCall:
		if a, ok := call.Callee.Decl.(*syntax.ActionDecl); ok {
			w.action(a, c, st, nil)
		}
	case types.TableApply:
		if t, ok := call.Callee.Decl.(*syntax.TableDecl); ok {
			w.table(t, c, st)
		}
	case types.ApplyCall:
		w.nested(c, call, st)
	}
}

// access follows a call of a RegisterAction.
func (w *walk) access(c *syntax.CallExpr, st *state) {
	d, method := w.l.method(c)
	t := w.l.externOf(d)
	if t == nil || len(d.Args) == 0 || !isRegisterAction(t.Name) || !strings.HasPrefix(method, "execute") {
		return
	}
	name, ok := syntax.Unparen(d.Args[0].Value).(*syntax.Name)
	if !ok {
		return
	}
	key := w.instanceName(name)
	if st.hasTouched(key) {
		w.l.errorf(c, "register %s is accessed a second time on the way of one packet", name.Value)
	}
	st.touched[key] = true
}

// instanceName returns a name that distinguishes the registers of nested controls.
// Registers at top level exist once.
func (w *walk) instanceName(name *syntax.Name) string {
	if o := w.l.info.Uses[name]; o != nil && o.Parent == nil {
		return name.Value
	}
	return w.prefix + name.Value
}

// action follows the body of an action as one step. In a table, the step comes
// after the table's keys.
func (w *walk) action(a *syntax.ActionDecl, at syntax.Node, st *state, keys []string) {
	reads, writes := keys, []string(nil)
	for _, s := range a.Body.Stmts {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			w.calls(s.RHS, st)
			reads = append(reads, w.reads(s.RHS)...)
			writes = append(writes, w.field(s.LHS))
		case *syntax.CallStmt:
			w.call(s.Call, st)
		}
	}
	w.write(at, st, reads, writes)
}

// table follows the actions of a table as branches.
func (w *walk) table(t *syntax.TableDecl, at syntax.Node, st *state) {
	key := w.prefix + "table " + t.Name.Value
	if st.hasTouched(key) && t.Key != nil { // a table without a key is a plain action
		w.l.errorf(at, "table %s is applied a second time on the way of one packet", t.Name.Value)
	}
	st.touched[key] = true
	var keys []string
	if t.Key != nil {
		for _, k := range t.Key.Elems {
			keys = append(keys, w.reads(k.X)...)
		}
	}
	if t.Actions == nil {
		return
	}
	var branches []*state
	for _, r := range t.Actions.Refs {
		call := w.l.info.ActionRefs[r]
		if call == nil || call.Callee == nil {
			continue
		}
		if a, ok := call.Callee.Decl.(*syntax.ActionDecl); ok {
			b := st.fork()
			w.action(a, at, b, keys)
			branches = append(branches, b)
		}
	}
	st.join(branches...)
}

// nested follows the control of an instance, with its parameters bound to the
// arguments.
func (w *walk) nested(c *syntax.CallExpr, call *types.Call, st *state) {
	fun, ok := c.Fun.(*syntax.SelectorExpr)
	if !ok {
		return
	}
	t, ok := w.l.info.Types[fun.X].Type.(*types.Control)
	if !ok || t.Decl.Body == nil {
		return
	}
	in := &walk{l: w.l, prefix: w.prefix + syntax.String(fun.X) + ".", names: map[string]string{}, deep: w.deep}
	for i, p := range t.Decl.Params {
		if i < len(call.Args) && call.Args[i] != nil {
			in.names[p.Name.Value] = w.field(call.Args[i])
		}
	}
	in.stmt(t.Decl.Body, st)
}

// reads lists the fields that an expression reads.
func (w *walk) reads(x syntax.Expr) []string {
	var list []string
	syntax.Inspect(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, a := range n.Args {
				list = append(list, w.reads(a.Value)...)
			}
			if fun, ok := n.Fun.(*syntax.SelectorExpr); ok && fun.Sel.Value == "isValid" {
				list = append(list, w.field(fun.X)+".isValid")
			}
			list = append(list, w.operands(n)...)
			return false
		case *syntax.SelectorExpr:
			list = append(list, w.field(n))
			return false
		case *syntax.Name:
			list = append(list, w.name(n))
		}
		return true
	})
	return list
}

// operands lists the fields that the RegisterAction of a call reads.
func (w *walk) operands(c *syntax.CallExpr) []string {
	d, _ := w.l.method(c)
	if d == nil {
		return nil
	}
	var list []string
	for _, member := range d.Body {
		syntax.Inspect(member, func(n syntax.Node) bool {
			s, ok := n.(*syntax.SelectorExpr)
			if ok {
				list = append(list, w.field(s))
			}
			return !ok
		})
	}
	return list
}

// field returns the name of a field; a slice of a field has the field's name.
func (w *walk) field(x syntax.Expr) string {
	switch x := syntax.Unparen(x).(type) {
	case *syntax.SliceExpr:
		return w.field(x.X)
	case *syntax.CastExpr:
		return w.field(x.X)
	case *syntax.SelectorExpr:
		return w.field(x.X) + "." + x.Sel.Value
	case *syntax.Name:
		return w.name(x)
	}
	return syntax.String(x)
}

func (w *walk) name(n *syntax.Name) string {
	if to, ok := w.names[n.Value]; ok {
		return to
	}
	if o := w.l.info.Uses[n]; o != nil && o.Kind == types.VarObj {
		return w.prefix + n.Value
	}
	return n.Value
}
