package controller_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

const ms = time.Millisecond

// TestHULAProbes sends probes and expects both leaves to know the least utilised path to
// each other.
func TestHULAProbes(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 10*time.Microsecond), "hula", nil)
	tasks := n.tasks(task.Options{})
	if len(tasks) != 1 || tasks[0].Name() != "probe" {
		t.Fatalf("tasks %v, want one that probes", tasks)
	}
	n.play(tasks, n.now+ms)
	if want := 2 * 6; n.out != want { // two leaves, every 200 us from 0 to 1 ms
		t.Errorf("%d probes in 1 ms, want %d", n.out, want)
	}
	for leaf, other := range map[string]int{"l1": 2, "l2": 1} {
		if hop := n.cell(leaf, "best_hop", other); hop>>15 != 1 || hop&0xff > 3 {
			t.Errorf("%s: best hop to leaf %d is %#x, want a slot of 4", leaf, other, hop)
		}
		if n.cell(leaf, "upd", other) == 0 {
			t.Errorf("%s has heard of no probe of leaf %d", leaf, other)
		}
	}
}

// TestDHLBPeriod holds the period of DHLB's probes to Eq. 2 with its limits:
// theta/sigma, at least two flowlet gaps, at most tmax.
func TestDHLBPeriod(t *testing.T) {
	for _, c := range []struct {
		name string
		load float64 // of every link between switches
		set  map[string]string
		want time.Duration
	}{
		{"no load: as seldom as allowed", 0, nil, 100 * ms},
		{"little load: theta/sigma", 0.01, nil, 18 * ms},
		{"half load: 360 us would be less than two gaps", 0.5, nil, 1 * ms},
		{"half load, short gaps", 0.5, map[string]string{"gap": "50us"}, 360 * time.Microsecond},
		{"full load, short gaps", 1, map[string]string{"gap": "10us"}, 180 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newVirtualNet(t, leafSpine(t, 0), "dhlb", c.set)
			full := 400e6 / 8 * 1024e-6 // bytes of a link within 2^10 us
			for name, s := range n.switches {
				for port, p := range s.ports {
					if p.PeerTier > 0 {
						n.write(name, "u", port, uint64(c.load*full+0.5))
						n.write(name, "u_ts", port, uint64(n.now.Microseconds()))
					}
				}
			}
			task := n.tasks(task.Options{})[0]
			next, err := task.Run(n.now, quiet{n})
			if err != nil {
				t.Fatal(err)
			}
			if got := next - n.now; got < c.want*99/100 || got > c.want*101/100 {
				t.Errorf("the next probes are due in %v, want %v", got, c.want)
			}
		})
	}
}

// quiet loses packets from the controller, which would change loads.
type quiet struct{ *virtualNet }

func (quiet) PacketOut(string, []byte) error { return nil }

// TestDHLBProbes expects degrees for all paths, and numbered probes.
func TestDHLBProbes(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 10*time.Microsecond), "dhlb", nil)
	var frames [][]byte
	tasks := n.tasks(task.Options{})
	n.play(tasks, n.now+ms)
	for slot := range 4 {
		if d := n.cell("l1", "deg", 2<<4+slot); d != 5 {
			t.Errorf("degree of path %d to leaf 2 is %d, want 5: nothing is loaded", slot, d)
		}
	}
	for range 3 {
		next, err := tasks[0].Run(n.now, recorder{n, &frames})
		if err != nil || next <= n.now {
			t.Fatalf("next run at %v, error %v", next, err)
		}
	}
	if len(frames) != 6 {
		t.Fatalf("%d frames in 3 runs of 2 leaves", len(frames))
	}
	// Fig. 2: origin, seq (16 bits), maxdeg, hop, switch, in and out port.
	for i, want := range []string{"\x01\x00\x01\x05\x00", "\x02\x00\x01\x05\x00", "\x01\x00\x02\x05\x00"} {
		f := frames[i]
		if len(f) != 14+10 || !bytes.Equal(f[12:14], []byte{0x88, 0xb6}) {
			t.Fatalf("frame %x, want EtherType 0x88b6 and 10 bytes", f)
		}
		if string(f[14:19]) != want {
			t.Errorf("probe %d begins with %x, want %x", i, f[14:19], want)
		}
	}
}

