package dataplane

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/cell"
	"github.com/p4lb/p4lb/dataplane/lookup"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A table is a match-action table. Its entries are found by one of three
// indexes, and kept by handle.
type table struct {
	name    string
	key     *tableKey
	match   string // exact, lpm, ternary or range
	exact   *lookup.Exact
	lpm     *lookup.LPM
	ternary *lookup.Ternary
	scratch []uint64 // the key of the lookup in progress
	few     []fewEntry

	size    int
	entries []tableEntry
	handles handles
	count   int
	// byMatch finds the entries of a ternary or range table by match and
	// priority. Only the control plane needs it.
	byMatch map[string]int32

	profile  *profile // of an indirect table
	selector bool     // groups are allowed
	def      call
	defUsed  bool // def is set
	initial  call // def as the program has it
	constDef bool // def cannot change
	// constAction is the only action that def may have, if not nil.
	constAction *action
	immutable   bool
	// fixed tables are those that compilers make of statements: nothing is
	// looked up in them, and they always do the same.
	fixed bool

	actions []*action
	next    map[*action]*node
	hasHit  bool // next goes by hit and miss
	hit     *node
	miss    *node
	base    *node // on a miss without action

	counters bool
	missed   Count // of the default entry
	ageing   bool
	meters   *cell.Meters
}

// defaultTableSize is the size of a table whose document gives none.
const defaultTableSize = 16384

// maxTableSize is the most that BMv2 allows.
const maxTableSize = 1<<24 - 1

func (l *linker) table(t *bmv2.Table) (*table, error) {
	tb := &table{name: t.Name, match: t.MatchType, size: t.MaxSize, counters: t.WithCounters, ageing: t.SupportTimeout, next: map[*action]*node{}}
	if tb.size <= 0 {
		tb.size = defaultTableSize
	}
	tb.size = min(tb.size, maxTableSize)
	var err error
	if tb.key, err = l.tableKey(t); err != nil {
		return nil, err
	}
	if err := tb.newIndex(); err != nil {
		return nil, err
	}
	tb.scratch = make([]uint64, tb.key.words)
	if err := l.tableActions(tb, t); err != nil {
		return nil, err
	}
	if t.Type != bmv2.TableSimple {
		tb.profile, tb.selector = l.sw.profiles[t.ActionProfile], t.Type == bmv2.TableIndirectSelect
		tb.profile.allow(tb.actions)
	}
	if t.DirectMeters != "" {
		if tb.meters = l.sw.meters[t.DirectMeters]; tb.meters == nil {
			return nil, fmt.Errorf("unknown direct meter array %q", t.DirectMeters)
		}
		tb.meters.Table = t.Name
	}
	return tb, nil
}

// newIndex makes the empty index for the table's kind of match.
func (t *table) newIndex() error {
	switch {
	case t.key.words == 0:
	case t.match == bmv2.MatchExact:
		t.exact = lookup.NewExact(t.key.words)
	case t.match == bmv2.MatchLPM:
		last := t.key.fields[t.key.order[len(t.key.order)-1]]
		if last.kind != MatchLPM {
			return errors.New("an lpm table without an lpm key")
		}
		t.lpm = lookup.NewLPM(last.word, last.width)
	default:
		t.ternary = lookup.NewTernary(t.key.places())
		t.byMatch = map[string]int32{}
	}
	return nil
}

func (l *linker) tableActions(tb *table, t *bmv2.Table) error {
	if len(t.ActionIDs) > 0 {
		for _, id := range t.ActionIDs {
			tb.actions = append(tb.actions, l.sw.actionByID[id])
		}
		return nil
	}
	for _, name := range t.Actions {
		a := l.sw.actionByName(name)
		if a == nil {
			return fmt.Errorf("unknown action %q", name)
		}
		tb.actions = append(tb.actions, a)
	}
	return nil
}

// link resolves where the table leads to, once all nodes of its control exist.
func (t *table) link(src *bmv2.Table, nodes map[string]*node) error {
	labels := map[string]*node{}
	for _, n := range src.NextTables {
		labels[n.Label] = nodes[n.Next]
	}
	t.base = nodes[src.BaseDefaultNext]
	_, hit := labels[bmv2.NextHit]
	_, miss := labels[bmv2.NextMiss]
	if hit != miss {
		return errors.New("next_tables has one of __HIT__ and __MISS__ without the other")
	}
	t.hasHit, t.hit, t.miss = hit, labels[bmv2.NextHit], labels[bmv2.NextMiss]
	if hit {
		t.base = t.miss
		return nil
	}
	for _, a := range t.actions {
		next, ok := labels[a.name]
		if !ok {
			return fmt.Errorf("next_tables lacks action %s", a.name)
		}
		t.next[a] = next
	}
	return nil
}

// nextNode is where the control goes after action a.
func (t *table) nextNode(a *action, hit bool) *node {
	switch {
	case !t.hasHit:
		return t.next[a]
	case hit:
		return t.hit
	}
	return t.miss
}

// find returns the slot of the entry that p matches, or none.
func (t *table) find(p *vector.State) int32 {
	switch {
	case t.count == 0:
		return lookup.None
	case t.few != nil:
		return t.findFew(p)
	}
	t.key.build(p, t.scratch)
	return t.lookup(t.scratch)
}

