package controller_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// inspector looks into one switch of a virtual network.
func (n *virtualNet) inspector(sw string, o inspect.Options) *inspect.Inspector {
	n.t.Helper()
	nodes := n.plan.Nodes()
	i := slices.IndexFunc(nodes, func(node *plan.Node) bool { return node.Name == sw })
	in, err := inspect.New(nodes[i], n.registers(sw), o)
	if err != nil {
		n.t.Fatal(err)
	}
	return in
}

func snapshot(t *testing.T, in *inspect.Inspector) *inspect.Snapshot {
	t.Helper()
	s, err := in.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reading returns the reading of a quantity and an index in a snapshot.
func reading(t *testing.T, s *inspect.Snapshot, quantity, index string) inspect.Reading {
	t.Helper()
	for _, r := range s.Readings {
		if r.Quantity == quantity && r.Index == index {
			return r
		}
	}
	t.Fatalf("no reading of %s at %q", quantity, index)
	return inspect.Reading{}
}

// A cell is the content of a register cell.
type cell struct {
	register string
	cell     int
	value    uint64
}

// readingOf returns the decoded reading of l1 under a scheme, for the given cell values.
func readingOf(t *testing.T, scheme string, cells []cell, quantity, index string) inspect.Reading {
	t.Helper()
	n := newVirtualNet(t, leafSpine(t, 0), scheme, nil)
	for _, w := range cells {
		n.write("l1", w.register, w.cell, w.value)
	}
	return reading(t, snapshot(t, n.inspector("l1", inspect.Options{})), quantity, index)
}

// TestReadings compares the decoded cells with the texts of the manifest, for each scheme.
func TestReadings(t *testing.T) {
	leftToPlainRun(t)
	const now = 1_000_000 // us, when virtual networks begin
	for _, c := range []struct {
		scheme          string
		cells           []cell
		quantity, index string
		value           float64
		text            string
	}{
		{"qall-pkt", []cell{{"q_L", 3, 107}}, "occupancy", "port 3", 107.0 / 255, "0.42"},
		{"qall-pkt", []cell{{"q_T", 3, 1300}}, "dequeue interval", "port 3", 1300, "1.3 ms"},
		{"qall-pkt", []cell{{"q_V", 3, 2}}, "trend", "port 3", 2, "rising"},
		{"qall-pkt", []cell{{"q_V", 3, 1}}, "trend", "port 3", 1, "falling"},
		{"qall-pkt", []cell{{"q_C", 3, 2550000}}, "congestion", "port 3", 0.5, "0.50"},
		{"qall-pkt", []cell{{"q_upd", 3, now - 2500}}, "q_upd", "port 3", now - 2500, "2.5 ms ago"},
		{"qall-pkt", []cell{{"q_C", 3, 5100000}}, "weight", "group 1 path 1", 5100000 >> 8, "19921"},
		{"qall-pkt", []cell{{"q_C", 3, 5100000}, {"q_C", 4, 5100000}, {"q_C", 5, 5100000}}, "share", "group 1 path 4", 0.988, "98.8 %"},
		{"dhlb", []cell{{"deg", 2<<4 + 1, 3}}, "degree", "leaf 2 path 2", 3, "3"},
		{"dhlb", []cell{{"deg", 2<<4 + 1, 3}, {"deg", 2<<4 + 2, 1}}, "share", "leaf 2 path 2", 0.75, "75 %"},
		{"dhlb", nil, "share", "leaf 2 path 2", 0.25, "25 %"}, // nothing speaks for any path
		{"dhlb", []cell{{"u", 3, 25600}, {"u_ts", 3, now}}, "utilisation", "port 3", 0.5, "50 %"},
		{"dhlb", []cell{{"u", 3, 51200}, {"u_ts", 3, now - 512}}, "utilisation", "port 3", 0.5, "50 %"},
		{"dhlb", []cell{{"u", 3, 51200}, {"u_ts", 3, now - 2000}}, "utilisation", "port 3", 0, "0 %"},
		{"hula", []cell{{"best_hop", 2, 0x8002}}, "best path", "leaf 2", 2, "path 3, port 5"},
		{"hula", nil, "best path", "leaf 2", 0, "none"},
		{"pdlb", []cell{{"rtt", 2<<4 + 3, 300}}, "delay", "leaf 2 path 4", 300, "300 us"},
		{"pdlb", []cell{{"pd_gran", 2, 16}}, "granularity", "leaf 2", 16, "16 packets"},
		{"clove", []cell{{"ecn", 2 << 4, 51}}, "marks", "leaf 2 path 1", 0.2, "20 %"},
		{"drill", []cell{{"q_len", 3, 12}}, "queue", "port 3", 12, "12 packets"},
		{"drill", []cell{{"dr_mem", 1, 0x8003}}, "dr_mem", "group 1 memory 1", 3, "path 4, port 6"},
		{"conga", []cell{{"to_leaf", 2<<4 + 1, 7}}, "congestion", "leaf 2 path 2", 1, "1.00"},
		{"drill+rlb-star", []cell{{"warn_until", 4, now + 1500}}, "warned", "port 4", 1, "for 1.5 ms"},
		{"drill+rlb-star", []cell{{"warn_until", 4, now - 1}}, "warned", "port 4", 0, "no"},
		{"drill+rlb-star", []cell{{"warn_until", 4, now + 1500}}, "warn_until", "port 4", now + 1500, "in 1.5 ms"},
		{"drill+rlb-star", []cell{{"rc_cnt", 4, 7}}, "recirculations", "port 4", 7, "7 recirculations"},
		{"drill+rlb-star", []cell{{"rc_cnt", 4, 30}, {"rc_pkts", 4, 20}}, "recirculations per packet", "port 4", 1.5, "1.5"},
		{"drill+rlb-star", []cell{{"ig_q", 4, 20480}}, "ig_q", "port 4", 20480, "20 KB"},
		{"drill+rlb-star", []cell{{"faulty", 4, 1}}, "faulty", "port 4", 1, "1"},
		{"qdaps", []cell{{"qd_S", 0, 32}}, "qd_S", "", 32, "32 packets"},
		{"wcmp", nil, "share", "leaf 2 path 2", 0.25, "25 %"},
	} {
		r := readingOf(t, c.scheme, c.cells, c.quantity, c.index)
		if math.Abs(r.Value-c.value) > 1e-3*max(1, c.value) || r.Text != c.text {
			t.Errorf("%s %v: %s of %s is %v, %q; want %v, %q", c.scheme, c.cells, c.quantity, c.index, r.Value, r.Text, c.value, c.text)
		}
	}
}

// TestReadingsOfProgram: weights equal the program's weights; a path with all of the
// weight receives all packets.
func TestReadingsOfProgram(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "dhlb", nil)
	n.write("l1", "deg", 2<<4+2, 5)
	in := n.inspector("l1", inspect.Options{})
	if share := reading(t, snapshot(t, in), "share", "leaf 2 path 3"); share.Value != 1 || share.Port != 5 || share.Peer != "s2" {
		t.Fatalf("share of path 3: %+v", share)
	}
	for flow := range uint16(50) {
		n.host("h1", "h3", 1000+flow, 100)
	}
	s := snapshot(t, in)
	flows := s.Flows[0]
	if flows.Occupied < 49 || flows.Paths[2] != flows.Occupied {
		t.Errorf("%d flows, by paths %v; want all of 50 at path 3", flows.Occupied, flows.Paths)
	}
}