// recorder notes packets from the controller instead of sending them.
type recorder struct {
	*virtualNet
	frames *[][]byte
}

func (r recorder) PacketOut(_ string, frame []byte) error {
	*r.frames = append(*r.frames, slices.Clone(frame))
	return nil
}

// TestPathProbes checks the round-trip time of every path in the registers, for each
// scheme that probes paths.
func TestPathProbes(t *testing.T) {
	const delay = 25 * time.Microsecond
	for _, scheme := range []string{"pdlb", "hermes", "drill+rlb", "letflow+rlb-star"} {
		t.Run(scheme, func(t *testing.T) {
			n := newVirtualNet(t, leafSpine(t, delay), scheme, nil)
			n.play(n.tasks(task.Options{}), n.now+600*time.Microsecond)
			for leaf, other := range map[string]int{"l1": 2, "l2": 1} {
				for slot := range 4 {
					rtt := n.cell(leaf, "rtt", other<<4+slot)
					if want := uint64(4 * delay.Microseconds()); rtt != want {
						t.Errorf("%s: round trip to leaf %d by path %d takes %d us, want %d", leaf, other, slot, rtt, want)
					}
				}
			}
		})
	}
}

// TestCloveProbes: the share of marks falls if queues are empty.
func TestCloveProbes(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "clove", nil)
	n.write("l1", "ecn", 2<<4, 200)
	n.play(n.tasks(task.Options{}), n.now+5*ms)
	if share := n.cell("l1", "ecn", 2<<4); share >= 200 {
		t.Errorf("share of marks is %d after probes that met no queue, want less than 200", share)
	}
}

// TestGranularity compares the written values with Eq. 10, for path delays as in PDLB
// (Fig. 10: one of four paths is bad).
func TestGranularity(t *testing.T) {
	model := func(m, bad int, good, x float64) int {
		p := fitting.PDLB{M: m, Bad: bad, Good: good, X: x, C: 400e6 / 8 / 1500, Buffer: 64, Size: fitting.PDLBFlow, Flows: 1}
		gran, _, err := p.Granularity()
		if err != nil {
			t.Fatal(err)
		}
		return gran
	}
	for _, c := range []struct {
		name string
		rtt  [4]uint64
		set  map[string]string
		want int
	}{
		{"all alike", [4]uint64{100, 100, 100, 100}, nil, model(4, 0, 100e-6, 1)},
		{"one bad", [4]uint64{100, 100, 300, 100}, nil, model(4, 1, 100e-6, 3)},
		{"half bad", [4]uint64{100, 300, 300, 100}, nil, model(4, 2, 100e-6, 3)},
		{"half bad, which twice the average never finds", [4]uint64{100, 300, 300, 100}, map[string]string{"rule": "paper"}, model(4, 0, 100e-6, 3)},
		{"one bad of four, by the average too", [4]uint64{100, 100, 900, 100}, map[string]string{"rule": "paper"}, model(4, 1, 100e-6, 9)},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newVirtualNet(t, leafSpine(t, 0), "pdlb", c.set)
			task := taskOf(t, n.tasks(task.Options{}), "granularity", "l1")
			if _, err := task.Run(n.now, n); err != nil {
				t.Fatal(err)
			}
			if gran := n.cell("l1", "pd_gran", 2); gran != 0 {
				t.Errorf("granularity %d before any delay is known", gran)
			}
			for slot, v := range c.rtt {
				n.write("l1", "rtt", 2<<4+slot, v)
				n.write("l1", "rtt_ts", 2<<4+slot, uint64(n.now.Microseconds()))
			}
			for _, before := range []uint64{0, 7} { // a size that the switch has lost is written again
				n.write("l1", "pd_gran", 2, before)
				if _, err := task.Run(n.now, n); err != nil {
					t.Fatal(err)
				}
				if gran := n.cell("l1", "pd_gran", 2); gran != uint64(c.want) {
					t.Errorf("granularity %d, want %d", gran, c.want)
				}
			}
			if other := n.cell("l1", "pd_gran", 3); other != 0 {
				t.Errorf("granularity %d for a leaf that is not there", other)
			}
		})
	}
	if alike, bad := model(4, 0, 100e-6, 1), model(4, 2, 100e-6, 3); alike > bad {
		t.Errorf("granularity falls from %d to %d as paths go bad: cells are to grow", alike, bad)
	}
}

