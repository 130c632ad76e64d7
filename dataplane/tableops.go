package dataplane

import (
	"encoding/binary"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/lookup"
	"github.com/p4lb/p4lb/dataplane/num"
)

// add puts a new entry into the table.
func (t *table) add(e tableEntry) (Handle, error) {
	demands, err := t.prepare(&e)
	switch {
	case err != nil:
		return 0, err
	case t.same(&e) != lookup.None:
		return 0, ErrDuplicate
	case t.count >= t.size:
		return 0, ErrTableFull
	}
	slot := int(t.handles.take())
	if slot == cap(t.entries) { // append alone would copy a large table many times
		t.entries = slices.Grow(t.entries, slot+16)
	}
	for slot >= len(t.entries) {
		t.entries = append(t.entries, tableEntry{})
	}
	e.used, e.version = true, t.entries[slot].version
	t.entries[slot] = e
	t.count++
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
	t.renewFew()
	return handleOf(slot, e.version), nil
}

// prepare checks the match of an entry and gives it the form of the index.
func (t *table) prepare(e *tableEntry) (lookup.TernaryEntry, error) {
	switch {
	case t.key.words == 0:
		return lookup.TernaryEntry{}, ErrBadMatch
	case t.ternary != nil:
		d, err := t.demands(e)
		if err == nil {
			e.match = canonical(t.key, e.match)
		}
		return d, err
	}
	return lookup.TernaryEntry{}, t.entryKey(e)
}

// canonical writes matches in one way, so that equal ones can be found: full
// width, no bits outside the mask.
func canonical(k *tableKey, list []Match) []Match {
	out := make([]Match, len(list))
	for i, m := range list {
		f := &k.fields[i]
		n := num.Bytes(f.width)
		if f.kind == MatchOptional && m.Value == nil {
			continue
		}
		v := num.Aligned(m.Value, n)
		switch f.kind {
		case MatchLPM:
			num.ClearLow(v, f.width-m.PrefixLen)
			out[i].PrefixLen = m.PrefixLen
		case MatchTernary:
			out[i].Mask = num.Aligned(m.Mask, n)
			for j := range v {
				v[j] &= out[i].Mask[j]
			}
		case MatchRange:
			out[i].High = num.Aligned(m.High, n)
		}
		out[i].Value = v
	}
	return out
}

// same finds the entry with the same match, and for ternary and range tables
// the same priority.
func (t *table) same(e *tableEntry) int32 {
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

// id is the match of an entry, as canonical writes it, with its priority.
func (e *tableEntry) id() string {
	b := binary.AppendVarint(nil, int64(e.priority))
	for _, m := range e.match {
		b = append(b, byte(len(m.Value)))
		for _, part := range [][]byte{m.Value, m.Mask, m.High} {
			b = append(b, part...)
		}
		b = binary.AppendVarint(b, int64(m.PrefixLen))
	}
	return string(b)
}

// delete takes an entry out of the table.
func (t *table) delete(slot int) {
	e := &t.entries[slot]
	switch {
	case t.exact != nil:
		t.exact.Remove(e.key)
	case t.lpm != nil:
		t.lpm.Remove(e.key, e.prefix)
	default:
		t.ternary.Remove(slot)
		delete(t.byMatch, e.id())
	}
	if t.profile != nil {
		t.profile.refer(&e.call, -1)
	}
	*e = tableEntry{version: e.version + 1}
	t.handles.release(Handle(slot))
	t.count--
	t.renewFew()
}

// entry returns an entry in use.
func (t *table) entry(h Handle) (*tableEntry, error) {
	slot := h.Slot()
	switch {
	case slot >= len(t.entries) || !t.entries[slot].used:
		return nil, ErrBadHandle
	case t.entries[slot].version != h.version():
		return nil, ErrExpired
	}
	return &t.entries[slot], nil
}

// handle is the handle of the entry at a place.
func (t *table) handle(slot int) Handle { return handleOf(slot, t.entries[slot].version) }

// clear removes all entries and, if asked, puts the default action back. Handles
// begin anew.
func (t *table) clear(withDefault bool) {
	for slot := range t.entries {
		if t.entries[slot].used {
			t.delete(slot)
		}
	}
	t.entries, t.handles = nil, handles{}
	if withDefault {
		t.resetDefault()
	}
}

func (t *table) resetDefault() {
	if t.profile != nil && t.defUsed {
		t.profile.refer(&t.def, -1)
	}
	t.def, t.defUsed = t.initial, t.initial.action != nil
}

// resolve links a target for the table's entries (hit) or its default action.
func (t *table) resolve(target Target, hit bool) (call, error) {
	if t.profile == nil {
		if target.Kind != TargetAction {
			return call{}, ErrBadTarget
		}
		a, args, err := resolveCall(t.actions, target.Action)
		if err != nil {
			return call{}, err
		}
		return call{action: a, args: args, next: t.nextNode(a, hit)}, nil
	}
	switch {
	case target.Kind == TargetMember:
		if t.profile.member(target.Index) == nil {
			return call{}, ErrBadHandle
		}
	case target.Kind == TargetGroup && t.selector:
		g := t.profile.group(target.Index)
		if g == nil {
			return call{}, ErrBadHandle
		}
		if len(g.members) == 0 {
			return call{}, ErrEmptyGroup
		}
	default:
		return call{}, ErrBadTarget
	}
	return call{target: target.Kind, index: target.Index}, nil
}

// resolveCall finds an action by name and checks its arguments.
func resolveCall(allowed []*action, c ActionCall) (*action, []uint64, error) {
	for _, a := range allowed {
		if a.name == c.Name {
			args, err := a.args(c.Params)
			return a, args, err
		}
	}
	return nil, nil, ErrBadAction
}

// args puts arguments into words.
func (a *action) args(params [][]byte) ([]uint64, error) {
	if len(params) != len(a.params) {
		return nil, ErrBadParams
	}
	args := make([]uint64, a.argWords)
	for i, b := range params {
		if !num.Fits(b, a.params[i].Width) {
			return nil, ErrBadParams
		}
		a.params[i].Put(args, num.OfBytes(b, num.Words(a.params[i].Width)))
	}
	return args, nil
}

// callOf is the reverse of args.
func callOf(a *action, args []uint64) ActionCall {
	c := ActionCall{Name: a.name}
	for _, p := range a.params {
		v := make([]uint64, num.Words(p.Width))
		copy(v, args[p.Off:])
		num.Mask(v, p.Width)
		b := make([]byte, num.Bytes(p.Width))
		num.PutBytes(b, v)
		c.Params = append(c.Params, b)
	}
	return c
}

func (c *call) toTarget() Target {
	if c.action != nil {
		return Target{Action: callOf(c.action, c.args)}
	}
	return Target{Kind: c.target, Index: c.index}
}

// kindOfTable is the kind of match that decides how entries are found.
func (t *table) ordered() bool {
	return t.match == bmv2.MatchTernary || t.match == bmv2.MatchRange
}
