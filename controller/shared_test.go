package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// routes is an index with a table of addresses and an action with a port.
func routes() *p4info.Index {
	action := &p4info.Action{ID: 5, Name: "go", Params: []p4info.Field{{ID: 1, Name: "port", Width: 9}}}
	table := &p4info.Table{
		ID: 7, Name: "routes", Size: 8, Fields: []p4info.Field{{ID: 1, Name: "to", Width: 32, Kind: configv1.MatchField_EXACT}},
		Actions: map[string]*p4info.Action{"go": action}, ByAction: map[uint32]*p4info.Action{5: action},
	}
	return &p4info.Index{Tables: []*p4info.Table{table}, ByID: map[uint32]*p4info.Table{7: table}, ByName: map[string]*p4info.Table{"routes": table}}
}

func route(to, port uint64, common bool) plan.Entry {
	return plan.Entry{Table: "routes", Match: []plan.Match{{Value: to, Bits: 32, Width: 32}}, Action: "go", Args: []plan.Arg{{Name: "port", Value: port, Width: 9}}, Common: common}
}

// Entries that all switches have are compared with the entries of a switch by content,
// regardless of the origin of the messages. Only missing entries, and entries with another
// action, are written.
func TestSharedEntries(t *testing.T) {
	x := routes()
	pipeline := &plan.Pipeline{}
	sw := &plan.Switch{Pipeline: pipeline, Entries: []plan.Entry{route(1, 1, true), route(2, 1, true), route(3, 2, true), route(4, 4, false)}}
	var all commons
	c := all.of(sw, x)
	if len(c.list) != 3 {
		t.Fatalf("%d shared entries, want 3", len(c.list))
	}
	if again := all.of(&plan.Switch{Pipeline: pipeline}, x); again != c {
		t.Error("another switch of the pipeline has other shared entries")
	}
	if none := all.of(&plan.Switch{Pipeline: &plan.Pipeline{}, Entries: []plan.Entry{route(4, 4, false)}}, x); none != nil {
		t.Errorf("a pipeline without shared entries has %d", len(none.list))
	}
	message := func(e plan.Entry) *p4v1.TableEntry { return encodeEntry(x, e, pool{}) }
	same := c.list[0].entity.GetTableEntry()
	changed := proto.Clone(same).(*p4v1.TableEntry)
	changed.Match = same.Match // the message as sent, with another action
	changed.Action = message(route(1, 9, true)).Action
	for _, test := range []struct {
		name string
		e    *p4v1.TableEntry
		want bool
	}{
		{"the message itself", same, true}, {"equal content", message(route(2, 1, true)), true}, {"another action", message(route(2, 3, true)), false},
		{"another action for the message's match", changed, false}, {"an unknown match", message(route(9, 1, true)), false}, {"a default entry", &p4v1.TableEntry{TableId: 7}, false},
	} {
		if _, got := c.find(test.e); got != test.want {
			t.Errorf("%s: found %v, want %v", test.name, got, test.want)
		}
	}
	have := &contents{objects: map[string]object{}}
	if have.holds(message(route(2, 1, true)), nil) {
		t.Error("a switch without shared entries holds one")
	}
	for _, e := range []*p4v1.TableEntry{message(route(2, 1, true)), message(route(3, 9, true)), message(route(8, 8, true))} {
		if !have.holds(e, c) {
			have.addEntry(e, x)
		}
	}
	ex := &exchange{link: &primary.Link{}, index: x}
	var got []string
	for _, s := range ex.commonSteps(have, c) {
		got = append(got, s.update.GetType().String()+" "+string(s.update.GetEntity().GetTableEntry().GetMatch()[0].GetExact().GetValue()))
	}
	slices.Sort(got)
	if want := []string{"INSERT \x01", "MODIFY \x03"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
	if list := ex.commonSteps(have, nil); list != nil {
		t.Errorf("without shared entries: %d steps", len(list))
	}
}

// A register's cells are named from 0, and cells outside are refused with the last one.
func TestCellsOutside(t *testing.T) {
	r := &p4Registers{index: &p4info.Index{Registers: map[string]*p4info.Register{"r": {Name: "r", Size: 8}}}}
	for _, test := range []struct {
		name     string
		from, to int
		want     string
	}{
		{"r", 0, 8, ""}, {"r", 3, 3, ""}, {"r", 8, 8, ""}, {"r", 7, 9, "register r: cells 7 to 8 are outside 0..7"}, {"r", -1, 2, "register r: cells -1 to 1 are outside 0..7"},
		{"r", 3, 2, "register r: cells 3 to 1 are outside 0..7"}, {"x", 0, 1, "the program has no register x"},
	} {
		info, err := r.find(test.name, test.from, test.to)
		if test.want == "" && (err != nil || info.Name != "r") || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s[%d..%d]: %v, want %q", test.name, test.from, test.to, err, test.want)
		}
	}
	if _, err := r.Clock(t.Context()); !errors.Is(err, registers.ErrNoClock) {
		t.Errorf("the clock: %v", err)
	}
}