// TestGranularityOfShortFlows: flows that are short on average end within their
// first window, which no reordering has cut; with their size Eq. 10 would take
// cells of one packet, however slow a path is.
func TestGranularityOfShortFlows(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "pdlb", nil)
	for slot, v := range []uint64{100, 100, 300, 100} {
		n.write("l1", "rtt", 2<<4+slot, v)
		n.write("l1", "rtt_ts", 2<<4+slot, uint64(n.now.Microseconds()))
	}
	task := taskOf(t, n.tasks(task.Options{FlowSize: 30e3}), "granularity", "l1")
	if _, err := task.Run(n.now, n); err != nil {
		t.Fatal(err)
	}
	if gran := n.cell("l1", "pd_gran", 2); gran <= 1 {
		t.Errorf("granularity %d with a bad path and flows of 30 KB on average", gran)
	}
}

// taskOf finds a task.
func taskOf(t *testing.T, list []task.Task, name, sw string) task.Task {
	t.Helper()
	for _, task := range list {
		if task.Name() == name && task.Switch() == sw {
			return task
		}
	}
	t.Fatalf("no task %s of %q", name, sw)
	return nil
}

// TestThreshold holds S to Eq. 14 on QDAPS's network: 1 Gb/s, 100 us, queues of
// 256 packets.
func TestThreshold(t *testing.T) {
	top, err := fabric.LeafSpine{Links: fabric.Links{HostRate: fabric.Gbps, Delay: 20 * time.Microsecond, HostDelay: 10 * time.Microsecond, Queue: 256}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"qdaps", "qdaps-star"} {
		n := newVirtualNet(t, top, scheme, nil)
		tasks := n.tasks(task.Options{})
		n.play(tasks, n.now)
		// sqrt(1.6·1066.7) - 83333·100e-6 = 41.3 - 8.3
		if s := n.cell("l1", "qd_S", 0); s != 32 {
			t.Errorf("%s: S = %d packets, want 32", scheme, s)
		}
		n.write("l1", "qd_S", 0, 0) // the switch restarts
		n.play(tasks, n.now+time.Second)
		if s := n.cell("l1", "qd_S", 0); s != 32 {
			t.Errorf("%s: S = %d packets after the switch has lost it, want 32", scheme, s)
		}
	}
}

// TestRezero expects leftover counts to be cleared, but not while packets are in the
// switch.
func TestRezero(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb", nil)
	task := taskOf(t, n.tasks(task.Options{}), "rezero", "l1")
	run := func(want uint64, why string) {
		t.Helper()
		n.step(task)
		if got := n.cell("l1", "ig_q", 1); got != want {
			t.Errorf("%s: ig_q is %d, want %d", why, got, want)
		}
	}
	n.write("l1", "ig_q", 1, 4711)
	run(0, "the switch says that it is empty")

	n.silent = true
	n.write("l1", "ig_q", 1, 4711)
	run(4711, "first look at a switch that does not tell")
	n.write("l1", "ig_q", 1, 6000)
	run(6000, "a queue has grown")
	n.write("l1", "ig_t0", 2, 1)
	run(6000, "a packet has come in at another port")
	run(0, "nothing has moved")
}

// TestRecirculationLimit holds N_rc to Eq. 5 with the queue, in packets.
func TestRecirculationLimit(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb-star", nil)
	task := taskOf(t, n.tasks(task.Options{}), "recirculation-limit", "l1")
	// Q_PFC = 256 KB, n = 8, C = 40 Gb/s: (262144 - Q - 7·5e9·t_rc)/1500.
	for _, c := range []struct {
		queue, round uint64
		want         uint64
	}{
		{0, 0, 8},      // 174, at most 8
		{250000, 0, 8}, // 8.1
		{252000, 0, 6}, // 6.8
		{262000, 0, 0}, // 0.1
		{300000, 0, 0}, // less than nothing
		{0, 7, 8},      // 245000 bytes are on their way: 11.4
		{10000, 7, 4},  // 4.8
		{0, 8, 0},      // 280000 bytes
		{251000, 0, 7}, // 7.4
	} {
		n.write("l1", "ig_q", 2, c.queue)
		n.write("l1", "t_rc", 0, c.round)
		if _, err := task.Run(n.now, n); err != nil {
			t.Fatal(err)
		}
		if got := n.cell("l1", "nrc", 0); got != c.want {
			t.Errorf("N_rc is %d at %d bytes and %d us, want %d", got, c.queue, c.round, c.want)
		}
	}
}

