package stf

import (
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The commands of simple_switch_CLI for action profiles and selectors. The
// members of a profile are numbered from 0 in the order of their creation, and
// so are its groups.

// isProfileCommand reports whether a statement is one of these commands.
func isProfileCommand(op string) bool {
	switch op {
	case "act_prof_create_member", "act_prof_create_group", "act_prof_add_member_to_group",
		"table_indirect_add", "table_indirect_add_with_group", "table_indirect_set_default", "table_indirect_set_default_with_group":
		return true
	}
	return false
}

func (r *runner) profileCommand(op string, c *cursor) error {
	switch op {
	case "act_prof_create_member":
		return r.createMember(c)
	case "act_prof_create_group":
		p, err := r.profile(c)
		if err == nil {
			_, err = r.sw.Profiles().AddGroup(p.Name)
		}
		return errors.Join(err, c.done())
	case "act_prof_add_member_to_group":
		return r.joinGroup(c)
	case "table_indirect_add":
		return r.indirectAdd(c, program.TargetMember)
	case "table_indirect_add_with_group":
		return r.indirectAdd(c, program.TargetGroup)
	case "table_indirect_set_default":
		return r.indirectDefault(c, program.TargetMember)
	}
	return r.indirectDefault(c, program.TargetGroup)
}

// profile finds an action profile by its name or a suffix of it.
func (r *runner) profile(c *cursor) (*bmv2.ActionProfile, error) {
	byName := map[string]*bmv2.ActionProfile{}
	var names []string
	for _, pl := range r.sw.Config().Pipelines {
		for _, p := range pl.ActionProfiles {
			byName[p.Name] = p
			names = append(names, p.Name)
		}
	}
	name, err := unique("action profile", c.next(), names)
	return byName[name], err
}

// createMember reads PROFILE ACTION PARAMETER...
func (r *runner) createMember(c *cursor) error {
	p, err := r.profile(c)
	if err != nil {
		return err
	}
	var names []string
	for _, pl := range r.sw.Config().Pipelines {
		for _, t := range pl.Tables {
			if t.ActionProfile == p.Name {
				for _, a := range t.Actions {
					names = lists.Add(names, a)
				}
			}
		}
	}
	call := program.ActionCall{}
	if call.Name, err = unique("action of "+p.Name, c.next(), names); err != nil {
		return err
	}
	params := actionOf(r.sw.Config(), call.Name).RuntimeData
	if len(c.list) != len(params) {
		return fmt.Errorf("action %s: %d parameters, expected %d", call.Name, len(c.list), len(params))
	}
	for range params {
		v, err := number(c.next())
		if err != nil {
			return err
		}
		call.Params = append(call.Params, v.Bytes())
	}
	_, err = r.sw.Profiles().AddMember(p.Name, call)
	return err
}

// joinGroup reads PROFILE MEMBER GROUP.
func (r *runner) joinGroup(c *cursor) error {
	p, err := r.profile(c)
	if err != nil {
		return err
	}
	member, err := handle("member", c)
	if err != nil {
		return err
	}
	group, err := handle("group", c)
	if err != nil {
		return err
	}
	return errors.Join(r.sw.Profiles().AddToGroup(p.Name, group, member), c.done())
}

// handle reads the number of a member or a group.
func handle(what string, c *cursor) (program.Handle, error) {
	n, err := numbers32([]string{c.next()})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return program.Handle(n[0]), nil
}

// indirectAdd reads TABLE KEY... => MEMBER|GROUP [PRIORITY]. As in
// simple_switch_CLI the entry with the smallest priority wins.
func (r *runner) indirectAdd(c *cursor, kind program.TargetKind) error {
	t, err := r.table(c.next())
	if err != nil {
		return err
	}
	fields, ordered, err := r.sw.Tables().Key(t.Name)
	if err != nil {
		return err
	}
	var e program.Entry
	for _, f := range fields {
		if c.peek(0) == "=" {
			return fmt.Errorf("table %s: %d key fields, expected %d", t.Name, len(e.Match), len(fields))
		}
		m, err := matchValue(f, c.next())
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		e.Match = append(e.Match, m)
	}
	if c.peek(0) != "=" || c.peek(1) != ">" {
		return fmt.Errorf(`table %s: expected "=>" after %d key fields, found %q`, t.Name, len(fields), c.peek(0))
	}
	c.next()
	c.next()
	if e.Target, err = target(c, kind); err != nil {
		return err
	}
	if ordered {
		n, err := numbers32([]string{c.next()})
		if err != nil {
			return fmt.Errorf("priority: %w", err)
		}
		e.Priority = int(n[0])
	}
	if err := c.done(); err != nil {
		return err
	}
	_, err = r.sw.Tables().Add(t.Name, e)
	return err
}

// indirectDefault reads TABLE MEMBER|GROUP.
func (r *runner) indirectDefault(c *cursor, kind program.TargetKind) error {
	t, err := r.table(c.next())
	if err != nil {
		return err
	}
	to, err := target(c, kind)
	if err != nil {
		return err
	}
	if err := c.done(); err != nil {
		return err
	}
	return r.sw.Tables().SetDefault(t.Name, to)
}

func target(c *cursor, kind program.TargetKind) (program.Target, error) {
	what := "member"
	if kind == program.TargetGroup {
		what = "group"
	}
	h, err := handle(what, c)
	return program.Target{Kind: kind, Index: h}, err
}
