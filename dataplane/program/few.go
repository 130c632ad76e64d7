package program

import (
	"slices"

	"github.com/p4lb/p4lb/dataplane/lookup"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// Programs for Tofino do much with tables of two or three entries, where
// others have conditions. To try the entries one after the other, on the
// packet itself, is faster there than to build a key and to ask an index.

// MaxFew is the most entries that are tried.
const MaxFew = 4

// A fewEntry is an entry with what it demands of the vector.
type fewEntry struct {
	slot     int32
	priority int
	demands  []fewDemand
}

// A fewDemand wants a word of the vector to have a value under a mask.
type fewDemand struct {
	off         int
	mask, value uint64
}

// renewFew makes the list of the entries in the order in which they win, if
// there are few of them and they demand nothing more than that.
func (t *Table) renewFew() {
	t.Few = nil
	if t.lpm != nil || t.Count > MaxFew || !t.Key.plain() {
		return
	}
	var list []fewEntry
	for slot := range t.Entries {
		e := &t.Entries[slot]
		if !e.Used {
			continue
		}
		few := fewEntry{slot: int32(slot), priority: e.Priority}
		for i := range t.Key.Fields {
			f := &t.Key.Fields[i]
			d, _ := f.demand(e.Match[i]) // it was checked when the entry was added
			if d.High != nil {
				return
			}
			if d.Mask[0] != 0 {
				few.demands = append(few.demands, fewDemand{f.Off, d.Mask[0], d.Value[0]})
			}
		}
		list = append(list, few)
	}
	slices.SortStableFunc(list, func(a, b fewEntry) int { return a.priority - b.priority })
	t.Few = list
}

// plain is whether all fields are words that count whatever is valid.
func (k *tableKey) plain() bool {
	return !slices.ContainsFunc(k.Fields, func(f KeyField) bool { return !f.always || f.Words > 1 || f.Mask != nil })
}

// findFew returns the slot of the entry that p matches, or none.
func (t *Table) findFew(p *vector.State) int32 {
next:
	for i := range t.Few {
		e := &t.Few[i]
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