// TestRecirculationLimitOfProgram: the program's own limit counts too.
func TestRecirculationLimitOfProgram(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb-star", map[string]string{"rc": "3"})
	task := taskOf(t, n.tasks(task.Options{}), "recirculation-limit", "l1")
	if _, err := task.Run(n.now, n); err != nil {
		t.Fatal(err)
	}
	if got := n.cell("l1", "nrc", 0); got != 3 {
		t.Errorf("N_rc is %d, want the 3 of the program", got)
	}
}

// TestFailureDetection runs Algorithm 2 interval by interval. In each, recirculations
// past overdue paths are counted by port, and the packets that recirculated.
func TestFailureDetection(t *testing.T) {
	type interval map[int][2]uint64 // by port: recirculations, packets
	high3 := interval{3: {90, 30}, 4: {10, 10}}
	high4 := interval{3: {10, 10}, 4: {90, 30}}
	for _, c := range []struct {
		name      string
		intervals []interval
		faulty    []int
	}{
		{"suspected twice running", []interval{high3, high3}, []int{3}},
		{"suspected once", []interval{high3}, nil},
		{"another port in between", []interval{high3, high4, high3}, nil},
		{"below the limit in between", []interval{high3, {3: {90, 90}}, high3}, nil},
		{"an interval without recirculations in between", []interval{high3, {}, high3}, []int{3}},
		{"an interval without overdue paths in between", []interval{high3, {-1: {50, 20}}, high3}, []int{3}},
		{"nothing recirculates", []interval{{}, {}}, nil},
		{"once per packet", []interval{{3: {90, 90}}, {3: {90, 90}}}, nil},
		{"hardly more than once", []interval{{3: {91, 90}}, {3: {91, 90}}}, []int{3}},
		{"the other one after that", []interval{high3, high4, high4}, []int{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newVirtualNet(t, leafSpine(t, 0), "drill+rlb-star", nil)
			var alerts []task.Alert
			task := taskOf(t, n.tasks(task.Options{Alert: func(a task.Alert) { alerts = append(alerts, a) }}), "failure-detection", "l1")
			for _, i := range c.intervals {
				for port, v := range i {
					if port >= 0 { // else recirculations for another reason
						n.write("l1", "rc_cnt", port, v[0])
						n.write("l1", "rc_pkts", port, v[1])
					}
					n.write("l1", "rc_sum", 0, n.cell("l1", "rc_sum", 0)+v[0])
				}
				if _, err := task.Run(n.now, n); err != nil {
					t.Fatal(err)
				}
				if n.cell("l1", "rc_sum", 0) != 0 || n.cell("l1", "rc_pkts", 3) != 0 || n.cell("l1", "rc_cnt", 3) != 0 {
					t.Error("the next interval does not start its counts at 0")
				}
			}
			var faulty []int
			for port := range 16 {
				if n.cell("l1", "faulty", port) == 1 {
					faulty = append(faulty, port)
				}
			}
			if !slices.Equal(faulty, c.faulty) {
				t.Errorf("faulty ports %v, want %v", faulty, c.faulty)
			}
			if len(alerts) != len(c.faulty) || len(alerts) > 0 && !strings.Contains(alerts[0].String(), "l1: port "+string(rune('0'+c.faulty[0]))+" is faulty: s1") {
				t.Errorf("alerts %v for %v", alerts, c.faulty)
			}
		})
	}
}

