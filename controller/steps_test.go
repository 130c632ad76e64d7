package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A notedSwitch notes the requests of a controller and fails when a test wants it.
type notedSwitch struct {
	target.Queues
	target.Filters
	requests []string
	fails    func(n int) error // the nth request
}

func (s *notedSwitch) note(format string, args ...any) error {
	s.requests = append(s.requests, fmt.Sprintf(format, args...))
	if s.fails == nil {
		return nil
	}
	return s.fails(len(s.requests))
}

func (s *notedSwitch) Write(r *p4v1.WriteRequest) error {
	kinds := map[p4v1.Update_Type]int{}
	for _, u := range r.GetUpdates() {
		kinds[u.GetType()]++
	}
	if n := kinds[p4v1.Update_INSERT]; n == len(r.GetUpdates()) {
		return s.note("%d updates", n)
	}
	return s.note("%d deletions", kinds[p4v1.Update_DELETE])
}
func (s *notedSwitch) Entities(*p4v1.ReadRequest) ([]*p4v1.Entity, error) { return nil, nil }
func (s *notedSwitch) SetQueue(_ context.Context, q plan.Queue) error {
	return s.note("queue %d", q.Port)
}
func (s *notedSwitch) SetFilter(_ context.Context, f plan.Filter) error {
	return s.note("filter %s", f.Name)
}

// notedCells is the registers of a notedSwitch.
type notedCells struct{ *notedSwitch }

func (s notedCells) Read(context.Context, string, int, int, []uint64) ([]uint64, error) {
	return nil, nil
}
func (s notedCells) Clock(context.Context) (time.Duration, error) { return 0, nil }
func (s notedCells) Write(_ context.Context, name string, from, to int, v uint64) error {
	return s.note("%s[%d..%d]=%d", name, from, to, v)
}

func (s *notedSwitch) exchange(x *p4info.Index) *exchange {
	l := &primary.Link{}
	l.Endpoint.Local, l.Endpoint.Registers, l.Endpoint.Queues, l.Endpoint.Filters = s, notedCells{s}, s, s
	return &exchange{c: &primary.Conn{}, link: l, timeout: time.Minute, index: x}
}

// Updates are sent in batches of the target's size. The first error ends them, with the
// number of accepted updates and the name of the refused one.
func TestBatches(t *testing.T) {
	refused := func(list ...codes.Code) error {
		st := status.New(codes.Unknown, "batch")
		for _, c := range list {
			st, _ = st.WithDetails(&p4v1.Error{CanonicalCode: int32(c), Message: "because"})
		}
		return st.Err()
	}
	update := &p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{}}
	for _, test := range []struct {
		n, batch int
		fails    func(n int) error
		requests string
		taken    int
		err      string
		is       error
	}{
		{5, 2, nil, "2 updates, 2 updates, 1 updates", 5, "", nil},
		{4, 2, nil, "2 updates, 2 updates", 4, "", nil},
		{2, 0, nil, "2 updates", 2, "", nil},
		{1001, 0, nil, "1000 updates, 1 updates", 1001, "", nil},
		{0, 2, nil, "", 0, "", nil},
		{5, 2, func(n int) error { return map[int]error{2: refused(codes.OK, codes.InvalidArgument)}[n] },
			"2 updates, 2 updates", 3, "inserting object 3: refused: because (InvalidArgument)", target.ErrRefused},
		{5, 2, func(n int) error { return map[int]error{2: refused(codes.AlreadyExists, codes.NotFound)}[n] },
			"2 updates, 2 updates", 2, "inserting object 2: refused: because (AlreadyExists), and 1 more", errChanged},
		{5, 2, func(n int) error { return map[int]error{1: refused(codes.NotFound, codes.OK)}[n] },
			"2 updates", 1, "inserting object 0: refused: because (NotFound)", errChanged},
		{5, 2, func(n int) error { return map[int]error{3: status.Error(codes.Unavailable, "away")}[n] },
			"2 updates, 2 updates, 1 updates", 4, "writing 1 updates, beginning with object 4: cannot be reached any more: away", target.ErrUnreachable},
	} {
		s := &notedSwitch{fails: test.fails}
		x := s.exchange(routes())
		x.link.Endpoint.Limits.Batch = test.batch
		taken, err := x.write(t.Context(), slices.Repeat([]*p4v1.Update{update}, test.n), func(i int) string { return fmt.Sprint("object ", i) })
		if got := strings.Join(s.requests, ", "); got != test.requests || taken != test.taken {
			t.Errorf("%d updates in batches of %d: %s, %d taken; want %s, %d", test.n, test.batch, got, taken, test.requests, test.taken)
		}
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err) || !errors.Is(err, test.is)) {
			t.Errorf("%d updates in batches of %d: %v, want %s", test.n, test.batch, err, test.err)
		}
		if changed := test.is == errChanged; err != nil && errors.Is(err, errChanged) != changed {
			t.Errorf("%v: a switch that has changed: %v, want %v", err, !changed, changed)
		}
	}
}