// TestEveryProgram reads every program of the catalogue, in each role, and expects a text
// for every cell.
func TestEveryProgram(t *testing.T) {
	leftToPlainRun(t)
	for _, row := range codegen.Rows() {
		if strings.HasPrefix(row.Name, "qall") && row.Name != "qall-poly3" && row.Name != "qall-flowlet" {
			continue // all of them have the same registers
		}
		n := newVirtualNet(t, leafSpine(t, 0), row.Name, nil)
		for _, sw := range []string{"l1", "s1"} {
			in := n.inspector(sw, inspect.Options{})
			s := snapshot(t, in)
			seen := map[string]bool{}
			for _, r := range s.Readings {
				seen[r.Register] = true
				if r.Text == "" || r.Quantity == "" || r.Meaning == "" {
					t.Errorf("%s, %s: a reading without words: %+v", row.Name, sw, r)
				}
			}
			for _, reg := range in.Node().Manifest.Registers {
				if reg.Index != "flow" && !seen[reg.Name] {
					t.Errorf("%s, %s: register %s has no reading", row.Name, sw, reg.Name)
				}
			}
		}
	}
}

// TestChange compares snapshots by the switch's own clock.
func TestChange(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb-star", nil)
	in := n.inspector("l1", inspect.Options{})
	n.write("l1", "rc_cnt", 3, 10)
	if r := reading(t, snapshot(t, in), "recirculations", "port 3"); r.Change != 0 || r.Rate != 0 {
		t.Errorf("the first reading has changed: %+v", r)
	}
	n.write("l1", "rc_cnt", 3, 35)
	n.now += 50 * ms
	if r := reading(t, snapshot(t, in), "recirculations", "port 3"); r.Change != 25 || math.Abs(r.Rate-500) > 1e-6 {
		t.Errorf("change %v, rate %v; want 25 and 500/s", r.Change, r.Rate)
	}
	if r := reading(t, snapshot(t, in), "recirculations", "port 3"); r.Change != 0 || r.Rate != 0 {
		t.Errorf("change %v, rate %v without one", r.Change, r.Rate)
	}
	if r := reading(t, snapshot(t, in), "warn_until", "port 3"); r.Change != 0 {
		t.Errorf("a time has changed by %v", r.Change)
	}
}