// lookup returns the slot of the entry that a key matches, or none.
func (t *table) lookup(key []uint64) int32 {
	switch {
	case t.exact != nil:
		return t.exact.Find(key)
	case t.lpm != nil:
		return t.lpm.Find(key)
	case t.ternary != nil:
		return t.ternary.Find(key)
	}
	return lookup.None
}

// apply looks p up, runs the action and returns where the control goes on.
func (t *table) apply(s *Switch, p *vector.State) *node {
	c, next := t.choose(s, p)
	if c != nil && c.action != nil {
		if s.opts.Trace != nil {
			s.trace(p.ID, Event{Kind: EventAction, Name: c.action.name, Source: c.action.source})
		}
		c.action.run(p, c.args)
	}
	return next
}

// choose looks p up. It returns the call to run, nil if there is none, and where
// the control goes on behind it.
func (t *table) choose(s *Switch, p *vector.State) (*call, *node) {
	slot := t.find(p)
	if slot == lookup.None {
		return t.chooseMiss(s, p)
	}
	e := &t.entries[slot]
	p.Entry = slot
	if t.counters {
		e.counter.Add(p)
	}
	if t.ageing {
		e.lastHit = p.Now
	}
	if t.meters != nil {
		t.meters.Mark(&t.meters.Cells[slot], p)
	}
	if s.opts.Trace != nil {
		s.trace(p.ID, Event{Kind: EventTableHit, Name: t.name, Value: int64(slot)})
	}
	if t.profile == nil {
		return &e.call, e.call.next
	}
	return t.chooseIndirect(p, &e.call, true)
}

func (t *table) chooseMiss(s *Switch, p *vector.State) (*call, *node) {
	if s.opts.Trace != nil {
		s.trace(p.ID, Event{Kind: EventTableMiss, Name: t.name})
	}
	p.Entry = lookup.None
	if t.counters {
		t.missed.Add(p)
	}
	// simple_switch has no meter here, and leaves the colour as it was.
	if t.meters != nil && t.meters.Missed.Configured {
		t.meters.Mark(&t.meters.Missed, p)
	}
	switch {
	case !t.defUsed:
		return nil, t.base
	case t.def.target == TargetAction:
		return &t.def, t.def.next
	}
	return t.chooseIndirect(p, &t.def, false)
}

// chooseIndirect finds the member that c leads to. An empty group does nothing.
func (t *table) chooseIndirect(p *vector.State, c *call, hit bool) (*call, *node) {
	m := t.profile.lookup(p, c)
	if m == nil {
		return nil, t.base
	}
	return m, t.nextNode(m.action, hit)
}

// entryKey turns the matches of an entry into the form of the table's index,
// and into the canonical one.
func (t *table) entryKey(e *tableEntry) error {
	if len(e.match) != len(t.key.fields) || len(e.match) == 0 {
		return ErrBadMatch
	}
	for i := range e.match {
		m, f := &e.match[i], &t.key.fields[i]
		if !num.Fits(m.Value, f.width) || f.kind == MatchLPM && (m.PrefixLen < 0 || m.PrefixLen > f.width) {
			return fmt.Errorf("%w: field %s", ErrBadMatch, f.name)
		}
		if f.kind == MatchLPM {
			e.prefix = m.PrefixLen
		}
	}
	e.match = canonical(t.key, e.match)
	e.key = make([]uint64, t.key.words)
	for i := range e.match {
		f := &t.key.fields[i]
		f.put(e.key, num.OfBytes(e.match[i].Value, f.words))
	}
	return nil
}

// demands turns the matches of an entry into what the ternary index wants.
func (t *table) demands(e *tableEntry) (lookup.TernaryEntry, error) {
	x := lookup.TernaryEntry{Priority: e.priority}
	if len(e.match) != len(t.key.fields) || len(e.match) == 0 {
		return x, ErrBadMatch
	}
	for i := range e.match {
		f := &t.key.fields[i]
		d, ok := f.demand(e.match[i])
		if !ok {
			return x, fmt.Errorf("%w: field %s", ErrBadMatch, f.name)
		}
		x.Ranges = x.Ranges || d.High != nil
		x.Fields = append(x.Fields, d)
	}
	return x, nil
}

func (f *keyField) demand(m Match) (lookup.TernaryField, bool) {
	d := lookup.TernaryField{Word: f.word, Mask: num.Prefix(f.width, f.width)}
	ok := num.Fits(m.Value, f.width)
	switch f.kind {
	case MatchTernary:
		ok = ok && num.Fits(m.Mask, f.width)
		d.Mask = num.OfBytes(m.Mask, f.words)
	case MatchOptional:
		if m.Value == nil {
			clear(d.Mask)
		}
	case MatchLPM:
		if ok = ok && m.PrefixLen >= 0 && m.PrefixLen <= f.width; ok {
			d.Mask = num.Prefix(f.width, m.PrefixLen)
		}
	case MatchRange:
		n := num.Bytes(f.width)
		ok = ok && num.Fits(m.High, f.width) && bytes.Compare(num.Aligned(m.Value, n), num.Aligned(m.High, n)) <= 0
		d.High = num.OfBytes(m.High, f.words)
	}
	d.Value = make([]uint64, f.words)
	for i, x := range num.OfBytes(m.Value, f.words) {
		if f.mask != nil && d.High == nil {
			d.Mask[i] &= f.mask[i]
		}
		d.Value[i] = x
		if d.High == nil {
			d.Value[i] &= d.Mask[i]
		}
	}
	return d, ok
}
