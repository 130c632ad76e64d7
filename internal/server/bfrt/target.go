package server

import (
	"cmp"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// given returns the i-th entry of a walk, and rests at intervals.
func (r *request) given(i int, x *wire.TableEntry) error {
	if err := r.out(&wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: x}}); err != nil {
		return err
	}
	if i%walkSize == walkSize-1 {
		return r.rest()
	}
	return nil
}

// done records how to undo a change.
func (r *request) done(back func()) {
	if r.undo != nil {
		*r.undo = append(*r.undo, back)
	}
}

// whole executes an update of an entry. If a pipe or a field refuses it, whole undoes the
// part that has been done. Match tables undo insertions themselves, and never refuse a
// deletion in the middle. The undo of a deletion of all entries would be a copy of the table.
func (r *request) whole(o object, kind wire.Update_Type, e *wire.TableEntry) error {
	_, match := o.(*matchTable)
	if match && (kind == wire.Update_INSERT || kind == wire.Update_DELETE) || e.GetValue() == nil && !e.GetIsDefaultEntry() {
		return o.write(r, kind, e)
	}
	batch, undo := r.undo, []func(){}
	r.undo = &undo
	err := o.write(r, kind, e)
	if err != nil && err != errModified {
		for _, back := range slices.Backward(undo) {
			back()
		}
	} else if batch != nil {
		*batch = append(*batch, undo...)
	}
	return err
}

// moving runs f when packets move: after the change of a row, or after a batch that
// stops packets.
func (r *request) moving(f func()) { *r.later = append(*r.later, f) }

// settle runs f once, after the last update of the batch.
func (r *request) settle(f func()) { r.last["replication"] = f }

// all reports whether the target is all pipes.
func (r *request) all() bool { return r.target.GetPipeId() == wire.AllPipes }

// pipesOf lists the pipes of a program that the request's target names.
func (r *request) pipesOf(p *program) ([]int, error) {
	if r.all() {
		return p.pipes, nil
	}
	id := int(r.target.GetPipeId())
	if id >= len(r.s.pipes) {
		return nil, invalidf("there is no pipe %d", id)
	}
	if !slices.Contains(p.pipes, id) {
		return nil, invalidf("program %s is not in pipe %d", p.name, id)
	}
	return []int{id}, nil
}

func allOf() *wire.Mode { return &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_ALL}} }

func wholeScope(p *program) scope {
	return scope{mode: allOf(), gress: allOf(), parser: allOf(), parts: [][]int{p.pipes}}
}

// newScope parses a scope: all pipes, single pipes, or a set of pipes in each byte of
// a number.
func newScope(p *program, e *wire.EntryScope) (scope, error) {
	m := e.GetPipeScope()
	c := scope{mode: m, gress: cmp.Or(e.GetGressScope(), allOf()), parser: cmp.Or(e.GetPrsrScope(), allOf())}
	switch x := m.GetScope().(type) {
	case *wire.Mode_UserDefined:
		seen := map[int]bool{}
		for rest := x.UserDefined; rest != 0; rest >>= 8 {
			var part []int
			for pipe := range 8 {
				if rest&(1<<pipe) == 0 {
					continue
				}
				if seen[pipe] {
					return c, invalidf("scope %#x has pipe %d twice", x.UserDefined, pipe)
				}
				if seen[pipe] = true; slices.Contains(p.pipes, pipe) {
					part = append(part, pipe)
				}
			}
			if part != nil {
				c.parts = append(c.parts, part)
			}
		}
		for _, pipe := range p.pipes {
			if !seen[pipe] {
				return c, invalidf("scope %#x leaves pipe %d out", x.UserDefined, pipe)
			}
		}
	case *wire.Mode_Predef:
		if x.Predef == wire.Mode_SINGLE {
			for _, pipe := range p.pipes {
				c.parts = append(c.parts, []int{pipe})
			}
			break
		}
		c.parts = [][]int{p.pipes}
	default:
		c.mode, c.parts = allOf(), [][]int{p.pipes}
	}
	return c, nil
}

// common reports whether an entry is in all pipes, under the target of all pipes.
func (c *scope) common() bool {
	_, user := c.mode.GetScope().(*wire.Mode_UserDefined)
	return len(c.parts) == 1 && !user
}

// fits reports whether the target of a request matches the scopes of a value set. A
// scope ALL requires the wildcard, and a scope SINGLE requires one gress, pipe or
// parser. A group of pipes is addressed by its lowest pipe. The rules follow
// pipe_mgr_pvs_verify_gress, _pipe and _parser in Intel's driver.
func (c *scope) fits(r *request) error {
	whole := func(m *wire.Mode) bool { return m.GetPredef() == wire.Mode_ALL }
	t := r.target
	for _, x := range []struct {
		what      string
		mode      *wire.Mode
		id, every uint32
	}{
		{"gress", c.gress, t.GetDirection(), wire.AllDirections},
		{"parser", c.parser, t.GetPrsrId(), wire.AllParsers},
	} {
		switch {
		case whole(x.mode) && x.id != x.every:
			return invalidf("the %s scope is ALL: the target must name every %s (%#x), not %d", x.what, x.what, x.every, x.id)
		case !whole(x.mode) && x.id == x.every:
			return invalidf("the %s scope is SINGLE: the target must name one %s, not all (%#x)", x.what, x.what, x.every)
		}
	}
	id := int(t.GetPipeId())
	if _, user := c.mode.GetScope().(*wire.Mode_UserDefined); user {
		for _, part := range c.parts {
			if !r.all() && part[0] == id {
				return nil
			}
		}
		return invalidf("the pipe scope is a set of groups: the target must name the lowest pipe of a group, not %d", id)
	}
	switch {
	case whole(c.mode) && !r.all():
		return invalidf("the pipe scope is ALL: the target must name every pipe (%#x), not %d", wire.AllPipes, id)
	case !whole(c.mode) && r.all():
		return invalidf("the pipe scope is SINGLE: the target must name one pipe, not all (%#x)", wire.AllPipes)
	}
	return nil
}

// of returns the pipes of a target, extended to whole parts.
func (c *scope) of(r *request, p *program) ([]int, error) {
	pipes, err := r.pipesOf(p)
	if err != nil || r.all() {
		return pipes, err
	}
	for _, part := range c.parts {
		if slices.Contains(part, pipes[0]) {
			return part, nil
		}
	}
	return pipes, nil
}