// Adjacent cells of one value are written at once, before queues and filters. Members of
// other controllers are deleted next. Then sessions are inserted before entries, and entries
// before routes to them; deletions follow in the reverse order. An error ends the changes,
// with the number of accepted ones.
func TestOrderOfChanges(t *testing.T) {
	cell := func(register string, at int, v uint64) step {
		return step{cell: &plan.Cells{Register: register, From: at, To: at + 1, Value: v}}
	}
	queue := func(port int) step { return step{queue: &plan.Queue{Port: port}} }
	filter := func(name string) step { return step{filter: &plan.Filter{Name: name}} }
	entry := func(kind report.Kind, rank int) step {
		return step{Change: report.Change{Kind: kind}, rank: rank, update: &p4v1.Update{Type: updateTypes[kind], Entity: &p4v1.Entity{}}}
	}
	clearing := entry(report.Delete, rankMember)
	clearing.clears = clearMembers
	steps := []step{
		entry(report.Insert, rankEntry), filter("f"), queue(2), cell("a", 0, 1), cell("a", 1, 1), cell("a", 2, 2), cell("a", 4, 2), cell("b", 5, 2), cell("b", 6, 2), queue(3), filter("g"),
		entry(report.Insert, rankEntry), entry(report.Insert, rankReplication), entry(report.Delete, rankReplication), entry(report.Delete, rankEntry), entry(report.Delete, rankEntry),
		entry(report.Insert, rankRoute), clearing,
	}
	all := []string{"a[0..2]=1", "a[2..3]=2", "a[4..5]=2", "b[5..7]=2", "queue 2", "queue 3", "filter f", "filter g", "1 deletions", "1 updates", "2 updates", "1 updates", "2 deletions", "1 deletions"}
	taken := []int{0, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18} // after so many requests
	for n := 1; n <= len(all)+1; n++ {
		s := &notedSwitch{fails: func(k int) error {
			if k == n {
				return errors.New("broken")
			}
			return nil
		}}
		got, err := s.exchange(routes()).apply(t.Context(), steps)
		if fails := n <= len(all); got != taken[n-1] || (err != nil) != fails || fails && !strings.Contains(err.Error(), "broken") || !slices.Equal(s.requests, all[:min(n, len(all))]) {
			t.Errorf("request %d fails: %q, %d taken, %v; want %d taken", n, s.requests, got, err, taken[n-1])
		}
	}
}

