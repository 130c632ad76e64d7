package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// countedProgram is a program with counters, a register and a table of ports.
const countedProgram = `#include <core.p4>
#include <v1model.p4>
header ether { bit<48> to; bit<48> from; bit<16> kind; }
struct headers { ether eth; }
struct data {}
parser Prs(packet_in p, out headers h, inout data m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); transition accept; }
}
control Ver(inout headers h, inout data m) { apply {} }
control In(inout headers h, inout data m, inout standard_metadata_t s) {
    register<bit<32>>(1024) cells;
    counter(16, CounterType.packets_and_bytes) kinds;
    direct_counter(CounterType.packets) hits;
    action out_by(bit<9> port) { hits.count(); s.egress_spec = port; }
    action none() { hits.count(); mark_to_drop(s); }
    table ports { key = { s.ingress_port: exact; } actions = { out_by; none; } counters = hits; size = 32; default_action = none(); }
    apply {
        bit<32> v;
        cells.read(v, 0);
        kinds.count((bit<32>) h.eth.kind);
        ports.apply();
    }
}
control Eg(inout headers h, inout data m, inout standard_metadata_t s) { apply {} }
control Sum(inout headers h, inout data m) { apply {} }
control Dep(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(Prs(), Ver(), In(), Eg(), Sum(), Dep()) main;
`

const countedManifest = `
version: 2
scheme: counted
arch: v1model
registers:
- name: In.cells
  cells:
  - {each: 0..9, at: $i, value: 7}
  - {at: 20, value: $switch + 100}
tables:
- name: In.ports
  entries:
  - {each: port, match: {s.ingress_port: $port}, action: out_by, args: {port: "$port == 1 ? 2 : 1"}}
clone_sessions:
- {each: port, at: 10 + $port, to: $port}
multicast_groups:
- {at: 3, to: 1}
`

