package program

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Table is a match-action table. One of three indices finds its entries; a
// handle identifies them.
type Table struct {
	// The fields that a lookup reads come first, in few cache lines: with many
	// switches, most of the time of a lookup is the time to load them.
	Count    int
	oneWord  bool // the exact or lpm index has keys of one word, of these parts
	runsOnly bool // an entry only runs an action; runs holds the actions
	parts    []fieldPart
	exact    *lookup.Exact
	lpm      *lookup.LPM
	runs     []run // parallel to Entries
	Linear   []linearEntry
	ternary  *lookup.Ternary
	Key      *tableKey
	Scratch  []uint64 // key of the current lookup
	end      uintptr  // the end of the machine code; 0 without code

	name  string
	match string // exact, lpm, ternary or range

	size    int
	Entries []TableEntry
	handles Handles
	// byMatch maps match and priority to the entries of a ternary or range
	// table, for the control plane.
	byMatch map[string]int32

	Profile  *Profile // profile of an indirect table
	selector bool     // the profile has groups
	Def      Call
	DefUsed  bool // Def is set
	initial  Call // the program's default action
	ConstDef bool // Def must not change
	// ConstAction is the only action that Def may have, if not nil.
	ConstAction *action
	Immutable   bool
	// Fixed marks a table that the compiler made from a statement: it has no
	// key and always runs the same action.
	Fixed bool

	actions []*action
	next    map[*action]*node
	hasHit  bool // the next node depends on hit and miss instead of the action
	hit     *node
	miss    *node
	base    *node // next node after a miss without an action

	Counters bool
	late     bool       // count packets when they leave
	Missed   cell.Count // counter of the default entry
	Ageing   bool
	meters   *cell.Meters
}

// defaultTableSize is the size of a table without a size in the document.
const defaultTableSize = 16384

// maxTableSize is the largest size in BMv2.
const maxTableSize = 1<<24 - 1

func (l *Linker) table(t *bmv2.Table) (*Table, error) {
	tb := &Table{name: t.Name, match: t.MatchType, size: t.MaxSize, Counters: t.WithCounters, Ageing: t.SupportTimeout, next: map[*action]*node{}}
	for _, c := range l.prog.Counters {
		tb.late = tb.late || c.Table == t.Name && c.Late != nil
	}
	if tb.size <= 0 {
		tb.size = defaultTableSize
	}
	tb.size = min(tb.size, maxTableSize)
	var err error
	if tb.Key, err = l.tableKey(t); err != nil {
		return nil, err
	}
	if err := tb.newIndex(); err != nil {
		return nil, err
	}
	tb.Scratch = make([]uint64, tb.Key.Words)
	tb.parts, tb.oneWord = tb.Key.parts, tb.Key.Words == 1 && tb.ternary == nil
	if err := l.tableActions(tb, t); err != nil {
		return nil, err
	}
	if t.Type != bmv2.TableSimple {
		tb.Profile, tb.selector = l.prog.Profiles[t.ActionProfile], t.Type == bmv2.TableIndirectSelect
		// Members may have the actions of the table.
		for _, a := range tb.actions {
			if !slices.Contains(tb.Profile.Actions, a) {
				tb.Profile.Actions = append(tb.Profile.Actions, a)
			}
		}
	}
	if t.DirectMeters != "" {
		if tb.meters = l.prog.Meters[t.DirectMeters]; tb.meters == nil {
			return nil, fmt.Errorf("unknown direct meter array %q", t.DirectMeters)
		}
		tb.meters.Table = t.Name
	}
	return tb, nil
}

