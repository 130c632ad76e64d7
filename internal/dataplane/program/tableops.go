package program

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// Add adds an entry to the table.
func (t *Table) Add(e TableEntry) (Handle, error) {
	demands, err := t.fits(&e)
	if err != nil {
		return 0, err
	}
	return t.place(int(t.handles.Take()), e, demands), nil
}

// AddAt adds an entry with a given handle, which must be free.
func (t *Table) AddAt(h Handle, e TableEntry) error {
	demands, err := t.fits(&e)
	switch slot := h.Slot(); {
	case err != nil:
		return err
	case slot >= t.size || !t.handles.Claim(Handle(slot)):
		return ErrBadHandle
	default:
		t.place(slot, e, demands)
		t.Entries[slot].version = uint8(h >> slotBits)
	}
	return nil
}

// fits checks a new entry.
func (t *Table) fits(e *TableEntry) (lookup.TernaryEntry, error) {
	demands, err := t.Prepare(e)
	switch {
	case err != nil:
	case t.Same(e) != lookup.None:
		err = ErrDuplicate
	case t.Count >= t.size:
		err = ErrTableFull
	}
	return demands, err
}

// place puts an entry into a free slot.
func (t *Table) place(slot int, e TableEntry, demands lookup.TernaryEntry) Handle {
	if slot == cap(t.Entries) { // grow in larger steps than append, which would copy more often
		t.Entries = append(make([]TableEntry, 0, min(slot+slot/2+16, max(t.size, slot+1))), t.Entries...)
	}
	for slot >= len(t.Entries) {
		t.Entries = append(t.Entries, TableEntry{})
	}
	e.Used, e.version = true, t.Entries[slot].version
	t.Entries[slot] = e
	t.bind(slot)
	t.Count++
	switch {
	case t.exact != nil:
		t.exact.Insert(e.key, int32(slot))
	case t.lpm != nil:
		t.lpm.Insert(e.key, e.prefix, int32(slot))
	default:
		t.ternary.Insert(slot, demands)
		t.byMatch[e.id()] = int32(slot)
	}
	if t.meters != nil {
		t.meters.Reset(slot)
	}
	t.updateLinear()
	return handleOf(slot, e.version)
}

// Prepare checks the match of an entry and converts it to the form of the
// index.
func (t *Table) Prepare(e *TableEntry) (lookup.TernaryEntry, error) {
	switch {
	case t.Key.Words == 0:
		return lookup.TernaryEntry{}, ErrBadMatch
	case t.ternary != nil:
		d, err := t.demands(e)
		if err == nil {
			e.Match = canonical(t.Key, e.Match)
		}
		return d, err
	}
	return lookup.TernaryEntry{}, t.entryKey(e)
}

// Same returns the entry with the same match, and in ternary and range tables
// the same priority.
func (t *Table) Same(e *TableEntry) int32 {
	switch {
	case t.exact != nil:
		return t.exact.Find(e.key)
	case t.lpm != nil:
		return t.lpm.FindExact(e.key, e.prefix)
	}
	if slot, ok := t.byMatch[e.id()]; ok {
		return slot
	}
	return lookup.None
}

// id returns the canonical match of an entry with its priority.
func (e *TableEntry) id() string {
	b := binary.AppendVarint(nil, int64(e.Priority))
	for _, m := range e.Match {
		b = append(b, byte(len(m.Value)))
		for _, part := range [][]byte{m.Value, m.Mask, m.High} {
			b = append(b, part...)
		}
		b = binary.AppendVarint(b, int64(m.PrefixLen))
	}
	return string(b)
}

// Delete removes an entry from the table.
func (t *Table) Delete(slot int) {
	e := &t.Entries[slot]
	switch {
	case t.exact != nil:
		t.exact.Remove(e.key)
	case t.lpm != nil:
		t.lpm.Remove(e.key, e.prefix)
	default:
		t.ternary.Remove(slot)
		delete(t.byMatch, e.id())
	}
	if t.Profile != nil {
		t.Profile.Refer(&e.Call, -1)
	}
	*e = TableEntry{version: e.version + 1}
	if slot < len(t.runs) {
		t.runs[slot] = run{}
	}
	t.handles.Release(Handle(slot))
	t.Count--
	t.updateLinear()
}