// countedPlan plans the counted program. It edits the program and its manifest before, by pairs of
// an old and a new text.
func countedPlan(t *testing.T, edit ...string) *plan.Plan {
	t.Helper()
	edited := strings.NewReplacer(edit...).Replace
	c, err := p4.CompileText("x.p4", []byte(edited(countedProgram)), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("x.yaml", []byte(edited(countedManifest)))
	if err != nil {
		t.Fatal(err)
	}
	top, err := fabric.LeafSpine{Name: "x", Leaves: 2, Spines: 1, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON()}
	out, err := plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A wired target reaches its switches by P4Runtime alone, as a target elsewhere does.
type wired struct{ *embedded.Target }

func (w wired) Endpoint(name string) (target.Endpoint, error) {
	e, err := w.Target.Endpoint(name)
	e.Local, e.Registers, e.Queues = nil, nil, nil
	return e, err
}

func newWired(t *testing.T) wired {
	w := wired{embedded.New(embedded.Options{Memory: true, Still: true})}
	t.Cleanup(func() { w.Close() })
	return w
}

func deployed(t *testing.T, p *plan.Plan, to controller.Target, o controller.DeployOptions) *report.Report {
	t.Helper()
	r, err := controller.Deploy(t.Context(), p, to, o)
	if err != nil || !r.Verified() {
		t.Fatalf("%v", err)
	}
	return r
}

// changes counts the changes of a switch by kind.
func changes(r *report.Report, name string) string {
	count := map[report.Kind]int{}
	for _, s := range r.Switches {
		if s.Name == name {
			for _, c := range s.Changes {
				count[c.Kind]++
			}
		}
	}
	return fmt.Sprint(count)
}

// Over P4Runtime, a switch gets its program, entries, cells, sessions and groups once. What
// another controller changes is found by a comparison, and repaired by a deployment.
func TestDeployOverP4Runtime(t *testing.T) {
	p, to := countedPlan(t), newWired(t)
	if n := deployed(t, p, to, controller.DeployOptions{}).Written(); n == 0 {
		t.Error("nothing is written")
	}
	if n := deployed(t, p, to, controller.DeployOptions{}).Written(); n != 0 {
		t.Errorf("%d changes at once after a deployment", n)
	}
	c, err := controller.New(t.Context(), p, to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	regs, err := c.Registers("l1")
	if err != nil {
		t.Fatal(err)
	}
	read := func(from, to int) []uint64 {
		t.Helper()
		list, err := regs.Read(t.Context(), "In.cells", from, to, []uint64{1})
		if err != nil || list[0] != 1 {
			t.Fatal(list, err)
		}
		return list[1:]
	}
	for _, span := range [][2]int{{0, 22}, {0, 512}, {0, 513}, {0, 1024}, {9, 21}, {5, 5}} {
		want := make([]uint64, span[1]-span[0])
		for i := range want {
			switch at := span[0] + i; {
			case at < 10:
				want[i] = 7
			case at == 20:
				want[i] = 101
			}
		}
		if got := read(span[0], span[1]); !slices.Equal(got, want) {
			t.Errorf("cells %v: %d", span, got[:min(len(got), 30)])
		}
	}
	for _, span := range [][2]int{{-1, 2}, {3, 2}, {0, 1025}} {
		if _, err := regs.Read(t.Context(), "In.cells", span[0], span[1], nil); err == nil || !strings.Contains(err.Error(), "are outside 0..1023") {
			t.Errorf("cells %v: %v", span, err)
		}
	}
	if _, err := regs.Read(t.Context(), "In.none", 0, 1, nil); err == nil || !strings.Contains(err.Error(), "no register In.none") {
		t.Errorf("no register: %v", err)
	}
	if err := regs.Write(t.Context(), "In.cells", 3, 5, 99); err != nil {
		t.Fatal(err)
	}
	r, err := c.Compare(t.Context(), p)
	if err != nil || changes(r, "l1") != "map[modify:2]" || changes(r, "l2") != "map[]" {
		t.Errorf("a comparison finds %s at l1 and %s at l2, %v", changes(r, "l1"), changes(r, "l2"), err)
	}
	if got := read(3, 5); !slices.Equal(got, []uint64{99, 99}) {
		t.Errorf("a comparison writes %d", got)
	}
	if r, err = c.Deploy(t.Context()); err != nil || r.Written() != 2 || !slices.Equal(read(2, 6), []uint64{7, 7, 7, 7}) {
		t.Errorf("%d changes repair the cells to %d, %v", r.Written(), read(2, 6), err)
	}
	next := countedPlan(t, "$port == 1 ? 2 : 1", "$port == 1 ? 1 : 2", "at: 10 + $port", "at: 11 + $port", "{at: 3, to: 1}", "{at: 3, to: $to-port == 1}")
	if r, err = c.Compare(t.Context(), next); err != nil || changes(r, "l1") == "map[]" || r.Written() != 0 {
		t.Errorf("another plan: %s, %d written, %v", changes(r, "l1"), r.Written(), err)
	}
	if err := c.SetPlan(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if r, err = c.Deploy(t.Context()); err != nil || strings.Contains(changes(r, "l1"), "push") {
		t.Errorf("another plan of the same program: %s, %v", changes(r, "l1"), err)
	}
	if r, err = c.Compare(t.Context(), next); err != nil || changes(r, "l1") != "map[]" || changes(r, "s1") != "map[]" {
		t.Errorf("after the other plan: %s, %v", changes(r, "l1"), err)
	}
	// A plan for other switches is none of this controller's.
	top, err := fabric.LeafSpine{Name: "x", Leaves: 3, Spines: 1, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	more, err := plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p.Switches[0].Pipeline, fabric.Spine: p.Switches[0].Pipeline}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fewer := *p
	fewer.Switches = fewer.Switches[:2]
	for what, x := range map[string]*plan.Plan{"l3: the network that runs has no such switch": more, "the plan has 2 switches, the network that runs has 3": &fewer} {
		if err := c.SetPlan(t.Context(), x); err == nil || err.Error() != what {
			t.Errorf("%v, want %s", err, what)
		}
		if _, err := c.Compare(t.Context(), x); err == nil || err.Error() != what {
			t.Errorf("comparing: %v, want %s", err, what)
		}
	}
	if c.Plan() != next {
		t.Error("a refused plan is the controller's")
	}
	for _, o := range []controller.DeployOptions{{Parallel: -1}, {Timeout: -1}, {Takeover: true, Backup: true}} {
		if _, err := controller.Deploy(t.Context(), p, to, o); err == nil {
			t.Errorf("options %+v", o)
		}
	}
}

// A peek reads registers, fill levels and counters of a switch that another controller has,
// and writes nothing.
func TestPeek(t *testing.T) {
	p, to := countedPlan(t), newWired(t)
	e := func() target.Endpoint {
		t.Helper()
		e, err := to.Endpoint("l1")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if err := to.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.NewPeek(t.Context(), e(), time.Minute); !errors.Is(err, target.ErrOtherProgram) {
		t.Errorf("a switch without a program: %v", err)
	}
	deployed(t, p, to, controller.DeployOptions{})
	peek, err := controller.NewPeek(t.Context(), e(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := peek.Read(t.Context(), "In.cells", 9, 11, nil); err != nil || !slices.Equal(got, []uint64{7, 0}) {
		t.Errorf("cells %d, %v", got, err)
	}
	if err := peek.Write(t.Context(), "In.cells", 0, 1, 1); !errors.Is(err, target.ErrNotPrimary) {
		t.Errorf("a peek writes: %v", err)
	}
	holder := peek.(controller.Holder)
	tables, err := holder.Tables(t.Context())
	if err != nil || len(tables) != 1 || tables[0].Table != "In.ports" || tables[0].Entries != 2 || tables[0].Size != 32 || tables[0].Count == nil || tables[0].Count.Packets != 0 {
		t.Errorf("tables %+v, %v", tables, err)
	}
	dev := to.Device("l1")
	for cell, packets := range map[int]uint64{4: 3, 9: 1, 15: 7} {
		if err := dev.WriteCounter("In.kinds", cell, cell+1, packets, 60*packets); err != nil {
			t.Fatal(err)
		}
	}
	cells, err := holder.Counters(t.Context())
	if want := []controller.CounterCell{
		{Counter: "In.kinds", Cell: 4, Count: controller.Count{Packets: 3, Bytes: 180}}, {Counter: "In.kinds", Cell: 9, Count: controller.Count{Packets: 1, Bytes: 60}},
		{Counter: "In.kinds", Cell: 15, Count: controller.Count{Packets: 7, Bytes: 420}},
	}; err != nil || !slices.Equal(cells, want) {
		t.Errorf("counters %+v, %v; want %+v", cells, err, want)
	}
	if err := peek.Close(); err != nil {
		t.Error(err)
	}
	if _, err := peek.Read(t.Context(), "In.cells", 0, 1, nil); !errors.Is(err, target.ErrUnreachable) {
		t.Errorf("after its end: %v", err)
	}
	away := e()
	if err := to.Stop("l1"); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.NewPeek(t.Context(), away, time.Second); !errors.Is(err, target.ErrUnreachable) {
		t.Errorf("a switch that is gone: %v", err)
	}
}

// A switch is filled with a program and a list of updates, of which the first wrong one is
// named.
func TestFill(t *testing.T) {
	p, to := countedPlan(t), newWired(t)
	if err := to.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	pipeline := p.Switches[0].Pipeline
	x, err := pipeline.Index()
	if err != nil {
		t.Fatal(err)
	}
	table := x.ByName["In.ports"]
	entry := func(port byte) *p4v1.Update {
		return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{
			TableId: table.ID, Match: []*p4v1.FieldMatch{{FieldId: table.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{port}}}}},
			Action: &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: table.Actions["none"].ID}}},
		}}}}
	}
	for _, test := range []struct {
		list []*p4v1.Update
		at   int
	}{
		{[]*p4v1.Update{entry(1), entry(2)}, -1},
		{nil, -1},
		{[]*p4v1.Update{entry(1), entry(2), entry(1)}, 2},
	} {
		at, err := controller.Fill(t.Context(), "l1", to, pipeline, test.list, controller.DeployOptions{Takeover: true})
		if at != test.at || (err != nil) != (test.at >= 0) {
			t.Errorf("%d updates: %d, %v; want %d", len(test.list), at, err, test.at)
		}
		if err != nil && !strings.Contains(err.Error(), "inserting") {
			t.Errorf("error %v", err)
		}
		peek, err := controller.NewPeek(t.Context(), mustEndpoint(t, to), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := peek.(controller.Holder).Tables(t.Context())
		if want := min(len(test.list), 2); err != nil || tables[0].Entries != want {
			t.Errorf("%d updates: %+v, %v; want %d entries", len(test.list), tables, err, want)
		}
		peek.Close()
	}
	if at, err := controller.Fill(t.Context(), "l1", to, pipeline, nil, controller.DeployOptions{Timeout: -1}); at != -1 || err == nil {
		t.Errorf("a negative time: %d, %v", at, err)
	}
}