// newIndex creates the empty index for the table's kind of match.
func (t *Table) newIndex() error {
	switch {
	case t.Key.Words == 0:
	case t.match == bmv2.MatchExact:
		t.exact = lookup.NewExact(t.Key.Words)
	case t.match == bmv2.MatchLPM:
		last := t.Key.Fields[t.Key.order[len(t.Key.order)-1]]
		if last.Kind != MatchLPM {
			return errors.New("an lpm table without an lpm key")
		}
		t.lpm = lookup.NewLPM(last.Word, last.Width)
	default:
		places := make([]lookup.Place, len(t.Key.Fields))
		for i, f := range t.Key.Fields {
			places[i] = lookup.Place{Word: f.Word, Width: f.Width}
		}
		t.ternary = lookup.NewTernary(places)
		t.byMatch = map[string]int32{}
	}
	return nil
}

func (l *Linker) tableActions(tb *Table, t *bmv2.Table) error {
	if len(t.ActionIDs) > 0 {
		for _, id := range t.ActionIDs {
			tb.actions = append(tb.actions, l.prog.actionByID[id])
		}
		return nil
	}
	for _, name := range t.Actions {
		a := l.prog.ActionByName(name)
		if a == nil {
			return fmt.Errorf("unknown action %q", name)
		}
		tb.actions = append(tb.actions, a)
	}
	return nil
}