// TestFlowTable counts flows by age and path.
func TestFlowTable(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "letflow", nil)
	now := uint64(n.now.Microseconds())
	for i := range 300 {
		n.write("l1", "fl_port", i, 1<<15|uint64(i%3))
		n.write("l1", "fl_ts", i, now-uint64(10*(i+1)))
	}
	s := snapshot(t, n.inspector("l1", inspect.Options{}))
	if len(s.Flows) != 1 {
		t.Fatalf("%d tables of flows", len(s.Flows))
	}
	f := s.Flows[0]
	if f.Occupied != 300 || f.Slots != 65536 || f.Active != 50 || f.Gap != 500*time.Microsecond {
		t.Errorf("%d of %d slots, %d active within %v; want 300 of 65536 and 50 within 500us", f.Occupied, f.Slots, f.Active, f.Gap)
	}
	if !slices.Equal(f.Paths, []int{100, 100, 100, 0}) {
		t.Errorf("by paths %v", f.Paths)
	}
	if f.Youngest != 10*time.Microsecond || f.Oldest != 3*ms {
		t.Errorf("ages from %v to %v, want 10us to 3ms", f.Youngest, f.Oldest)
	}
	if f.Median < 1350*time.Microsecond || f.Median > 1650*time.Microsecond {
		t.Errorf("median age %v, want 1.5 ms to a tenth", f.Median)
	}
	if r := reading(t, s, "fl_port occupied", "fl_port"); r.Value != 300 {
		t.Errorf("occupied: %+v", r)
	}
}

// TestCollisions holds the estimate to flows that were hashed at random.
func TestCollisions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, flows := range []int{0, 1000, 20000, 60000} {
		n := newVirtualNet(t, leafSpine(t, 0), "presto", nil)
		slots := map[int]bool{}
		for range flows {
			slots[rnd.IntN(65536)] = true
		}
		for i := range slots {
			n.write("l1", "fc_slot", i, 1<<15)
		}
		f := snapshot(t, n.inspector("l1", inspect.Options{})).Flows[0]
		want := float64(flows - len(slots))
		if math.Abs(f.Collisions-want) > 0.05*want+20 {
			t.Errorf("%d flows in %d slots: %.0f collisions estimated, there were %.0f", flows, f.Occupied, f.Collisions, want)
		}
		if f.Aged {
			t.Error("presto's flows have ages, but no register of times")
		}
	}
}