// TestAgeing counts waiting and finished flows of QDAPS.
func TestAgeing(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 25*time.Microsecond), "qdaps", nil)
	var got task.FlowAges
	only := taskOf(t, n.tasks(task.Options{Ageing: func(a task.FlowAges) { got = a }}), "ageing", "l1")
	now := uint64(n.now.Microseconds())
	for i, due := range []uint64{now + 300, now + 20, now - 50, now - 500} {
		n.write("l1", "fl_D", i, due)
		n.write("l1", "fl_port", i, 1<<15)
	}
	n.write("l1", "fl_D", 9, now+1000) // holds no flow
	if _, err := only.Run(n.now, n); err != nil {
		t.Fatal(err)
	}
	want := task.FlowAges{Time: n.now, Switch: "l1", Slots: 4, Waiting: 2, Expired: 1, Longest: 300 * time.Microsecond}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestEveryTask: every task of the catalogue is known, and none fails on newly configured
// switches.
func TestEveryTask(t *testing.T) {
	for _, row := range codegen.Rows() {
		if strings.HasPrefix(row.Name, "qall") && row.Name != "qall-poly3" {
			continue // all of them have no task
		}
		n := newVirtualNet(t, leafSpine(t, 10*time.Microsecond), row.Name, nil)
		n.play(n.tasks(task.Options{}), n.now+5*ms)
	}
}

// TestTimeless: if the switch's clock cannot be read, tasks use the times in its
// registers.
func TestTimeless(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 10*time.Microsecond), "pdlb", nil)
	n.timeless = true
	n.play(n.tasks(task.Options{}), n.now+3*ms)
	if gran := n.cell("l1", "pd_gran", 2); gran == 0 {
		t.Error("no granularity although the delays are known")
	}
	n = newVirtualNet(t, leafSpine(t, 0), "dhlb", nil)
	n.timeless = true
	for port, p := range n.switches["l1"].ports {
		if p.PeerTier > 0 {
			n.write("l1", "u", port, 512)
			n.write("l1", "u_ts", port, 77)
		}
	}
	next, err := n.tasks(task.Options{})[0].Run(n.now, quiet{n})
	if want := 36 * ms; err != nil || next-n.now != want { // 1 % at one of two leaves
		t.Errorf("the next probes are due in %v (error %v), want %v", next-n.now, err, want)
	}
}

// TestUnknownTask: a manifest from elsewhere is refused by the task's name.
func TestUnknownTask(t *testing.T) {
	top := leafSpine(t, 0)
	m := newPipeline(t, "pdlb", fabric.Leaf, nil).Manifest
	m.Tasks = append(slices.Clone(m.Tasks), manifest.Task{Kind: "levitate"})
	nodes, err := plan.NewNodes(top, map[fabric.Role]*manifest.Manifest{fabric.Leaf: &m, fabric.Spine: &newPipeline(t, "pdlb", fabric.Spine, nil).Manifest}, fabric.ByLeaf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := task.New(top, nodes, task.Options{}); err == nil || !strings.Contains(err.Error(), `"levitate"`) {
		t.Errorf("error %v, want one that names the task", err)
	}
}

// A flaky task fails every other time.
type flaky struct{ runs int }

func (f *flaky) Name() string   { return "flaky" }
func (f *flaky) Switch() string { return "l9" }
func (f *flaky) Run(now time.Duration, _ task.Fabric) (time.Duration, error) {
	f.runs++
	if f.runs%2 == 0 {
		return now + ms, errors.New("no answer")
	}
	return now + ms, nil
}

// TestSchedule expects tasks in the order of their times, errors with the task's name, no
// task twice in one run, and no task lost after an error.
func TestSchedule(t *testing.T) {
	f := &flaky{}
	s := task.NewSchedule([]task.Task{f}, 0)
	var errs []error
	for now := time.Duration(0); now < 10*ms; now += ms {
		if s.Next() != now {
			t.Fatalf("next run at %v, want %v", s.Next(), now)
		}
		errs = append(errs, s.Run(now, nil)...)
	}
	if f.runs != 10 || len(errs) != 5 {
		t.Errorf("%d runs and %d errors, want 10 and 5", f.runs, len(errs))
	}
	if got := errs[0].Error(); got != "task flaky of l9: no answer" {
		t.Errorf("error %q", got)
	}
	if s.Run(100*ms, nil); f.runs != 11 {
		t.Errorf("%d runs after a long pause, want one more than 10", f.runs)
	}
	if task.NewSchedule(nil, 0).Next() != task.Never {
		t.Error("an empty schedule is due")
	}
}