// Entry returns an entry in use.
func (t *Table) Entry(h Handle) (*TableEntry, error) {
	slot := h.Slot()
	switch {
	case slot >= len(t.Entries) || !t.Entries[slot].Used:
		return nil, ErrBadHandle
	case t.Entries[slot].version != uint8(h>>slotBits): // the slot has a newer entry
		return nil, ErrExpired
	}
	return &t.Entries[slot], nil
}

// Handle returns the handle of the entry at a slot.
func (t *Table) Handle(slot int) Handle { return handleOf(slot, t.Entries[slot].version) }

// Clear removes all entries, restores the default action if withDefault is set,
// and restarts the handles.
func (t *Table) Clear(withDefault bool) {
	for slot := range t.Entries {
		if t.Entries[slot].Used {
			t.Delete(slot)
		}
	}
	t.Entries, t.runs, t.handles = nil, nil, Handles{}
	if withDefault {
		t.ResetDefault()
	}
}

// ResetDefault restores the default action of the program.
func (t *Table) ResetDefault() {
	if t.Profile != nil && t.DefUsed {
		t.Profile.Refer(&t.Def, -1)
	}
	t.Def, t.DefUsed = t.initial, t.initial.Action != nil
}

// Resolve links a target for the table's entries (hit) or its default action.
func (t *Table) Resolve(target Target, hit bool) (Call, error) {
	if t.Profile == nil {
		if target.Kind != TargetAction {
			return Call{}, ErrBadTarget
		}
		a, args, err := ResolveCall(t.actions, target.Action)
		if err != nil {
			return Call{}, err
		}
		return Call{Action: a, Args: args, next: t.nextNode(a, hit)}, nil
	}
	switch {
	case target.Kind == TargetMember:
		if t.Profile.Member(target.Index) == nil {
			return Call{}, ErrBadHandle
		}
	case target.Kind == TargetGroup && t.selector:
		g := t.Profile.Group(target.Index)
		if g == nil {
			return Call{}, ErrBadHandle
		}
		if len(g.Members) == 0 {
			return Call{}, ErrEmptyGroup
		}
	default:
		return Call{}, ErrBadTarget
	}
	return Call{target: target.Kind, index: target.Index}, nil
}

// ResolveCall finds an action by name and checks its arguments.
func ResolveCall(allowed []*action, c ActionCall) (*action, []uint64, error) {
	for _, a := range allowed {
		if a.name == c.Name {
			args, err := a.args(c.Params)
			return a, args, err
		}
	}
	return nil, nil, ErrBadAction
}

// args converts arguments to words.
func (a *action) args(params [][]byte) ([]uint64, error) {
	if len(params) != len(a.Params) {
		return nil, ErrBadParams
	}
	args := make([]uint64, a.argWords)
	for i, b := range params {
		if !num.Fits(b, a.Params[i].Width) {
			return nil, ErrBadParams
		}
		a.Params[i].Put(args, num.OfBytes(b, num.Words(a.Params[i].Width)))
	}
	return args, nil
}

// CallOf converts words to arguments.
func CallOf(a *action, args []uint64) ActionCall {
	c := ActionCall{Name: a.name}
	for _, p := range a.Params {
		v := make([]uint64, num.Words(p.Width))
		copy(v, args[p.Off:])
		num.Mask(v, p.Width)
		b := make([]byte, num.Bytes(p.Width))
		num.PutBytes(b, v)
		c.Params = append(c.Params, b)
	}
	return c
}

// ToTarget returns the Target of c.
func (c *Call) ToTarget() Target {
	if c.Action != nil {
		return Target{Action: CallOf(c.Action, c.Args)}
	}
	return Target{Kind: c.target, Index: c.index}
}

// Ordered reports whether the entries have a priority.
func (t *Table) Ordered() bool {
	return t.match == bmv2.MatchTernary || t.match == bmv2.MatchRange
}

// Export returns the entry in the control plane's form.
func (e *TableEntry) Export(h Handle) Entry {
	return Entry{Handle: h, Match: e.Match, Priority: e.Priority, Target: e.Call.ToTarget(), IdleTimeout: e.Idle, Const: e.constant}
}
