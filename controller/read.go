package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// live reads the state of the switch that the plan covers: all entries, sessions,
// groups and filters, but only the cells and queues of the plan.
func (x *exchange) live(ctx context.Context, want *contents) (*contents, error) {
	c := &contents{objects: map[string]object{}}
	entities := []*p4v1.Entity{tableEntity(&p4v1.TableEntry{})}
	for _, t := range x.index.Tables {
		if t.Presets() {
			entities = append(entities, tableEntity(&p4v1.TableEntry{TableId: t.ID, IsDefaultAction: true}))
		}
	}
	if x.memberful() {
		entities = append(entities, memberEntity(&p4v1.ActionProfileMember{}))
	}
	list, err := x.read(ctx, "the tables", entities...)
	if err != nil {
		return nil, err
	}
	c.members = x.liveMembers(list)
	ids := c.canonical()
	for _, e := range list {
		if t := e.GetTableEntry(); t != nil && !t.GetIsConst() && !x.fixed(t) {
			if !c.holds(t, want.common) {
				action, alias := c.actionOf(x.index, ids, t)
				e := &p4v1.TableEntry{
					TableId: t.GetTableId(), Match: t.GetMatch(), Action: action, Priority: t.GetPriority(), IsDefaultAction: t.GetIsDefaultAction(),
				}
				o := entryObject(e, x.index)
				o.alias = alias
				c.objects[entryKey(e)] = o
			}
		}
	}
	if err := x.liveForeign(ctx, c, want); err != nil {
		return nil, err
	}
	if err := x.liveReplication(ctx, c); err != nil {
		return nil, err
	}
	if err := x.liveCells(ctx, c, want.cells); err != nil {
		return nil, err
	}
	if err := x.liveQueues(ctx, c, want.queues); err != nil {
		return nil, err
	}
	return c, x.liveFilters(ctx, c, want.filters)
}

// fixed reports whether an entry belongs to the program. Servers before version 1.4
// do not mark such entries.
func (x *exchange) fixed(e *p4v1.TableEntry) bool {
	t := x.index.ByID[e.GetTableId()]
	return t != nil && t.Fixed
}

// liveReplication reads clone sessions and multicast groups. Some switches have
// them even before a program is loaded.
func (x *exchange) liveReplication(ctx context.Context, c *contents) error {
	if x.link.Endpoint.Limits.NoReplication {
		return nil
	}
	list, err := x.read(ctx, "clone sessions and multicast groups",
		replicationEntity(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{}},
		}),
		replicationEntity(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{}},
		}))
	if err != nil {
		return err
	}
	for _, e := range list {
		r := e.GetPacketReplicationEngineEntry()
		if g := r.GetMulticastGroupEntry(); g != nil {
			c.addGroup(g)
		}
		if s := r.GetCloneSessionEntry(); s != nil {
			c.addSession(s)
		}
	}
	return nil
}

// registers returns the access to the switch's registers, or nil if there is none.
func (x *exchange) registers() registers.Access {
	e := x.link.Endpoint
	switch {
	case e.Registers != nil:
		return e.Registers
	case e.Limits.NoRegisters:
		return nil
	}
	return &p4Registers{link: x.link, index: x.index, timeout: x.timeout, election: x.c.Election}
}

// liveCells reads the cells of the plan, register by register.
func (x *exchange) liveCells(ctx context.Context, c *contents, want []plan.Cells) error {
	r := x.registers()
	if len(want) > 0 && r == nil {
		x.note("no way to the registers: %s begin with 0", nameCells(want))
		return nil
	}
	for len(want) > 0 {
		name := want[0].Register
		n := slices.IndexFunc(want, func(c plan.Cells) bool { return c.Register != name })
		if n < 0 {
			n = len(want)
		}
		from, to := want[0].From, want[n-1].To
		values, err := r.Read(ctx, name, from, to, nil)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			x.note("no way to the registers: %s begin with 0", nameCells(want))
			return nil
		case err != nil:
			return err
		case len(values) != to-from:
			return fmt.Errorf("reading register %s: %w: %d cells came, %d were asked for", name, errUnsettled, len(values), to-from)
		}
		for _, w := range want[:n] {
			c.cells = append(c.cells, plan.Cells{Register: name, From: w.From, To: w.To, Value: values[w.From-from]})
		}
		want = want[n:]
	}
	return nil
}

func nameCells(list []plan.Cells) string {
	names := lists.Map(list, func(c plan.Cells) string { return c.Register })
	return fmt.Sprint(slices.Compact(names)) // the cells of a register are adjacent in the list
}

func (x *exchange) liveQueues(ctx context.Context, c *contents, want []plan.Queue) error {
	q := x.link.Endpoint.Queues
	if q == nil && len(want) > 0 {
		x.note("no way to the queues: their rates and depths stay as they are")
		return nil
	}
	for _, w := range want {
		have, known, err := q.Queue(ctx, w.Port)
		if err != nil {
			return fmt.Errorf("reading the queue of port %d: %w", w.Port, err)
		}
		if known {
			c.queues = append(c.queues, have)
		}
	}
	return nil
}