// TestNamedRegisters reads only named registers; for flow tables, all non-empty cells.
func TestNamedRegisters(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "letflow", nil)
	n.write("l1", "fl_port", 4711, 0x8001)
	s := snapshot(t, n.inspector("l1", inspect.Options{Registers: []string{"fl_port"}}))
	if len(s.Readings) != 1 || s.Readings[0].Index != "flow 4711" || s.Readings[0].Text != "path 2" {
		t.Errorf("readings %+v", s.Readings)
	}
	_, err := inspect.New(n.plan.Nodes()[0], n.registers("l1"), inspect.Options{Registers: []string{"q_Q"}})
	var known *plan.Error
	if !errors.As(err, &known) || !strings.Contains(err.Error(), `no register "q_Q"`) || !strings.Contains(known.Hint, "fl_ts, fl_port") {
		t.Errorf("error %v with hint %q", err, known.Hint)
	}
}

// clockless is a switch whose clock cannot be read.
type clockless struct{ registers.Access }

func (clockless) Clock(context.Context) (time.Duration, error) { return 0, registers.ErrNoClock }

// TestGuessedClock uses the latest time in the registers as the clock, but no time in the
// future.
func TestGuessedClock(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb-star", nil)
	n.write("l1", "rtt_ts", 2<<4, 5000)
	n.write("l1", "warn_until", 3, 9000)
	in, err := inspect.New(n.plan.Nodes()[0], clockless{n.registers("l1")}, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := snapshot(t, in); !s.Guessed || s.Clock != 5*ms {
		t.Errorf("clock %v, guessed %v; want 5ms", s.Clock, s.Guessed)
	}
}

// TestWithoutTopology finds ports and groups by what registers hold.
func TestWithoutTopology(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "dhlb", nil)
	n.write("l1", "u", 300, 5)
	n.write("l1", "deg", 17<<4+1, 4)
	in, err := inspect.New(&plan.Node{Name: "x", Manifest: n.plan.Nodes()[0].Manifest}, n.registers("l1"), inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, in)
	reading(t, s, "u", "port 300")
	if r := reading(t, s, "degree", "group 17 path 2"); r.Value != 4 || r.Port != 0 {
		t.Errorf("the degree is read as %+v", r)
	}
}

// TestInspectErrors: unreadable registers are named, with a hint.
func TestInspectErrors(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "qall-pkt", nil)
	in, err := inspect.New(n.plan.Nodes()[0], n.registers("s1"), inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Snapshot(t.Context()); err != nil {
		t.Fatal(err) // the spine runs the same registers
	}
	other := newVirtualNet(t, leafSpine(t, 0), "ecmp", nil)
	in, err = inspect.New(n.plan.Nodes()[0], other.registers("l1"), inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = in.Snapshot(t.Context())
	var known *plan.Error
	if !errors.As(err, &known) || known.Switch != "l1" || !strings.Contains(known.Hint, "does the switch run qall-pkt?") {
		t.Errorf("error %v", err)
	}
}

// TestSurvey reads several switches; one that fails does not stop the others.
func TestSurvey(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "qall-pkt", nil)
	other := newVirtualNet(t, leafSpine(t, 0), "ecmp", nil)
	var list []*inspect.Inspector
	for i, node := range n.plan.Nodes() {
		regs := n.registers(node.Name)
		if i == 1 {
			regs = other.registers(node.Name)
		}
		in, err := inspect.New(node, regs, inspect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, in)
	}
	for range 2 {
		results := inspect.NewSurvey(list).Round(t.Context())
		if len(results) != 4 {
			t.Fatalf("%d results of 4 switches", len(results))
		}
		for i, r := range results {
			if r.Switch != list[i].Node().Name || (r.Err != nil) != (i == 1) || (r.Snapshot == nil) != (i == 1) {
				t.Errorf("result %d is of %s, error %v", i, r.Switch, r.Err)
			}
		}
	}
}

