package controller

import (
	"cmp"
	"fmt"
	"strings"
)

// Rows are the plan as a table, object by object, the first row being the heads
// of the columns.
func (p *Plan) Rows() [][]string {
	rows := [][]string{{"SWITCH", "OBJECT", "VALUE"}}
	for _, s := range p.Switches {
		add := func(object, value string) { rows = append(rows, []string{s.Name, object, value}) }
		add("program", fmt.Sprintf("%s for the role %s", s.Pipeline.Manifest.Scheme, s.Role))
		for _, e := range s.Entries {
			add(e.key(), e.call())
		}
		for _, c := range s.Sessions {
			add(fmt.Sprintf("clone session %d", c.ID), fmt.Sprintf("port %d", c.Port))
		}
		for _, g := range s.Groups {
			add(fmt.Sprintf("multicast group %d", g.ID), "ports "+strings.Trim(fmt.Sprint(g.Ports), "[]"))
		}
		for _, r := range s.Registers {
			object := fmt.Sprintf("register %s[%d]", r.Register, r.From)
			if r.To > r.From+1 {
				object = fmt.Sprintf("register %s[%d..%d]", r.Register, r.From, r.To-1)
			}
			add(object, fmt.Sprint(r.Value))
		}
		for _, q := range s.Queues {
			add(fmt.Sprintf("queue of port %d", q.Port), q.String())
		}
		for _, f := range s.Filters {
			add("filter "+f.Name, f.String())
		}
	}
	return rows
}

// key is what an entry is about, as in LbIngress.member gid=2 slot=0.
func (e Entry) key() string {
	if e.Match == nil {
		return e.Table + " default"
	}
	parts := []string{e.Table}
	for _, m := range e.Match {
		value := showNumber(m.Value, m.Width)
		switch {
		case m.Any:
			value = "*"
		case m.Mask != nil:
			value += fmt.Sprintf("&&&%#x", *m.Mask)
		case m.High != nil:
			value += ".." + showNumber(*m.High, m.Width)
		case m.Bits != m.Width || strings.HasSuffix(m.Field, ".dst") || strings.HasSuffix(m.Field, ".src"):
			value = fmt.Sprintf("%s/%d", value, m.Bits)
		}
		parts = append(parts, short(m.Field)+"="+value)
	}
	return strings.Join(parts, " ")
}

// call is what an entry does, as in set_group(gid=2, n=4).
func (e Entry) call() string {
	if len(e.OneOf) == 0 {
		return Call{e.Action, e.Args}.String()
	}
	var list []string
	for _, c := range e.OneOf {
		list = append(list, c.String())
	}
	return "one of " + strings.Join(list, ", ")
}

// String is the call, as in set_group(gid=2, n=4).
func (c Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		width := a.Width
		if width == 32 {
			width = 64 // a number, not an address
		}
		args[i] = a.Name + "=" + showNumber(a.Value, width)
	}
	return c.Action + "(" + strings.Join(args, ", ") + ")"
}

// Rows are the report as a table, a row for each switch.
func (r *Report) Rows() [][]string {
	rows := [][]string{{"SWITCH", "PROGRAM", "INSERTED", "MODIFIED", "DELETED", "WRITTEN", "STATE"}}
	for _, s := range r.Switches {
		counts := map[ChangeKind]int{}
		for _, c := range s.Changes {
			counts[c.Kind]++
		}
		program := "kept"
		switch {
		case s.Pushed:
			program = "pushed"
		case counts[Push] > 0:
			program = "to push"
		}
		rows = append(rows, []string{
			s.Name, program, fmt.Sprint(counts[Insert]), fmt.Sprint(counts[Modify]), fmt.Sprint(counts[Delete]),
			fmt.Sprint(s.Written), s.state(),
		})
	}
	return rows
}

// state sums a switch up in a word or two.
func (s *SwitchReport) state() string {
	switch {
	case s.Verified:
		return "verified"
	case s.RolledBack:
		return "rolled back"
	case s.Err != nil:
		return "failed"
	case len(s.Notes) > 0:
		return s.Notes[0]
	}
	if len(s.Changes) > 0 {
		return "differs"
	}
	return "as planned"
}

// ChangeRows are the changes of all switches as a table.
func (r *Report) ChangeRows() [][]string {
	rows := [][]string{{"SWITCH", "CHANGE", "OBJECT", "BEFORE", "AFTER"}}
	for _, s := range r.Switches {
		for _, c := range s.Changes {
			rows = append(rows, []string{s.Name, string(c.Kind), c.Object, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-")})
		}
	}
	return rows
}
