package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// during runs an experiment and calls do when its switches are ready.
func during(t *testing.T, text string, do func(v *View)) *Comparison {
	t.Helper()
	return run(t, &Runner{Cores: 1, Begin: func(v *View) error { do(v); return nil }}, load(t, text))
}

// oneRun is a run of 1 ms with a scheme whose switches have registers that a controller writes.
const oneRun = `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [%s]
traffic: [{pattern: pairs, pairs: [h1-h3], size: 20KB, at: [0s]}]
seeds: 1
warmup: 0
duration: 1ms
`

// TestTasksReachSwitches: a controller's task reads a register at once. Its writes and frames reach
// the switch after the latency. The lab counts the frames and their bytes. Unknown switches and
// cells are errors, and count nothing.
func TestTasksReachSwitches(t *testing.T) {
	const us = time.Microsecond
	during(t, fmt.Sprintf(oneRun, "qall-pkt"), func(v *View) {
		register := ""
		for _, n := range v.Nodes {
			for _, r := range n.Manifest.Registers {
				if n.Name == "l1" && register == "" {
					register = r.Name
				}
			}
		}
		f := &taskFabric{r: &running{Job: v.Job, net: v.Net}, latency: 10 * us, lately: map[string][]time.Duration{}}
		frame := make([]byte, 60)
		_, read := f.ReadRegister("x", register, 0, 1, nil)
		for what, err := range map[string]error{
			"read": read, "write": f.WriteRegister("x", register, 0, 1, 1), "packet-out": f.PacketOut("x", frame), "packet at a port": f.PacketAt("x", 1, frame),
		} {
			if err == nil || err.Error() != `there is no switch "x"` {
				t.Errorf("%s: %v", what, err)
			}
		}
		all, err := v.Net.Switch("l1").ReadRegister(register, nil)
		if err != nil || len(all) < 3 {
			t.Fatalf("register %s of %d cells, %v", register, len(all), err)
		}
		for _, c := range [][2]int{{-1, 1}, {2, 1}, {0, len(all) + 1}} {
			if _, err := f.ReadRegister("l1", register, c[0], c[1], nil); err == nil || err.Error() != fmt.Sprintf("register %s has %d cells, not %d to %d", register, len(all), c[0], c[1]) {
				t.Errorf("cells %v: %v", c, err)
			}
		}
		if _, err := f.ReadRegister("l1", "none", 0, 1, nil); err == nil {
			t.Error("an unknown register was read")
		}
		if f.sent != 0 || f.bytes != 0 || len(f.lately) != 0 {
			t.Errorf("%d frames of %d bytes without any", f.sent, f.bytes)
		}
		for _, c := range [][2]int{{0, 0}, {1, 3}, {0, len(all)}} {
			if got, err := f.ReadRegister("l1", register, c[0], c[1], []uint64{9}); err != nil || len(got) != 1+c[1]-c[0] || got[0] != 9 {
				t.Errorf("cells %v: %v, %v; want them behind the 9", c, got, err)
			}
		}
		if err := f.WriteRegister("l1", register, 1, 3, 1); err != nil {
			t.Error(err)
		}
		if err := errors.Join(f.PacketOut("l1", frame), f.PacketOut("l2", frame[:50]), f.PacketAt("l1", 1, frame)); err != nil {
			t.Error(err)
		}
		if f.sent != 3 || f.bytes != 170 || !reflect.DeepEqual(f.lately, map[string][]time.Duration{"l1": {10 * us}, "l2": {10 * us}}) {
			t.Errorf("%d frames of %d bytes, at %v", f.sent, f.bytes, f.lately)
		}
		cells := func() []uint64 {
			list, err := f.ReadRegister("l1", register, 0, 4, nil)
			if err != nil {
				t.Error(err)
			}
			return list
		}
		before := cells()
		v.Net.At(10*us-1, func() {
			if got := cells(); !slices.Equal(got, before) {
				t.Errorf("before the latency has passed: %v, were %v", got, before)
			}
		})
		v.Net.At(10*us, func() {
			if got := cells(); got[0] != before[0] || got[1] != 1 || got[2] != 1 || got[3] != before[3] {
				t.Errorf("after the latency: %v, were %v; want 1 in the cells 1 and 2", got, before)
			}
		})
		if err := f.PacketAt("l1", 99, frame); err != nil {
			t.Error(err)
		}
		if err := f.WriteRegister("l1", "none", 0, 1, 1); err != nil {
			t.Error(err)
		}
		v.Net.At(11*us, func() {
			if f.r.failed == nil {
				t.Error("a frame to a port without a link, and an unknown register, are no errors")
			}
		})
		if at, err := f.Clock("l1"); err != nil || at != v.Net.Switch("l1").Clock() {
			t.Errorf("clock %v, %v", at, err)
		}
		if empty, err := f.QueuesEmpty("l1"); !empty || err != nil {
			t.Errorf("queues empty: %v, %v", empty, err)
		}
		v.Net.At(100*us, func() { // h1 sends at the rate of its link, and the uplink is as fast
			if empty, _ := f.QueuesEmpty("l1"); empty != (v.Net.Switch("l1").Buffered() == 0) {
				t.Errorf("queues empty: %v", empty)
			}
		})
	})
}