// Registers that are written several times are named once.
func TestNameCells(t *testing.T) {
	if got := nameCells([]plan.Cells{{Register: "a"}, {Register: "a", From: 3}, {Register: "b"}, {Register: "a"}}); got != "[a b a]" {
		t.Error(got)
	}
}

// Queues that a target cannot reach are noted if the plan has any.
func TestQueuesOutOfReach(t *testing.T) {
	for _, want := range [][]plan.Queue{nil, {{Port: 1}}} {
		x := &exchange{link: &primary.Link{}}
		c := &contents{}
		if err := x.liveQueues(t.Context(), c, want); err != nil || len(c.queues) != 0 {
			t.Errorf("%d queues: %v, %v", len(want), err, c.queues)
		}
		if got := strings.Join(x.notes, ""); (len(want) > 0) != strings.Contains(got, "no way to the queues") {
			t.Errorf("%d queues: the notes are %q", len(want), got)
		}
	}
}

// A filterList is the filters of a switch.
type filterList []plan.Filter

func (l filterList) List(context.Context) ([]plan.Filter, error)  { return l, nil }
func (l filterList) SetFilter(context.Context, plan.Filter) error { return nil }

// Filters that differ from the plan are set, under the switch's name of them. A plan with a
// filter that the program lacks fails, and a target without access is noted.
func TestFilterSteps(t *testing.T) {
	u, v := plan.Filter{Name: "u", Time: time.Millisecond, Shift: 3}, plan.Filter{Name: "v", Sample: true, Time: time.Second}
	changed := u
	changed.Time = time.Microsecond
	for _, c := range []struct {
		have, want []plan.Filter
		steps      int
	}{{[]plan.Filter{u, v}, []plan.Filter{u, v}, 0}, {[]plan.Filter{v, u}, []plan.Filter{changed, v}, 1}, {[]plan.Filter{u}, []plan.Filter{v}, 0}, {[]plan.Filter{u}, nil, 0}} {
		list := filterSteps(c.have, c.want)
		if len(list) != c.steps {
			t.Errorf("%v, want %v: %d steps", c.have, c.want, len(list))
		}
		for _, s := range list {
			if *s.filter != changed || s.Before != u.String() || s.After != changed.String() || s.Object != "filter u" {
				t.Errorf("the step is %+v, filter %+v", s.Change, *s.filter)
			}
		}
	}
	for _, c := range []struct {
		access target.Filters
		want   []plan.Filter
		err    string
		notes  int
	}{{nil, nil, "", 0}, {nil, []plan.Filter{u}, "", 1}, {filterList{v, u}, []plan.Filter{u}, "", 0}, {filterList{v}, []plan.Filter{v, u}, "the program has no filter u", 0}} {
		x := &exchange{link: &primary.Link{}}
		x.link.Endpoint.Filters = c.access
		err := x.liveFilters(t.Context(), &contents{}, c.want)
		if len(x.notes) != c.notes || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%v: %v, notes %q", c.want, err, x.notes)
		}
	}
}
