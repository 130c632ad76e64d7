package program

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Pipeline is a linked control.
type Pipeline struct {
	name  string
	first *node
	entry uintptr // the address in machine code, for Tofino
}

// Apply runs p through the control to its end or an exit.
func (pl *Pipeline) Apply(s *Program, p *vector.State) {
	if pl == nil {
		return
	}
	if pl.entry != 0 {
		s.Compiled.Run(p, pl.entry)
		return
	}
	p.Steps = 0
	for n := pl.first; n != nil && !p.Exit && p.Steps < maxSteps; p.Steps++ {
		switch {
		case n.table != nil:
			if t := n.table; t.Fixed && s.opts.Trace == nil {
				t.Def.Action.run(p, t.Def.Args)
				n = t.Def.next
			} else {
				c, next := t.choose(s, p)
				if c != nil && c.Action != nil {
					if s.opts.Trace != nil {
						s.Trace(p, Event{Kind: EventAction, Name: c.Action.name, Source: c.Action.source})
					}
					c.Action.run(p, c.Args)
				}
				n = next
			}
		case n.cond != nil:
			if n.cond(p) {
				n = n.yes
			} else {
				n = n.no
			}
		default:
			if s.opts.Trace != nil {
				s.Trace(p, Event{Kind: EventAction, Name: n.call.name, Source: n.call.source})
			}
			n.call.run(p, nil)
			n = n.no
		}
	}
}

func (l *Linker) branches(c *bmv2.Pipeline, nodes map[string]*node) error {
	for _, k := range c.Conditionals {
		cond, err := l.Boolean(k.Expression)
		if err != nil {
			return fmt.Errorf("conditional %s: %w", k.Name, err)
		}
		nodes[k.Name] = &node{cond: cond, name: k.Name}
	}
	for _, a := range c.ActionCalls {
		nodes[a.Name] = &node{call: l.prog.actionByID[a.ActionID], name: a.Name}
	}
	for _, k := range c.Conditionals {
		nodes[k.Name].yes, nodes[k.Name].no = nodes[k.TrueNext], nodes[k.FalseNext]
	}
	for _, a := range c.ActionCalls {
		nodes[a.Name].no = nodes[a.NextNode]
	}
	return nil
}

// fill sets a table's default action and entries from the program.
func (s *Program) fill(t *Table, src *bmv2.Table) error {
	if d := src.DefaultEntry; d != nil {
		a := s.actionByID[d.ActionID]
		args, err := a.constArgs(d.ActionData)
		if err != nil {
			return fmt.Errorf("default entry: %w", err)
		}
		t.initial = Call{Action: a, Args: args, next: t.nextNode(a, false)}
		t.Def, t.DefUsed, t.ConstDef = t.initial, true, d.ActionEntryConst
		if d.ActionConst {
			t.ConstAction = a
		}
	}
	for i, e := range src.Entries {
		if err := s.fillEntry(t, e); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	t.Immutable = src.Entries != nil
	t.Fixed = t.Key.Words == 0 && t.ConstDef && t.Def.Action != nil && t.Profile == nil && !t.Counters && t.meters == nil
	return nil
}

func (s *Program) fillEntry(t *Table, e *bmv2.Entry) error {
	a := s.actionByID[e.ActionEntry.ActionID]
	args, err := a.constArgs(e.ActionEntry.ActionData)
	if err != nil {
		return err
	}
	te := TableEntry{Priority: e.Priority, Call: Call{Action: a, Args: args, next: t.nextNode(a, true)}, constant: e.IsConst}
	for i, k := range e.MatchKey {
		if i >= len(t.Key.Fields) {
			return ErrBadMatch
		}
		width := t.Key.Fields[i].Width
		m := Match{PrefixLen: k.PrefixLength}
		for _, f := range []struct {
			hex string
			dst *[]byte
		}{{k.Key, &m.Value}, {k.Mask, &m.Mask}, {k.Start, &m.Value}, {k.End, &m.High}} {
			if f.hex == "" {
				continue
			}
			v, err := bmv2.ParseHex(f.hex)
			if err != nil {
				return err
			}
			*f.dst = v.And(v, num.Most(width)).Bytes()
		}
		te.Match = append(te.Match, m)
	}
	_, err = t.Add(te)
	return err
}

// constArgs reads arguments that are constants of the program.
func (a *action) constArgs(list []string) ([]uint64, error) {
	if len(list) != len(a.Params) {
		return nil, ErrBadParams
	}
	args := make([]uint64, a.argWords)
	for i, h := range list {
		v, err := bmv2.ParseHex(h)
		if err != nil {
			return nil, err
		}
		p := a.Params[i]
		p.Put(args, num.OfBig(v.And(v, num.Most(p.Width)), num.Words(p.Width)))
	}
	return args, nil
}