// TestNotesOfOneMoment: two frames that reach a switch at the same time are one, also the first two.
func TestNotesOfOneMoment(t *testing.T) {
	s := idleSampler(t, "")
	f := &taskFabric{r: s.r, latency: 5, lately: map[string][]time.Duration{}}
	f.note("l1")
	f.note("l1")
	f.note("l2")
	if want := map[string][]time.Duration{"l1": {5}, "l2": {5}}; !reflect.DeepEqual(f.lately, want) {
		t.Errorf("%v, want %v", f.lately, want)
	}
}

// TestCells: a cell of a register has a value if the switch has the register and it is long enough.
func TestCells(t *testing.T) {
	during(t, fmt.Sprintf(oneRun, "pdlb"), func(v *View) {
		var r *manifest.Register
		for _, n := range v.Nodes {
			if n.Name == "l1" {
				r = granularity(n.Manifest)
			}
		}
		if r == nil {
			t.Fatal("pdlb has no register of flowcells")
		}
		s := &sampler{r: &running{Job: v.Job, net: v.Net, topo: v.Topology, nodes: v.Nodes}}
		if err := v.Net.Switch("l1").WriteRegister(r.Name, 2, 3, 7); err != nil {
			t.Fatal(err)
		}
		all, _ := v.Net.Switch("l1").ReadRegister(r.Name, nil)
		for i, want := range map[int]bool{0: true, 2: true, len(all) - 1: true, len(all): false, len(all) + 1: false} {
			value, ok := s.cell("l1", r.Name, i)
			if ok != want || ok && value != all[i] || i == 2 && value != 7 {
				t.Errorf("cell %d of %d: %d, %v", i, len(all), value, ok)
			}
		}
		if _, ok := s.cell("l1", "none", 0); ok {
			t.Error("an unknown register has a cell")
		}
		// Flowcells count where a leaf has several paths, and where a size is set.
		groups := map[int]int{} // ports by group of l1
		for _, n := range v.Nodes {
			for _, g := range n.Groups {
				if n.Name == "l1" {
					groups[g.ID] = len(g.Hops)
				}
			}
		}
		for i := range all {
			size := uint64(0)
			switch groups[i] {
			case 0:
			case 1:
				size = 1000 // not counted
			default:
				size = 9
			}
			for _, leaf := range []string{"l1", "l2"} {
				if err := v.Net.Switch(leaf).WriteRegister(r.Name, i, i+1, size); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.news, s.trips = map[string]*inspect.News{}, map[string]time.Duration{}
		s.senders = map[string]bool{"l1": true}
		s.sampleSchemes()
		if s.grains.n == 0 || s.grains.value() != 9 {
			t.Errorf("flowcells of %g, %d groups: want 9", s.grains.value(), s.grains.n)
		}
	})
}

// TestLossesNamed: packets of flows pass few switches. The run names a switch whose packets have no
// port, and the switch and reason of most drops. Copies that end are no drops.
func TestLossesNamed(t *testing.T) {
	during(t, fmt.Sprintf(oneRun, "ecmp")+"engine: native\n", func(v *View) {
		v.Net.At(900*time.Microsecond, func() {
			r := &running{net: v.Net}
			if n := v.Net.Began().Packets; n < 10 || v.Net.Hops() < 2*n {
				t.Errorf("%d packets over %d switches", n, v.Net.Hops())
			}
			if got := r.losses(); len(got) != 0 {
				t.Errorf("%q of a run without losses", got)
			}
			r.planned = &plan.Plan{Switches: []*plan.Switch{{Name: "a"}, {Name: "b"}}}
			a, b := new([bmv2.DropReasons]int64), new([bmv2.DropReasons]int64)
			r.drops = []*[bmv2.DropReasons]int64{a, b}
			if got := r.losses(); len(got) != 0 {
				t.Errorf("%q without drops", got)
			}
			a[bmv2.EndCopy], a[bmv2.DropQueue], b[bmv2.DropQueue] = 100, 1, 2
			if got, want := r.losses(), fmt.Sprintf("most drops are at b (%v)", bmv2.DropQueue); len(got) != 1 || got[0] != want {
				t.Errorf("%q, want %q", got, want)
			}
			a[bmv2.DropQueue] = 2 // the first of two equal ones
			if got, want := r.losses(), fmt.Sprintf("most drops are at a (%v)", bmv2.DropQueue); len(got) != 1 || got[0] != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	})
}

// TestFlowsTable writes a row of flows.csv for each flow, and none for a computation.
func TestFlowsTable(t *testing.T) {
	const ms = time.Millisecond
	_, top := loaded(t, 1000, 1000, "")
	r := &running{Job: &Job{x: &spec.Experiment{Classes: []spec.Class{{Name: "short"}, {Name: "long"}}}}, topo: top}
	flow := func(src, dst int, class int32, s sim.FlowStats) *outcome {
		return &outcome{Flow: spec.Flow{Src: src, Dst: dst, Bytes: 5000}, FlowStats: s, ideal: ms, class: class, counts: class == 1, end: 20 * ms}
	}
	r.flows = []*outcome{
		flow(0, 3, 1, sim.FlowStats{Started: 2 * ms, Finished: 5 * ms, Acknowledged: 6 * ms, Sent: 1, Retransmitted: 2, Timeouts: 3, DupAcks: 4, OutOfOrder: 5, Overtaken: 6, Degree: 7, Marked: 8}),
		flow(1, 2, 0, sim.FlowStats{Started: 10 * ms}),
		flow(0, 1, 0, sim.FlowStats{}),
		flow(2, 0, 0, sim.FlowStats{Started: ms, Finished: 2 * ms, Acknowledged: 3 * ms}),
	}
	r.flows[2].Compute = true
	r.flows[3].Class = "job1"
	var b strings.Builder
	if err := writeFlows(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `flow,class,src,dst,bytes,start_s,fct_s,slowdown,counted,finished,packets,retransmitted,timeouts,dupacks,out_of_order,reordered,degree,marked,acked_s
1,long,h1,h4,5000,0.002000000,0.003000000,3,true,true,1,2,3,4,5,6,7,8,0.004000000
2,short,h2,h3,5000,0.010000000,0.010000000,10,false,false,0,0,0,0,0,0,0,0,0.010000000
4,job1,h3,h1,5000,0.001000000,0.001000000,1,false,true,0,0,0,0,0,0,0,0,0.002000000
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", &b, want)
	}
	if err := writeFlows(nil, r); err != nil {
		t.Errorf("without a table: %v", err)
	}
	if err := writeFlows(full{}, r); err == nil {
		t.Error("a full disk is no error")
	}
}

// TestParquetTable: a table of CSV has the same columns and values as Parquet: numbers, names and
// truth values. A metric that a run does not have is not a number.
func TestParquetTable(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "runs.csv")
	convert := func(text string) error {
		if err := os.WriteFile(from, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(filepath.Join(dir, "runs.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(ToParquet(from, to), to.Close())
	}
	if err := convert("scheme,load,counted,finished,fct-mean\necmp,0.5,true,false,1e3\n\"a,b\",1,false,true,\n"); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Scheme   string  `parquet:"scheme"`
		Load     float64 `parquet:"load"`
		Counted  bool    `parquet:"counted"`
		Finished bool    `parquet:"finished"`
		Mean     float64 `parquet:"fct-mean"`
	}
	list, err := parquet.ReadFile[row](filepath.Join(dir, "runs.parquet"))
	if err != nil || len(list) != 2 || list[0] != (row{"ecmp", 0.5, true, false, 1000}) {
		t.Fatalf("%+v, %v", list, err)
	}
	if r := list[1]; r.Scheme != "a,b" || r.Load != 1 || r.Counted || !r.Finished || !math.IsNaN(r.Mean) {
		t.Errorf("%+v", r)
	}
	for column, want := range map[string]parquet.Value{
		"class": parquet.ByteArrayValue([]byte("5")), "bytes": parquet.DoubleValue(5), "counted": parquet.BooleanValue(false), "to": parquet.ByteArrayValue([]byte("5")),
	} {
		if got := cellOf(column, "5"); !parquet.DeepEqual(got, want) {
			t.Errorf("%s: %v of kind %v, want %v of %v", column, got, got.Kind(), want, want.Kind())
		}
	}
	for text, want := range map[string]string{"": "reading " + from, "a,b\n1\n": "writing " + filepath.Join(dir, "runs.parquet")} {
		if err := convert(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := ToParquet(filepath.Join(dir, "none.csv"), nil); err == nil || !strings.HasPrefix(err.Error(), "reading ") {
		t.Errorf("a missing file: %v", err)
	}
	// Both tables of a run.
	for _, name := range []string{flowsFile, linksFile} {
		if err := addParquet(dir); err == nil {
			t.Errorf("without %s there is no error", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("bytes\n7\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := addParquet(dir); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"flows.parquet", "links.parquet"} {
		list, err := parquet.ReadFile[struct {
			Bytes float64 `parquet:"bytes"`
		}](filepath.Join(dir, name))
		if err != nil || len(list) != 1 || list[0].Bytes != 7 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// TestLoadOfOneRun: a single run is enough for a target's load.
func TestLoadOfOneRun(t *testing.T) {
	c := swept([]string{"x"}, 0.3, 0.6)
	for _, r := range c.Rows {
		r.Runs = r.Runs[:min(1, len(r.Runs))]
	}
	if got := fmt.Sprint(c.loads(&spec.Target{Case: "x"}), c.loads(&spec.Target{Case: "x", UpTo: true})); got != "[0.6] [0.3 0.6]" {
		t.Errorf("%s", got)
	}
}

// TestBandwidthOfBarriers: a collective without bytes has a completion time and no bandwidth.
func TestBandwidthOfBarriers(t *testing.T) {
	const ms = time.Millisecond
	flow := func(bytes int64) (*spec.Instance, *outcome) {
		i := &spec.Instance{Kind: "all-reduce", Bytes: bytes, Ranks: 2}
		f := &outcome{FlowStats: sim.FlowStats{Started: ms, Finished: 3 * ms}, ideal: ms, counts: true}
		f.Instance = i
		return i, f
	}
	for bytes, want := range map[int64]string{0: "2 false false", 1: "2 true true", 1e6: "2 true true"} {
		i, f := flow(bytes)
		m := &measured{classes: []spec.Class{{Name: "all"}}, flows: []*outcome{f}, ideals: map[*spec.Instance]time.Duration{i: ms}}
		got := m.values()
		_, algorithm := got["algorithm-bandwidth"]
		_, bus := got["bus-bandwidth"]
		if text := fmt.Sprint(got["cct"], algorithm, bus); text != want {
			t.Errorf("%d bytes: %s, want %s", bytes, text, want)
		}
	}
}

// TestSnapshotsEnd: a recording ends with the duration or, if flows are left, when they have ended.
func TestSnapshotsEnd(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		left     time.Duration // until when flows are left
		progress bool
		every    time.Duration
		want     int
	}{
		{0, false, ms, 3}, {10 * ms, false, ms, 3}, {0, true, ms, 3}, {3 * ms, true, ms, 3}, {3*ms + 1, true, ms, 4}, {5*ms + 1, true, ms, 6}, {0, false, 2 * ms, 1}, {0, false, 4 * ms, 1}, {0, false, 3 * ms, 1},
	} {
		s := idleSampler(t, "")
		taken := 0
		v := s.r.view()
		v.Left = func() int {
			if v.Net.Now() < c.left {
				return 1
			}
			return 0
		}
		if c.progress {
			v.Progress = func() *CollectiveProgress { return nil }
		} else {
			v.Progress = nil
		}
		l := &looking{view: v, every: c.every, each: func([]*inspect.Snapshot) error { taken++; return nil }}
		l.next(0)
		if err := s.r.net.Run(20 * ms); err != nil {
			t.Fatal(err)
		}
		if taken != c.want {
			t.Errorf("%+v: %d snapshots, want %d", c, taken, c.want)
		}
	}
}

// TestFramingOf: a transport's segments fill the frame behind its headers, unless it has a size of
// its own. IPv6 headers have 20 bytes more, and the kernel's headers do not count.
func TestFramingOf(t *testing.T) {
	for _, c := range []struct {
		kind             sim.Transport
		more, world      string
		segment, headers int64
	}{
		{sim.TCP, "", "", 1514 - sim.TCPHeaders, sim.TCPHeaders}, {sim.DCTCP, "mtu: 1000\n", "", 1014 - sim.TCPHeaders, sim.TCPHeaders}, {sim.UDP, "", "", 1514 - sim.UDPHeaders, sim.UDPHeaders},
		{sim.TCP, "transport: {kind: tcp, mss: 1000}\n", "", 1000, sim.TCPHeaders}, {sim.TCP, "ipv6: true\n", "", 1494 - sim.TCPHeaders, sim.TCPHeaders + 20},
		{sim.TCP, "", BMv2, 1514 - sim.TCPHeaders, 0}, {sim.UltraEthernet, "transport: uec\n", "", 1514 - sim.UECHeaders, sim.UECHeaders},
		{sim.UltraEthernet, "transport: {kind: uec, uec: {headers: 50}}\n", "", 1464, 50}, {sim.DCQCN, "transport: {kind: dcqcn, rdma: {headers: 60}}\n", "", 1454, 60},
	} {
		x, top := loaded(t, 1000, 1000, c.more)
		r := &running{Job: &Job{Case: &x.Cases[0], x: x, world: c.world}, topo: top}
		got := r.framingOf(c.kind, r.Case.Transport.Tuning())
		if got.segment != c.segment || got.headers != c.headers {
			t.Errorf("%v, %s%s: segments of %d, headers of %d; want %d and %d", c.kind, c.more, c.world, got.segment, got.headers, c.segment, c.headers)
		}
	}
}

// TestSeedsNeeded: the half-width of an interval falls with the square root of the seeds. Two seeds
// suffice for an estimate, and at least one more than now is needed.
func TestSeedsNeeded(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		from float64
		want float64
	}{
		{Estimate{Mean: 1, Half: 2, N: 2}, 0, 8}, {Estimate{Mean: 3, Half: 2, N: 2}, 1, 3}, {Estimate{Mean: -1, Half: 2, N: 3}, 0, 12}, {Estimate{Mean: 5, Half: 1, N: 5}, 0, 6},
		{Estimate{Mean: 1, Half: 0, N: 1}, 0, math.Inf(1)}, {Estimate{Mean: 1, Half: 2, N: 5}, 1, math.Inf(1)},
	} {
		if got := c.e.seeds(c.from); got != c.want {
			t.Errorf("%+v from %g: %g seeds, want %g", c.e, c.from, got, c.want)
		}
	}
}

// TestCoverageOnScreen: a state that needs several lines has the names in the first line alone.
func TestCoverageOnScreen(t *testing.T) {
	c := Coverage{Items: []CoverageItem{
		{Of: []string{"fig3", "fig4"}, What: "flow completion times; of all flows", State: "one two three four five six seven eight nine ten eleven twelve", Why: "because"},
		{Of: []string{"fig1"}, What: "a drawing", State: illustration}, {Of: []string{"fig2"}, What: "a drawing", State: illustration},
	}}
	var got []string
	for _, line := range c.Screen() {
		got = append(got, strings.Join(line, "|"))
	}
	want := []string{"PRINTED|WHAT|RECORDED", "fig3 fig4|flow completion times|one two three four five six seven", "||eight nine ten eleven twelve", "2 others|fig1 fig2|" + illustration}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