func mustEndpoint(t *testing.T, to controller.Target) target.Endpoint {
	t.Helper()
	e, err := to.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Entries of another controller are deleted and its values corrected, and if a switch
// refuses a change, an atomic deployment leaves all switches as they were.
func TestForeignEntries(t *testing.T) {
	p, to := countedPlan(t), newWired(t)
	deployed(t, p, to, controller.DeployOptions{})
	x, err := p.Switches[0].Pipeline.Index()
	if err != nil {
		t.Fatal(err)
	}
	table := x.ByName["In.ports"]
	at := func(kind p4v1.Update_Type, port byte, action string) *p4v1.Update {
		e := &p4v1.TableEntry{TableId: table.ID, Match: []*p4v1.FieldMatch{{FieldId: table.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{port}}}}}}
		if action != "" {
			e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: &p4v1.Action{ActionId: table.Actions[action].ID}}}
		}
		return &p4v1.Update{Type: kind, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}}
	}
	ctx, end := context.WithCancel(t.Context())
	other := primary.New(ctx, "l1", to, primary.Options{Election: primary.ElectionID{Low: 50}, Takeover: true, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	l, _, err := other.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Client.Write(ctx, &p4v1.WriteRequest{DeviceId: l.Endpoint.Device, ElectionId: other.Election(), Updates: []*p4v1.Update{
		at(p4v1.Update_INSERT, 9, "none"), at(p4v1.Update_MODIFY, 1, "none"), at(p4v1.Update_DELETE, 2, ""),
	}}); err != nil {
		t.Fatal(err)
	}
	end()
	other.Close()
	r := deployed(t, p, to, controller.DeployOptions{Takeover: true})
	if got := changes(r, "l1"); got != "map[delete:1 insert:1 modify:1]" || r.Written() != 3 {
		t.Errorf("changes %s, %d written", got, r.Written())
	}
	if n := deployed(t, p, to, controller.DeployOptions{Takeover: true}).Written(); n != 0 {
		t.Errorf("%d changes after the repair", n)
	}
}