// Members and groups of other controllers are deleted after the entries that refer to them,
// and groups before members. Over BfRt the entries stay. A rollback inserts them again.
func TestForeignSteps(t *testing.T) {
	x := routes()
	x.Tables[0].Profile = &p4info.Profile{ID: 8, Name: "hops", Selector: true}
	x.Profiles = []*p4info.Profile{x.Tables[0].Profile}
	member := memberEntity(&p4v1.ActionProfileMember{ActionProfileId: 8, MemberId: 4, Action: &p4v1.Action{ActionId: 5}})
	group := groupEntity(&p4v1.ActionProfileGroup{ActionProfileId: 8, GroupId: 2, Members: []*p4v1.ActionProfileGroup_Member{{MemberId: 4}}})
	holding := func(foreign ...*p4v1.Entity) *contents {
		c := &contents{objects: map[string]object{}, foreign: foreign}
		c.addEntry(encodeEntry(x, route(1, 1, false), pool{}), x)
		c.addEntry(&p4v1.TableEntry{TableId: 7, IsDefaultAction: true}, x)
		return c
	}
	for _, test := range []struct {
		name       string
		have, want *contents
		bfrt       bool
		steps      []string
		gone       int
	}{
		{"none", holding(), holding(), false, nil, 0},
		{"others", holding(member, group), holding(), false, []string{"delete hops group 2 2", "delete hops member 4 3", "delete routes to=0.0.0.1 1"}, 1},
		{"others over BfRt", holding(member, group), holding(), true, []string{"delete hops group 2 2", "delete hops member 4 3"}, 0},
		{"the same", holding(member, group), holding(member, group), false, nil, 0},
		{"a group too many", holding(member, group), holding(member), true, []string{"delete hops group 2 2"}, 0},
		{"a rollback", holding(), holding(member, group), true, []string{"insert hops group 2 0", "insert hops member 4 0", "delete routes to=0.0.0.1 1"}, 1},
	} {
		ex := &exchange{link: &primary.Link{}, index: x}
		if test.bfrt {
			ex.link.Endpoint.Speak = func(grpc.ClientConnInterface) target.Session { return target.Session{} }
		}
		list, gone := ex.foreignSteps(test.have, test.want)
		var got []string
		for _, s := range list {
			got = append(got, fmt.Sprint(s.Kind, " ", s.Object, " ", s.clears))
		}
		if !slices.Equal(got, test.steps) || len(gone) != test.gone {
			t.Errorf("%s: %q and %d entries, want %q and %d", test.name, got, len(gone), test.steps, test.gone)
		}
	}
	// A plan that replaces only the default action uses no members.
	preset := &contents{objects: map[string]object{}}
	preset.addEntry(&p4v1.TableEntry{TableId: 7, IsDefaultAction: true}, x)
	for c, want := range map[*contents]bool{holding(): true, preset: false, {}: false} {
		if got := c.uses(x, x.Profiles[0]); got != want {
			t.Errorf("%d objects use the profile: %v", len(c.objects), got)
		}
	}
	if holding().uses(x, &p4info.Profile{ID: 9}) {
		t.Error("an entry uses another profile")
	}
}

