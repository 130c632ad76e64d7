package controller

import (
	"slices"
	"strings"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
)

// A common is the set of entries that all switches of a pipeline share (plan.Entry.Common). There
// may be 65,536, so they are encoded and described once. A switch's contents only record which of
// them it has.
type common struct {
	list []commonEntry // sorted by key
	at   map[string]int
	sent map[**p4v1.FieldMatch]int // index in list, by the address of the list of matches
}

type commonEntry struct {
	object
	key    string
	insert step
}

// commons contains, for each pipeline, the entries that all switches of a controller
// share.
type commons struct {
	mu         sync.Mutex
	byPipeline map[*plan.Pipeline]*common
}

// shares reports whether an entry is one of those that all switches share. Ids of members and
// the members of another controller differ between switches, so entries of profiles do not.
func shares(x *p4info.Index, e plan.Entry) bool { return e.Common && x.ByName[e.Table].Profile == nil }

// of returns the shared entries of a switch, or nil.
func (s *commons) of(sw *plan.Switch, x *p4info.Index) *common {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, done := s.byPipeline[sw.Pipeline]; done {
		return c
	}
	var c *common
	parts := pool{map[part]*p4v1.FieldMatch{}, map[part]*p4v1.Action_Param{}}
	for _, e := range sw.Entries {
		if !shares(x, e) {
			continue
		}
		if c == nil {
			c = &common{at: map[string]int{}, sent: map[**p4v1.FieldMatch]int{}}
		}
		m := encodeEntry(x, e, parts)
		o := entryObject(m, x)
		c.list = append(c.list, commonEntry{o, entryKey(m), newStep(x, report.Insert, o, "")})
	}
	if c != nil {
		slices.SortFunc(c.list, func(a, b commonEntry) int { return strings.Compare(a.key, b.key) })
		for i := range c.list {
			c.at[c.list[i].key] = i
			c.sent[&c.list[i].entity.GetTableEntry().GetMatch()[0]] = i
		}
	}
	if s.byPipeline == nil {
		s.byPipeline = map[*plan.Pipeline]*common{}
	}
	s.byPipeline[sw.Pipeline] = c
	return c
}

// A pool stores parts of messages that many entries share. It saves memory because
// many entries have few different values. The zero value stores nothing.
type pool struct {
	matches map[part]*p4v1.FieldMatch
	params  map[part]*p4v1.Action_Param
}

// A part is a number in a field or parameter.
type part struct {
	id    uint32
	value uint64
}

func (p pool) exact(field uint32, value uint64) *p4v1.FieldMatch {
	return once(p.matches, part{field, value}, func() *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldId: field, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: number(value)}}}
	})
}

func (p pool) param(id uint32, value uint64) *p4v1.Action_Param {
	return once(p.params, part{id, value}, func() *p4v1.Action_Param {
		return &p4v1.Action_Param{ParamId: id, Value: number(value)}
	})
}

// once returns the stored part for a key. If there is none, it creates the part
// and, if there is a map, stores it.
func once[T any](m map[part]*T, key part, make func() *T) *T {
	if m[key] != nil {
		return m[key]
	}
	made := make()
	if m != nil {
		m[key] = made
	}
	return made
}

// holds reports whether e is equal to an entry in common, and records that the
// switch has it.
func (c *contents) holds(e *p4v1.TableEntry, with *common) bool {
	if with == nil {
		return false
	}
	i, ok := with.find(e)
	if ok {
		if c.held == nil {
			c.held = make([]bool, len(with.list))
		}
		c.held[i] = true
	}
	return ok
}

// find returns the index of an equal entry in common: the same message (if sent
// within this process), or one with the same content.
func (c *common) find(e *p4v1.TableEntry) (int, bool) {
	if len(e.GetMatch()) == 0 {
		return 0, false
	}
	if i, ok := c.sent[&e.GetMatch()[0]]; ok && e.GetAction() == c.list[i].entity.GetTableEntry().GetAction() {
		return i, true
	}
	var room [256]byte
	key := appendKey(room[:0], e)
	i, ok := c.at[string(key)]
	return i, ok && string(appendValue(key, e)[len(key):]) == c.list[i].value
}

// commonSteps returns the steps for shared entries.
func (x *exchange) commonSteps(have *contents, want *common) []step {
	if want == nil {
		return nil
	}
	var list []step
	for i := range want.list {
		if have.held != nil && have.held[i] {
			continue
		}
		if list == nil {
			list = make([]step, 0, len(want.list)-i)
		}
		e := &want.list[i]
		if h, there := have.objects[e.key]; there {
			list = append(list, newStep(x.index, report.Modify, e.object, h.value))
		} else {
			list = append(list, e.insert)
		}
	}
	return list
}