// link resolves the successors of the table, once all nodes of its control
// exist.
func (t *Table) link(src *bmv2.Table, nodes map[string]*node) error {
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

// nextNode returns the node after action a.
func (t *Table) nextNode(a *action, hit bool) *node {
	switch {
	case !t.hasHit:
		return t.next[a]
	case hit:
		return t.hit
	}
	return t.miss
}

// Find returns the slot of the entry that p matches, or lookup.None.
func (t *Table) Find(p *vector.State) int32 {
	switch {
	case t.Count == 0:
		return lookup.None
	case t.Linear != nil:
		return t.findLinear(p)
	case t.oneWord:
		var key uint64
		for i := range t.parts {
			key |= t.parts[i].of(p.W)
		}
		if t.exact != nil {
			return t.exact.FindWord(key)
		}
		return t.lpm.FindWord(key)
	}
	t.Key.Build(p.W, t.Scratch)
	return t.Lookup(t.Scratch)
}

// Lookup returns the slot of the entry that a key matches, or lookup.None.
func (t *Table) Lookup(key []uint64) int32 {
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

// choose looks p up. It returns the call to run, nil if there is none, and the
// next node.
func (t *Table) choose(s *Program, p *vector.State) (*Call, *node) { return t.chosen(t.Find(p), s, p) }

// chosen does the same for the slot of the entry that p matches.
func (t *Table) chosen(slot int32, s *Program, p *vector.State) (*Call, *node) {
	if slot == lookup.None {
		return t.chooseMiss(s, p)
	}
	e := &t.Entries[slot]
	p.Entry = slot
	switch {
	case t.late:
		s.Late.Add(&e.Counter)
	case t.Counters:
		e.Counter.Add(p)
	}
	if t.Ageing {
		e.LastHit = p.Now
	}
	if t.meters != nil {
		t.meters.Mark(&t.meters.Cells[slot], p)
	}
	if s.opts.Trace != nil {
		s.Trace(p, Event{Kind: EventTableHit, Name: t.name, Value: int64(slot)})
	}
	if t.Profile == nil {
		return &e.Call, e.Call.next
	}
	return t.chooseIndirect(p, &e.Call, true)
}

func (t *Table) chooseMiss(s *Program, p *vector.State) (*Call, *node) {
	if s.opts.Trace != nil {
		s.Trace(p, Event{Kind: EventTableMiss, Name: t.name})
	}
	p.Entry = lookup.None
	switch {
	case t.late:
		s.Late.Add(&t.Missed)
	case t.Counters:
		t.Missed.Add(p)
	}
	// simple_switch has no meter for misses and leaves the colour unchanged.
	if t.meters != nil && t.meters.Missed.Configured {
		t.meters.Mark(&t.meters.Missed, p)
	}
	switch {
	case !t.DefUsed:
		return nil, t.base
	case t.Def.target == TargetAction:
		return &t.Def, t.Def.next
	}
	return t.chooseIndirect(p, &t.Def, false)
}

// chooseIndirect returns the member of c. An empty group does nothing.
func (t *Table) chooseIndirect(p *vector.State, c *Call, hit bool) (*Call, *node) {
	m := t.Profile.lookup(p, c)
	if m == nil {
		return nil, t.base
	}
	return m, t.nextNode(m.Action, hit)
}

// entryKey computes the lookup key of an entry and makes its matches canonical.
func (t *Table) entryKey(e *TableEntry) error {
	if len(e.Match) != len(t.Key.Fields) || len(e.Match) == 0 {
		return ErrBadMatch
	}
	for i := range e.Match {
		m, f := &e.Match[i], &t.Key.Fields[i]
		if !num.Fits(m.Value, f.Width) || f.Kind == MatchLPM && (m.PrefixLen < 0 || m.PrefixLen > f.Width) {
			return fmt.Errorf("%w: field %s", ErrBadMatch, f.Name)
		}
		if f.Kind == MatchLPM {
			e.prefix = m.PrefixLen
		}
	}
	e.Match = canonical(t.Key, e.Match)
	e.key = make([]uint64, t.Key.Words)
	for i := range e.Match {
		f := &t.Key.Fields[i]
		// Put the number at the field's place in the key.
		number := num.OfBytes(e.Match[i].Value, f.Words)
		for j, x := range number {
			if f.Mask != nil {
				x &= f.Mask[j]
			}
			e.key[f.Word+j] |= x << uint(f.Shift)
		}
	}
	return nil
}

// demands returns the matches of an entry in the form of the ternary index.
func (t *Table) demands(e *TableEntry) (lookup.TernaryEntry, error) {
	x := lookup.TernaryEntry{Priority: e.Priority}
	if len(e.Match) != len(t.Key.Fields) || len(e.Match) == 0 {
		return x, ErrBadMatch
	}
	for i := range e.Match {
		f := &t.Key.Fields[i]
		d, ok := f.demand(e.Match[i])
		if !ok {
			return x, fmt.Errorf("%w: field %s", ErrBadMatch, f.Name)
		}
		x.Ranges = x.Ranges || d.High != nil
		x.Fields = append(x.Fields, d)
	}
	return x, nil
}

func (f *KeyField) demand(m Match) (lookup.TernaryField, bool) {
	d := lookup.TernaryField{Word: f.Word, Mask: num.Prefix(f.Width, f.Width)}
	ok := num.Fits(m.Value, f.Width)
	switch f.Kind {
	case MatchTernary:
		ok = ok && num.Fits(m.Mask, f.Width)
		d.Mask = num.OfBytes(m.Mask, f.Words)
	case MatchOptional:
		if m.Value == nil {
			clear(d.Mask)
		}
	case MatchLPM:
		if ok = ok && m.PrefixLen >= 0 && m.PrefixLen <= f.Width; ok {
			d.Mask = num.Prefix(f.Width, m.PrefixLen)
		}
	case MatchRange:
		n := num.Bytes(f.Width)
		ok = ok && num.Fits(m.High, f.Width) && bytes.Compare(num.Aligned(m.Value, n), num.Aligned(m.High, n)) <= 0
		d.High = num.OfBytes(m.High, f.Words)
	}
	d.Value = make([]uint64, f.Words)
	for i, x := range num.OfBytes(m.Value, f.Words) {
		if f.Mask != nil && d.High == nil {
			d.Mask[i] &= f.Mask[i]
		}
		d.Value[i] = x
		if d.High == nil {
			d.Value[i] &= d.Mask[i]
		}
	}
	return d, ok
}

// MaxLinear is the largest number of entries that are searched linearly.
const MaxLinear = 4

// A linearEntry is an entry with its conditions on the vector. Programs for Tofino
// use tables of two or three entries as conditions. A linear search on the
// packet itself is faster for them than a lookup key and an index.
type linearEntry struct {
	slot     int32
	priority int
	demands  []wordMatch
}

// A wordMatch compares a word of the vector under a mask.
type wordMatch struct {
	off         int
	mask, value uint64
}

// updateLinear lists the entries by priority, if there are few of them and all
// conditions are comparisons of words.
func (t *Table) updateLinear() {
	t.Linear = nil
	if t.lpm != nil || t.Count > MaxLinear || !t.Key.plain() {
		return
	}
	var list []linearEntry
	for slot := range t.Entries {
		e := &t.Entries[slot]
		if !e.Used {
			continue
		}
		entry := linearEntry{slot: int32(slot), priority: e.Priority}
		for i := range t.Key.Fields {
			f := &t.Key.Fields[i]
			d, _ := f.demand(e.Match[i]) // checked when the entry was added
			if d.High != nil {
				return
			}
			if d.Mask[0] != 0 {
				entry.demands = append(entry.demands, wordMatch{f.Off, d.Mask[0], d.Value[0]})
			}
		}
		list = append(list, entry)
	}
	slices.SortStableFunc(list, func(a, b linearEntry) int { return a.priority - b.priority })
	t.Linear = list
}

// plain reports whether all fields are single words of headers or metadata that
// are always valid.
func (k *tableKey) plain() bool {
	return !slices.ContainsFunc(k.Fields, func(f KeyField) bool { return f.valid >= 0 || f.Words > 1 || f.Mask != nil })
}

// findLinear returns the slot of the entry that p matches, or lookup.None.
func (t *Table) findLinear(p *vector.State) int32 {
next:
	for i := range t.Linear {
		e := &t.Linear[i]
		for j := range e.demands {
			d := &e.demands[j]
			if p.W[d.off]&d.mask != d.value {
				continue next
			}
		}
		return e.slot
	}
	return lookup.None
}

// A node is a step of a control: a table, a branch or a call of an action.
type node struct {
	table *Table
	cond  vector.Test
	yes   *node
	no    *node // also the next node after a call
	call  *action
	name  string
	entry uintptr // the address in machine code
}

// A Call is a linked Target: the action with its data in words and the next
// node, or an index into the profile.
type Call struct {
	target TargetKind
	Action *action
	Args   []uint64
	next   *node
	index  Handle
}

// A run is the part of an entry that machine code needs, in one cache line.
type run struct {
	action, next uintptr  // addresses in the code
	args         []uint64 // in own, if they fit
	own          [3]uint64
}

// bind writes the run of an entry. The entries may have moved.
func (t *Table) bind(slot int) {
	if !t.runsOnly {
		return
	}
	if slot >= cap(t.runs) {
		t.runs = make([]run, len(t.Entries), cap(t.Entries))
		for i := range t.Entries {
			if t.Entries[i].Used && i != slot {
				t.bind(i)
			}
		}
	}
	t.runs = t.runs[:len(t.Entries)]
	c, r := &t.Entries[slot].Call, &t.runs[slot]
	*r = run{next: t.end, args: c.Args}
	if c.next != nil {
		r.next = c.next.entry
	}
	r.action = r.next
	if c.Action != nil {
		r.action = c.Action.entry
	}
	if len(c.Args) <= len(r.own) {
		r.args = r.own[:copy(r.own[:], c.Args)]
	}
}

// compiled notes that the program has machine code, which ends at end.
func (t *Table) compiled(end uintptr) {
	t.end = end
	t.runsOnly = t.Profile == nil && !t.late && !t.Counters && !t.Ageing && t.meters == nil
	for slot := range t.Entries {
		if t.Entries[slot].Used {
			t.bind(slot)
		}
	}
}

// SetCall changes the call of an entry.
func (t *Table) SetCall(e *TableEntry, h Handle, c Call) {
	e.Call = c
	t.bind(h.Slot())
}

// A TableEntry is an entry with its state.
type TableEntry struct {
	Used     bool
	version  uint8 // version of its handle, which outlives the entry
	Match    []Match
	Priority int
	Call     Call
	Counter  cell.Count
	Idle     time.Duration
	LastHit  time.Duration
	constant bool
	key      []uint64 // in the form of the exact or lpm index
	prefix   int
}