// TestFlowsEvery reads flow tables less often than other registers and repeats the
// last readings in between.
func TestFlowsEvery(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "dhlb", nil)
	in := n.inspector("l1", inspect.Options{FlowsEvery: time.Hour})
	n.write("l1", "fl_port", 5, 1<<15)
	if f := snapshot(t, in).Flows; len(f) != 1 || f[0].Occupied != 1 {
		t.Fatalf("tables of flows %+v", f)
	}
	n.write("l1", "fl_port", 6, 1<<15)
	n.write("l1", "deg", 2<<4, 3)
	s := snapshot(t, in)
	if s.Flows[0].Occupied != 1 || reading(t, s, "fl_port occupied", "fl_port").Value != 1 {
		t.Errorf("the table of flows was read again: %+v", s.Flows)
	}
	if reading(t, s, "degree", "leaf 2 path 1").Value != 3 {
		t.Error("degrees were not read again")
	}
}

// TestNewNodes: a role without a program is named.
func TestNewNodes(t *testing.T) {
	top := leafSpine(t, 0)
	m := &newPipeline(t, "dhlb", fabric.Leaf, nil).Manifest
	if _, err := plan.NewNodes(top, map[fabric.Role]*manifest.Manifest{fabric.Leaf: m}, fabric.ByLeaf); err == nil || !strings.Contains(err.Error(), "switch s1") {
		t.Errorf("error %v", err)
	}
	manifests := map[fabric.Role]*manifest.Manifest{fabric.Leaf: m, fabric.Spine: &newPipeline(t, "dhlb", fabric.Spine, nil).Manifest}
	if by := plan.GroupingOf(manifests); by != fabric.ByLeaf {
		t.Errorf("grouping %v of dhlb, want that by leaf", by)
	}
	nodes, err := plan.NewNodes(top, manifests, fabric.ByLeaf)
	if err != nil {
		t.Fatal(err)
	}
	planned := newPlan(t, top, "dhlb", nil).Nodes()
	if diff := cmp.Diff(planned, nodes); diff != "" {
		t.Errorf("nodes of the plan and of the topology differ:\n%.500s", diff)
	}
}

// counted is a switch without registers and with port counters.
type counted struct {
	registers.Access
	ports []bmv2.PortCounts
}

func (c counted) PortCounts(context.Context) ([]bmv2.PortCounts, error) { return c.ports, nil }

func (c counted) Clock(context.Context) (time.Duration, error) { return time.Second, nil }

// TestInspectNowhere: packets to a port that does not exist are shown, also at port 0,
// which is the default without a matching entry. An unused port without a link is not
// shown.
func TestInspectNowhere(t *testing.T) {
	p := newPlan(t, leafSpine(t, 0), "ecmp", nil)
	var lost bmv2.PortCounts
	lost.Drops[bmv2.DropNoPort] = 7
	idle := bmv2.PortCounts{Port: 60}
	in, err := inspect.New(p.Nodes()[0], counted{ports: []bmv2.PortCounts{lost, {Port: 1, InPackets: 7}, idle}}, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, in)
	if r := reading(t, s, inspect.Drops, "port 0"); r.Text != "7: no such port" || !r.Counted() {
		t.Errorf("at port 0: %+v", r)
	}
	if r := reading(t, s, inspect.LinkDown, "port 0"); r.Value != 1 || r.Minor {
		t.Errorf("the link of port 0: %+v", r)
	}
	if s.Idle() || slices.ContainsFunc(s.Readings, func(r inspect.Reading) bool { return r.Port == 60 }) {
		t.Errorf("readings of a port to which nothing was sent, or of none: %+v", s.Readings)
	}
}