// The steps from one state to another: an object that is missing is inserted, a changed one
// modified, and one that the plan lacks deleted. Default actions are only modified. Each step
// shows the value before and after it.
func TestDiff(t *testing.T) {
	x := routes()
	other := &p4info.Table{ID: 9, Name: "paths", Fields: x.Tables[0].Fields, Actions: x.Tables[0].Actions, ByAction: x.Tables[0].ByAction, Routes: true}
	x.Tables, x.ByID[9], x.ByName["paths"] = append(x.Tables, other), other, other
	entry := func(table string, to, port uint64) *p4v1.TableEntry {
		e := route(to, port, false)
		e.Table = table
		return encodeEntry(x, e, pool{})
	}
	preset := func(table uint32, port byte) *p4v1.TableEntry {
		e := &p4v1.TableEntry{TableId: table, IsDefaultAction: true}
		if port > 0 {
			e.Action = directAction(&p4v1.Action{ActionId: 5, Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{port}}}})
		}
		return e
	}
	state := func(entries []*p4v1.TableEntry, session, bytes, group int) *contents {
		c := &contents{objects: map[string]object{}}
		for _, e := range entries {
			c.addEntry(e, x)
		}
		if session > 0 {
			c.addSession(&p4v1.CloneSessionEntry{SessionId: 4, Replicas: replicas([]int{session}), PacketLengthBytes: int32(bytes)})
		}
		if group > 0 {
			c.addGroup(&p4v1.MulticastGroupEntry{MulticastGroupId: 3, Replicas: replicas([]int{1, group})})
		}
		return c
	}
	have := state([]*p4v1.TableEntry{entry("routes", 1, 1), entry("routes", 2, 2), entry("paths", 3, 3), preset(7, 4), preset(9, 0)}, 5, 64, 2)
	have.cells = []plan.Cells{{Register: "r", From: 0, To: 1, Value: 7}, {Register: "r", From: 1, To: 2, Value: 8}}
	have.queues = []plan.Queue{{Port: 1, Rate: 1000, Depth: 8}}
	have.filters = []plan.Filter{{Name: "C.u", Shift: 3}}
	want := state([]*p4v1.TableEntry{entry("routes", 1, 1), entry("routes", 2, 9), entry("paths", 4, 3), preset(7, 0), preset(9, 6)}, 5, 65, 0)
	want.cells = []plan.Cells{{Register: "r", From: 0, To: 1, Value: 9}, {Register: "r", From: 1, To: 2, Value: 8}, {Register: "r", From: 2, To: 3, Value: 1}}
	want.queues = []plan.Queue{{Port: 1, Rate: 1000, Depth: 9}, {Port: 2, Rate: 1000, Depth: 9}}
	want.filters = []plan.Filter{{Name: "u", Shift: 4}}
	s := &notedSwitch{}
	var got []string
	for _, d := range s.exchange(x).diff(have, want) {
		name := ""
		if d.filter != nil {
			name = " as " + d.filter.Name
		}
		got = append(got, fmt.Sprintf("%s %s, %q to %q, rank %d%s", d.Kind, d.Object, d.Before, d.After, d.rank, name))
	}
	slices.Sort(got)
	if list := []string{
		`delete multicast group 3, "ports 1 2" to "", rank 0`,
		`delete paths to=0.0.0.3, "go(port=3)" to "", rank 4`,
		`insert paths to=0.0.0.4, "" to "go(port=3)", rank 4`,
		`modify clone session 4, "ports 5, cut to 64 bytes" to "ports 5, cut to 65 bytes", rank 0`,
		`modify filter C.u, ` + fmt.Sprintf("%q to %q", have.filters[0].String(), plan.Filter{Name: "C.u", Shift: 4}.String()) + `, rank 0 as C.u`,
		`modify paths default, "" to "go(port=6)", rank 4`,
		`modify queue of port 1, ` + fmt.Sprintf("%q to %q", have.queues[0].String(), want.queues[0].String()) + `, rank 0`,
		`modify queue of port 2, ` + fmt.Sprintf("%q to %q", "", want.queues[1].String()) + `, rank 0`,
		`modify register r[0], "7" to "9", rank 0`,
		`modify routes default, "go(port=4)" to "the program's own", rank 3`,
		`modify routes to=0.0.0.2, "go(port=2)" to "go(port=9)", rank 3`,
	}; !slices.Equal(got, list) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(list, "\n"))
	}
	if list := s.exchange(x).diff(want, want); len(list) > 1 || len(list) == 1 && list[0].filter == nil {
		t.Errorf("%d steps to the same state: %+v", len(list), list[0].Change)
	}
}

// Options that are not given have defaults.
func TestDefaultOptions(t *testing.T) {
	var o DeployOptions
	if err := o.complete(); err != nil || o.Parallel != 16 || o.Timeout != 10*time.Second || o.Election.High != 0 || o.Election.Low != 1 || o.Log == nil {
		t.Errorf("%+v, %v", o, err)
	}
	given := DeployOptions{Parallel: 1, Timeout: 1}
	given.Election.High = 3
	if err := given.complete(); err != nil || given.Parallel != 1 || given.Timeout != 1 || given.Election.High != 3 || given.Election.Low != 0 {
		t.Errorf("%+v, %v", given, err)
	}
}

// A register that claims more cells than a controller reads at once is refused before a
// request.
func TestCellsAtOnce(t *testing.T) {
	r := &p4Registers{index: &p4info.Index{Registers: map[string]*p4info.Register{"r": {Name: "r", Size: 1 << 30}}}}
	const most = 1 << 24
	if _, err := r.Read(t.Context(), "r", 5, 5+most+1, nil); err == nil || err.Error() != "reading register r: 16777217 cells, more than the 16777216 that are read at once" {
		t.Error(err)
	}
	r.link, r.timeout = lying(t, func(func(*p4v1.ReadResponse) error) error { return status.Error(codes.Internal, "asked") }), patience
	if _, err := r.Read(t.Context(), "r", 5, 5+most, nil); err == nil || !strings.Contains(err.Error(), "asked") {
		t.Errorf("%d cells: %v, want the switch's answer", most, err)
	}
}
