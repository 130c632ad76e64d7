package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A step is a task that notes its runs and is due again after a pause.
type step struct {
	identity
	pause time.Duration
	runs  *[]string
	err   error
}

func (s *step) Run(now time.Duration, _ Fabric) (time.Duration, error) {
	*s.runs = append(*s.runs, fmt.Sprint(s.sw, now.Microseconds()))
	if s.pause == 0 {
		return Never, s.err
	}
	return now + s.pause, s.err
}

// Tasks run when they are due, the earliest first and tasks of one moment in the order
// of the list, once at most however late it is. An error leaves them in the schedule.
func TestSchedule(t *testing.T) {
	const us = time.Microsecond
	var runs []string
	broken := errors.New("broken")
	s := NewSchedule([]Task{
		&step{identity{"x", "a"}, 10 * us, &runs, nil}, &step{identity{"x", "b"}, 3 * us, &runs, broken}, &step{identity{"x", ""}, 0, &runs, nil},
	}, 5*us)
	if s.Next() != 5*us {
		t.Errorf("next at %v", s.Next())
	}
	for _, test := range []struct {
		now  time.Duration
		runs string
		errs int
		next time.Duration
	}{
		{4 * us, "", 0, 5 * us},
		{5 * us, "a5 b5 5", 1, 8 * us},
		{7 * us, "", 0, 8 * us},
		{8 * us, "b8", 1, 11 * us},
		{30 * us, "b30 a30", 1, 33 * us},
		{40 * us, "b40 a40", 1, 43 * us},
	} {
		runs = nil
		errs := s.Run(test.now, nil)
		if got := strings.Join(runs, " "); got != test.runs || len(errs) != test.errs || s.Next() != test.next {
			t.Errorf("at %v: %q with %d errors, next at %v; want %q, %d, %v", test.now, got, len(errs), s.Next(), test.runs, test.errs, test.next)
		}
		for _, err := range errs {
			if !errors.Is(err, broken) || err.Error() != "task x of b: broken" {
				t.Error(err)
			}
		}
	}
	if err := (&runError{Task: "x", Err: broken}); err.Error() != "task x: broken" {
		t.Error(err)
	}
	if n := NewSchedule(nil, 0).Next(); n != Never {
		t.Errorf("without tasks: %v", n)
	}
	runs = nil
	now := &step{identity{"x", "a"}, -us, &runs, nil} // due in the past
	s = NewSchedule([]Task{now}, us)
	if s.Run(us, nil); s.Next() != us+1 {
		t.Errorf("a task that is due at once runs again at %v", s.Next())
	}
}

func numbers(name string, size int, index manifest.Index) manifest.Register {
	return manifest.Register{Name: name, Size: size, Width: 32, Index: index}
}

// node is a leaf with ports to h1, s1 and s2, and a register of each name.
func node(task manifest.Task, names ...string) *plan.Node {
	n := &plan.Node{Name: "l1", Leaf: 1, Manifest: &manifest.Manifest{Scheme: "x", Tasks: []manifest.Task{task}}}
	for i, p := range []struct {
		peer string
		tier int
	}{{"h1", 0}, {"s1", 2}, {"s2", 2}} {
		n.Ports = append(n.Ports, fabric.Port{Number: i + 1, Peer: p.peer, PeerTier: p.tier, Rate: 1e9})
	}
	for _, name := range names {
		n.Manifest.Registers = append(n.Manifest.Registers, numbers(name, 4, manifest.ByPort))
	}
	return n
}

func one(t *testing.T, make func(*site) (Task, error), n *plan.Node, o Options) Task {
	t.Helper()
	task, err := make(&site{n, nil, &n.Manifest.Tasks[0], o.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// A port is faulty if, in two intervals in a row in which packets recirculate, it has
// the most recirculations, more than one per packet.
func TestFailure(t *testing.T) {
	task := manifest.Task{Kind: manifest.FailureWatch, Period: manifest.Duration(time.Millisecond), Registers: map[manifest.Part]string{
		manifest.PartRounds: "rounds", manifest.PartPackets: "packets", manifest.PartPortRounds: "per-port", manifest.PartFaulty: "faulty",
	}}
	type interval struct{ rounds, packets, perPort [4]uint64 }
	quiet := interval{}
	bad := func(port int) interval {
		var i interval
		i.rounds[0], i.packets[port], i.perPort[port] = 5, 4, 5
		return i
	}
	fine := bad(2)
	fine.perPort[2] = 4 // once per packet
	none := bad(2)
	none.packets[2] = 0
	two := bad(2)
	two.packets[3], two.perPort[3] = 1, 6 // port 3 has more
	for _, test := range []struct {
		name      string
		intervals []interval
		faulty    []uint64
		alerts    int
	}{
		{"once", []interval{bad(2)}, []uint64{0, 0, 0, 0}, 0},
		{"twice", []interval{bad(2), bad(2)}, []uint64{0, 0, 1, 0}, 1},
		{"twice with a pause", []interval{bad(2), quiet, bad(2)}, []uint64{0, 0, 1, 0}, 1},
		{"another port between", []interval{bad(2), bad(3), bad(2)}, []uint64{0, 0, 0, 0}, 0},
		{"a good interval between", []interval{bad(2), fine, bad(2)}, []uint64{0, 0, 0, 0}, 0},
		{"once per packet", []interval{fine, fine}, []uint64{0, 0, 0, 0}, 0},
		{"no packets counted", []interval{none, none}, []uint64{0, 0, 0, 0}, 0},
		{"the port with the most", []interval{two, two}, []uint64{0, 0, 0, 1}, 1},
		{"four times", []interval{bad(2), bad(2), bad(2), bad(2)}, []uint64{0, 0, 1, 0}, 1},
	} {
		var alerts []Alert
		n := node(task, "rounds", "packets", "per-port", "faulty")
		run := one(t, newFailureTask, n, Options{Alert: func(a Alert) { alerts = append(alerts, a) }})
		f := &fakeFabric{registers: map[string][]uint64{"faulty": make([]uint64, 4)}}
		for _, i := range test.intervals {
			f.registers["rounds"], f.registers["packets"], f.registers["per-port"] = slices.Concat(i.rounds[:1], []uint64{7}), i.packets[:], i.perPort[:]
			next, err := run.Run(time.Second, f)
			if err != nil || next != time.Second+time.Millisecond {
				t.Errorf("%s: next at %v, %v", test.name, next, err)
			}
			if f.registers["rounds"][1] != 7 {
				t.Errorf("%s: a cell of another task has become %d", test.name, f.registers["rounds"][1])
			}
			if i != quiet && slices.Max(slices.Concat(f.registers["rounds"][:1], f.registers["packets"], f.registers["per-port"])) != 0 {
				t.Errorf("%s: the next interval begins with %v %v %v", test.name, f.registers["rounds"], f.registers["packets"], f.registers["per-port"])
			}
		}
		if !slices.Equal(f.registers["faulty"], test.faulty) || len(alerts) != test.alerts {
			t.Errorf("%s: faulty %v with %d alerts, want %v with %d", test.name, f.registers["faulty"], len(alerts), test.faulty, test.alerts)
		}
		for _, a := range alerts {
			if want := fmt.Sprintf("l1: port %d is faulty: s%d behind it has failed", a.Port, a.Port-1); a.String() != want || a.Time != time.Second {
				t.Errorf("%s: %v at %v", test.name, a, a.Time)
			}
		}
	}
}

// A program for Tofino does not know overdue probes, and counts recirculations for the
// port that packets wait for. The port of the path that they avoid is faulty if no probe
// returns on any path through it.
func TestFailureOnHardware(t *testing.T) {
	task := manifest.Task{Kind: manifest.FailureWatch, Period: manifest.Duration(time.Millisecond), Registers: map[manifest.Part]string{
		manifest.PartRounds: "rounds", manifest.PartPackets: "packets", manifest.PartPortRounds: "per-port", manifest.PartFaulty: "faulty",
		manifest.PartDelay: "rtt",
	}}
	const first, second = 2 * manifest.MaxPaths, 3 * manifest.MaxPaths // the cells of two groups
	all := []int{first, first + 1, first + 2, second, second + 1, second + 2}
	without := func(cells ...int) []int {
		return slices.DeleteFunc(slices.Clone(all), func(c int) bool { return slices.Contains(cells, c) })
	}
	for _, test := range []struct {
		name   string
		probes []int // the paths whose probes return
		waits  int   // the port that packets wait for
		ms     int
		faulty int // or 0
	}{
		{"healthy", all, 1, 60, 0},
		{"both paths of a port", without(first+1, second+1), 1, 60, 2},
		{"the port before", without(first, second), 3, 60, 1},
		{"not the next path", without(first+2, second+2), 1, 60, 3},
		{"one of two paths", without(second + 1), 1, 60, 0},
		{"fifteen probes", without(first+1, second+1), 1, 15, 0},
		{"nothing recirculates", without(first+1, second+1), 0, 60, 0},
	} {
		n := node(task, "rounds", "packets", "per-port", "faulty")
		n.Manifest.Tasks = append(n.Manifest.Tasks, manifest.Task{Kind: manifest.PathProbe, Period: manifest.Duration(time.Millisecond)})
		n.Manifest.Registers = append(n.Manifest.Registers, numbers("rtt", 4*manifest.MaxPaths, manifest.ByPath))
		hops := []fabric.Hop{{Port: 1}, {Port: 2}, {Port: 3}}
		n.Groups = []fabric.Group{{ID: 2, Hops: hops}, {ID: 3, Hops: hops}}
		var alerts []Alert
		run := one(t, newFailureTask, n, Options{Alert: func(a Alert) { alerts = append(alerts, a) }})
		rtt := make([]uint64, 4*manifest.MaxPaths)
		f := &fakeFabric{registers: map[string][]uint64{"faulty": make([]uint64, 4), "rtt": rtt}}
		for _, cell := range all {
			rtt[cell] = 20
		}
		for ms := range test.ms {
			f.registers["rounds"], f.registers["packets"], f.registers["per-port"] = make([]uint64, 4), make([]uint64, 4), make([]uint64, 4)
			if test.waits > 0 {
				f.registers["rounds"][0], f.registers["packets"][test.waits], f.registers["per-port"][test.waits] = 9, 4, 9
			}
			for _, cell := range test.probes {
				rtt[cell] = 20 // the same RTT each time
			}
			if _, err := run.Run(time.Duration(ms)*time.Millisecond, f); err != nil {
				t.Fatal(err)
			}
		}
		want := make([]uint64, 4)
		if test.faulty > 0 {
			want[test.faulty] = 1
		}
		if !slices.Equal(f.registers["faulty"], want) || (len(alerts) == 1) != (test.faulty > 0) {
			t.Errorf("%s: faulty %v, alerts %v, want %v", test.name, f.registers["faulty"], alerts, want)
		}
	}
}

// RTTs that the task is to watch without probes are an error.
func TestFailureWithoutProbes(t *testing.T) {
	task := manifest.Task{Kind: manifest.FailureWatch, Registers: map[manifest.Part]string{manifest.PartDelay: "rtt"}}
	n := node(task, "rtt")
	if _, err := newFailureTask(&site{n, nil, &n.Manifest.Tasks[0], Options{}}); err == nil || !strings.Contains(err.Error(), "want a task path-probe") {
		t.Errorf("error %v", err)
	}
}

// The limit of recirculations follows Eq. 5 for the longest ingress queue, and is the
// task's most at most: (100000 - queue - (N-1)·C·t_rc) / MTU.
func TestLimit(t *testing.T) {
	task := manifest.Task{Kind: manifest.RecircLimit, Period: manifest.Duration(time.Millisecond), Limit: 7, Incast: 3, Rate: 8e9, Pause: 100_000}
	for _, test := range []struct {
		parts map[manifest.Part]string
		cells map[string][]uint64
		want  uint64
	}{
		// 2·1e9 B/s·10 us = 20,000 bytes; 100,000 - 75,000 - 20,000 = 5,000: three packets.
		{map[manifest.Part]string{manifest.PartQueue: "q"}, map[string][]uint64{"q": {0, 50_000, 75_000, 1}, "t": {10}}, 3},
		{map[manifest.Part]string{manifest.PartQueue: "q"}, map[string][]uint64{"q": {0, 0, 0, 0}, "t": {10}}, 7},
		{map[manifest.Part]string{manifest.PartQueue: "q"}, map[string][]uint64{"q": {0, 0, 0, 79_000}, "t": {10}}, 0},
		{map[manifest.Part]string{manifest.PartIn: "in", manifest.PartOut: "out"}, map[string][]uint64{"in": {0, 80_000, 9, 0}, "out": {0, 5_000, 10, 0}, "t": {10}}, 3},
	} {
		task.Registers = map[manifest.Part]string{manifest.PartRoundTime: "t", manifest.PartLimit: "limit"}
		for p, name := range test.parts {
			task.Registers[p] = name
		}
		run := one(t, newLimitTask, node(task, "q", "in", "out", "t", "limit"), Options{})
		f := &fakeFabric{registers: map[string][]uint64{"limit": {99}}}
		for name, cells := range test.cells {
			f.registers[name] = cells
		}
		for range 2 { // the second run finds the value
			if next, err := run.Run(0, f); err != nil || next != time.Millisecond {
				t.Fatalf("next at %v, %v", next, err)
			}
		}
		if got := f.registers["limit"][0]; got != test.want || len(f.written) != 1 {
			t.Errorf("%v: limit %d with %d writes, want %d", test.cells, got, len(f.written), test.want)
		}
	}
	task.Registers = map[manifest.Part]string{manifest.PartIn: "in", manifest.PartRoundTime: "t", manifest.PartLimit: "limit"}
	n := node(task, "in", "t", "limit")
	if _, err := newLimitTask(&site{n, nil, &n.Manifest.Tasks[0], Options{}}); err == nil {
		t.Error("packets that arrive are counted, and none that leave")
	}
}

// On hardware the counts of a port with a queue start again while the switch holds no
// packet, or none has moved since the last run.
func TestRestart(t *testing.T) {
	task := manifest.Task{Kind: manifest.Rezero, Period: manifest.Duration(time.Millisecond), Registers: map[manifest.Part]string{
		manifest.PartIn: "in", manifest.PartOut: "out", manifest.PartGone: "gone",
	}}
	for _, test := range []struct {
		name  string
		busy  bool
		empty error
		runs  int
		want  []uint64
	}{
		{"empty", false, nil, 1, []uint64{0, 0, 6, 0}}, {"busy", true, nil, 2, []uint64{0, 5, 6, 7}},
		{"unknown, once", false, errors.ErrUnsupported, 1, []uint64{0, 5, 6, 7}}, {"unknown, twice", false, errors.ErrUnsupported, 2, []uint64{0, 0, 6, 0}},
	} {
		run := one(t, newRezeroTask, node(task, "in", "out", "gone"), Options{})
		f := &fakeFabric{busy: test.busy, empty: test.empty, registers: map[string][]uint64{"in": {0, 5, 6, 7}, "out": {0, 4, 6, 0}, "gone": {0, 5, 6, 7}}}
		for range test.runs {
			if _, err := run.Run(0, f); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"in", "gone"} {
			if !slices.Equal(f.registers[name], test.want) {
				t.Errorf("%s: %s is %v, want %v", test.name, name, f.registers[name], test.want)
			}
		}
	}
	// A count of any register that changes between two runs is a packet that moves.
	for _, moves := range []string{"in", "out", "gone"} {
		run := one(t, newRezeroTask, node(task, "in", "out", "gone"), Options{})
		f := &fakeFabric{empty: errors.ErrUnsupported, registers: map[string][]uint64{"in": {0, 5, 6, 7}, "out": {0, 4, 6, 0}, "gone": {0, 5, 6, 7}}}
		for n, want := range []bool{false, false, true} { // whether the counts have started again
			if _, err := run.Run(0, f); err != nil {
				t.Fatal(err)
			}
			if got := f.registers["in"][1] == 0; got != want {
				t.Errorf("%s moves before run 2: after run %d the counts start again: %v", moves, n+1, got)
			}
			if n == 0 {
				f.registers[moves][2]++
			}
		}
	}
	for _, missing := range []manifest.Part{manifest.PartIn, manifest.PartOut, manifest.PartGone} {
		n := node(task, "in", "out", "gone")
		n.Manifest.Tasks[0].Registers = map[manifest.Part]string{}
		for p, name := range task.Registers {
			if p != missing {
				n.Manifest.Tasks[0].Registers[p] = name
			}
		}
		if _, err := newRezeroTask(&site{n, nil, &n.Manifest.Tasks[0], Options{}}); err == nil || !strings.Contains(err.Error(), string(missing)) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// Best paths without a probe for longer than the period get the register's initial
// value, which is no path.
func TestExpire(t *testing.T) {
	n := node(manifest.Task{Kind: manifest.Expire, Period: manifest.Duration(100 * time.Microsecond), Registers: map[manifest.Part]string{manifest.PartMoment: "heard", manifest.PartBest: "best"}})
	heard, best := numbers("heard", 5, manifest.ByGroup), numbers("best", 5, manifest.ByGroup)
	heard.Kind, heard.Unit = manifest.Moment, manifest.Microseconds
	best.Initial = []manifest.Cell{{Index: 2, Value: 3}, {Index: -1, Value: 9}}
	n.Manifest.Registers = []manifest.Register{heard, best}
	n.Groups = []fabric.Group{{ID: 4}, {ID: 2}}
	run := one(t, newExpireTask, n, Options{})
	f := &fakeFabric{clock: time.Millisecond, registers: map[string][]uint64{"heard": {0, 900, 899, 5, 1000}, "best": {1, 1, 2, 9, 3}}}
	if next, err := run.Run(time.Second, f); err != nil || next != time.Second+100*time.Microsecond {
		t.Fatalf("next at %v, %v", next, err)
	}
	if !slices.Equal(f.written, []string{"best[2..3]=9"}) {
		t.Errorf("wrote %v", f.written)
	}
}

// A leaf sends a probe along each path to each other leaf.
func TestPathProbes(t *testing.T) {
	n := node(manifest.Task{Kind: manifest.PathProbe, Header: "p", Period: manifest.Duration(time.Millisecond)})
	n.Manifest.Headers = []manifest.Header{{Name: "p", EtherType: 0x1234, Fields: []manifest.HeaderField{{Width: 8, Carries: manifest.FromLeaf}, {Width: 8, Carries: manifest.ToLeaf}, {Width: 8, Carries: manifest.AlongPath}}}}
	n.Groups = []fabric.Group{{ID: 2, Hops: make([]fabric.Hop, 2)}, {ID: 3, Hops: make([]fabric.Hop, 1)}}
	run := one(t, newPathProbeTask, n, Options{})
	f := &fakeFabric{}
	if next, err := run.Run(0, f); err != nil || next != time.Millisecond {
		t.Fatalf("next at %v, %v", next, err)
	}
	var got []string
	for _, frame := range f.sent {
		got = append(got, frame[24:])
	}
	if want := []string{"1234010200", "1234010201", "1234010300"}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	n.Groups[0].ID = 256
	if _, err := newPathProbeTask(&site{n, nil, &n.Manifest.Tasks[0], Options{}}); err == nil {
		t.Error("leaf 256 in 8 bits")
	}
}

// Probes have numbers that count up, and DHLB's period follows the mean load of the links
// to other switches: here 0.5 and 1 of 1 Gbit/s.
func TestLoadProbes(t *testing.T) {
	task := manifest.Task{
		Kind: manifest.ProbeFlood, Header: "p", Theta: manifest.Duration(200 * time.Microsecond), Gap: manifest.Duration(100 * time.Microsecond), Most: manifest.Duration(time.Millisecond),
		Registers: map[manifest.Part]string{manifest.PartLoad: "sent"},
	}
	n := node(task)
	sent, at := numbers("sent", 4, manifest.ByPort), numbers("at", 4, manifest.ByPort)
	sent.Kind, sent.Unit, sent.Window = manifest.Rate, manifest.Bytes, manifest.Duration(100*time.Microsecond)
	at.Kind, at.Event, at.Of, at.Unit = manifest.Moment, manifest.Updated, "sent", manifest.Microseconds
	n.Manifest.Registers = []manifest.Register{sent, at}
	n.Manifest.Headers = []manifest.Header{{Name: "p", EtherType: 0x1234, Fields: []manifest.HeaderField{{Width: 8, Carries: manifest.Origin}, {Width: 8, Carries: manifest.Sequence}}}}
	run, err := newProbeTask([]*plan.Node{n})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeFabric{clock: time.Millisecond, registers: map[string][]uint64{"sent": {0, 99999, 6250, 99999}, "at": {0, 1000, 1000, 1000}}}
	p := run.(*probeTask)
	if got, err := p.loads.mean(f); err != nil || got != 0.75 {
		t.Errorf("the mean load is %v, %v", got, err)
	}
	want := fitting.DHLB{RTT: 100 * time.Microsecond, Theta: 200 * time.Microsecond, Max: time.Millisecond}.Probe(0.75)
	for range 2 {
		if next, err := run.Run(time.Second, f); err != nil || next != time.Second+want {
			t.Errorf("next at %v, %v; want %v later", next, err, want)
		}
	}
	if len(f.sent) != 2 || f.sent[0][24:] != "12340100" || f.sent[1][24:] != "12340101" {
		t.Errorf("sent %v", f.sent)
	}
	n.Ports[2].Down = true
	if m, err := newLoadMeter([]*plan.Node{n}); err != nil || len(m.switches[0].ports) != 1 {
		t.Errorf("a port that is down is metered: %v", err)
	}
	share := numbers("sent", 4, manifest.ByPort)
	share.Kind, share.Scale = manifest.Utilisation, 256
	n.Manifest.Registers = []manifest.Register{share}
	m, err := newLoadMeter([]*plan.Node{n})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.mean(&fakeFabric{registers: map[string][]uint64{"sent": {0, 9, 64, 9}}}); err != nil || got != 0.25 {
		t.Errorf("64 of 256: %v, %v", got, err)
	}
	share.Scale = 0
	n.Manifest.Registers = []manifest.Register{share}
	if m, err = newLoadMeter([]*plan.Node{n}); err != nil {
		t.Fatal(err)
	}
	if got, err := m.mean(&fakeFabric{registers: map[string][]uint64{"sent": {0, 9, 1, 9}}}); err != nil || got != 1 {
		t.Errorf("1 without a scale: %v, %v", got, err)
	}
	for _, list := range [][]manifest.Register{nil, {sent}, {func() manifest.Register { r := sent; r.Window = 0; return r }(), at}} {
		n.Manifest.Registers = list
		if _, err := newLoadMeter([]*plan.Node{n}); err == nil || !strings.Contains(err.Error(), "measures no load") {
			t.Errorf("%d registers: %v", len(list), err)
		}
	}
}

// A failingFabric has one switch that cannot be reached.
type failingFabric struct {
	fakeFabric
	down string
}

func (f *failingFabric) ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error) {
	if sw == f.down {
		return nil, errors.New("no answer")
	}
	return f.fakeFabric.ReadRegister(sw, register, from, to, dst)
}

func (f *failingFabric) PacketOut(sw string, frame []byte) error {
	if sw == f.down {
		return errors.New("no answer")
	}
	return f.fakeFabric.PacketOut(sw, frame)
}

// If a switch cannot be reached, the others still send probes, with the period for their
// load. The error names the switch.
func TestProbesWithoutOneSwitch(t *testing.T) {
	var nodes []*plan.Node
	for _, name := range []string{"l1", "l2", "l3"} {
		n := node(manifest.Task{
			Kind: manifest.ProbeFlood, Header: "p", Theta: manifest.Duration(200 * time.Microsecond), Gap: manifest.Duration(100 * time.Microsecond), Most: manifest.Duration(time.Millisecond),
			Registers: map[manifest.Part]string{manifest.PartLoad: "sent"},
		})
		n.Name = name
		share := numbers("sent", 4, manifest.ByPort)
		share.Kind, share.Scale = manifest.Utilisation, 100
		n.Manifest.Registers = []manifest.Register{share}
		n.Manifest.Headers = []manifest.Header{{Name: "p", EtherType: 0x1234, Fields: []manifest.HeaderField{{Width: 8, Carries: manifest.Origin}, {Width: 8, Carries: manifest.Sequence}}}}
		nodes = append(nodes, n)
	}
	run, err := newProbeTask(nodes)
	if err != nil {
		t.Fatal(err)
	}
	f := &failingFabric{fakeFabric{registers: map[string][]uint64{"sent": {0, 0, 60, 80}}}, "l2"}
	want := fitting.DHLB{RTT: 100 * time.Microsecond, Theta: 200 * time.Microsecond, Max: time.Millisecond}.Probe(0.7)
	next, err := run.Run(time.Second, f)
	if next != time.Second+want || err == nil || !strings.Contains(err.Error(), "l2: no answer") || !strings.Contains(err.Error(), "reading the load of l2: no answer") {
		t.Errorf("next at %v, want %v later; %v", next, want, err)
	}
	if len(f.sent) != 2 {
		t.Errorf("%d switches sent a probe, want 2", len(f.sent))
	}
}

// PDLB's flowcell size is the best of Eq. 10 for the delays that are known and not
// stale; congested is a path with more than twice the least delay, or the mean.
func TestGranularity(t *testing.T) {
	model := fitting.PDLB{C: 83333, Buffer: 64, Size: fitting.PDLBFlow, Flows: 1}
	for _, test := range []struct {
		average bool
		rtt, at []uint64
		m, bad  int
		good, x float64
		unknown bool
		stale   time.Duration
	}{
		{false, []uint64{100, 300}, []uint64{950, 990}, 2, 1, 100e-6, 3, false, 0},
		{false, []uint64{100, 200}, []uint64{950, 990}, 2, 0, 100e-6, 2, false, 0},
		{true, []uint64{100, 300, 900}, []uint64{950, 990, 990}, 3, 1, 100e-6, 9, false, 0}, // twice the mean is 866
		{true, []uint64{100, 300}, []uint64{950, 990}, 2, 0, 100e-6, 3, false, 0},
		{false, []uint64{100, 300}, []uint64{950, 0}, 1, 0, 100e-6, 1, false, 0},
		{false, []uint64{100, 300}, []uint64{899, 900}, 1, 0, 300e-6, 1, false, 100 * time.Microsecond},
		{false, []uint64{0, 4}, []uint64{950, 950}, 2, 1, 1e-6, 4, false, 0},
		{false, []uint64{100, 300}, []uint64{0, 0}, 0, 0, 0, 0, true, 0},
	} {
		g := &granularityTask{average: test.average, stale: test.stale}
		got, ok, err := g.solve(leafPaths{model: model}, test.rtt, test.at, time.Millisecond)
		if test.unknown {
			if ok || err != nil {
				t.Errorf("no delay is known: %d, %v", got, err)
			}
			continue
		}
		p := model
		p.M, p.Bad, p.Good, p.X = test.m, test.bad, test.good, test.x
		want, _, _ := p.Granularity()
		if err != nil || !ok || got != want {
			t.Errorf("%v at %v, average %v: %d, %v, %v; want %d", test.rtt, test.at, test.average, got, ok, err, want)
		}
	}
}

// QDAPS's threshold is the least of the links to other switches. It is written once, and
// again if the switch has lost it.
func TestThreshold(t *testing.T) {
	top, err := fabric.Load("t", []byte(`
switches: {l1: {role: leaf}, l2: {role: leaf}, s1: {role: spine}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.1/24}}
links:
  - {ends: [h1, l1], rate: 1G, delay: 10us}
  - {ends: [h2, l2], rate: 1G, delay: 10us}
  - {ends: [l1, s1], rate: 1G, delay: 20us}
  - {ends: [l2, s1], rate: 1G, delay: 20us}
`))
	if err != nil {
		t.Fatal(err)
	}
	n := node(manifest.Task{Kind: manifest.QueueLimit, Registers: map[manifest.Part]string{manifest.PartThreshold: "s"}}, "s")
	n.Ports[2].Rate, n.Ports[1].Queue = 5e8, 100
	if got := largestRTT(top, n); got != 100*time.Microsecond { // 20, 20 and 10 us each way
		t.Errorf("the largest RTT is %v", got)
	}
	made, err := newThresholdTask(&site{n, top, &n.Manifest.Tasks[0], Options{}.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	least := uint64(1 << 62)
	for _, p := range []struct{ rate, queue float64 }{{1e9, 100}, {5e8, 64}} {
		s := fitting.QDAPS{C: p.rate / 8 / 1500, RTT: 100e-6, K: p.queue / 4, Y: 1.6e6 / 1500, Cap: p.queue}.Closed()
		least = min(least, uint64(s))
	}
	f := &fakeFabric{registers: map[string][]uint64{"s": {0}}}
	for range 3 {
		if next, err := made.Run(0, f); err != nil || next != time.Second {
			t.Errorf("next at %v, %v", next, err)
		}
	}
	if f.registers["s"][0] != least || len(f.written) != 1 {
		t.Errorf("S is %v after %d writes, want %d", f.registers["s"], len(f.written), least)
	}
	f.registers["s"][0] = 0
	if made.Run(0, f); f.registers["s"][0] != least {
		t.Error("a threshold that was lost is not written again")
	}
	n.Ports = n.Ports[:1]
	none, err := newThresholdTask(&site{n, top, &n.Manifest.Tasks[0], Options{}.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	if next, err := none.Run(0, f); next != Never || err != nil {
		t.Errorf("without links to switches: %v, %v", next, err)
	}
}

// Negative options are refused; zero stands for the defaults.
func TestOptions(t *testing.T) {
	for _, o := range []Options{{MTU: -1}, {FlowSize: -1}, {Flows: -1}, {Queue: -1}, {Recheck: -1}} {
		if o.validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
	if err := (Options{}).validate(); err != nil {
		t.Error(err)
	}
	if d := (Options{}).withDefaults(); d.MTU != 1500 || d.FlowSize != 1.6e6 || d.Flows != 1 || d.Queue != 64 || d.Recheck != time.Second {
		t.Errorf("%+v", d)
	}
	if d := (Options{MTU: 9000, Queue: 7}).withDefaults(); d.MTU != 9000 || d.Queue != 7 {
		t.Errorf("%+v", d)
	}
	if Task := (Alert{Switch: "l1", Text: "x"}); Task.String() != "l1: x" {
		t.Error(Task)
	}
}

// A queue has the capacity in the topology, or the default.
func TestQueueOf(t *testing.T) {
	n := &plan.Node{Ports: []fabric.Port{{Number: 1, Queue: 7}, {Number: 2}}}
	for port, want := range map[int]int{1: 7, 2: 64, 3: 64} {
		if got := queueOf(n, port, Options{Queue: 64}); got != want {
			t.Errorf("port %d: %d, want %d", port, got, want)
		}
	}
}

// Each interval with recirculations begins with counts of 0 in all cells, the first ones too.
func TestFailureCountsAnew(t *testing.T) {
	task := manifest.Task{Kind: manifest.FailureWatch, Period: manifest.Duration(time.Millisecond), Registers: map[manifest.Part]string{
		manifest.PartRounds: "rounds", manifest.PartPackets: "packets", manifest.PartPortRounds: "per-port", manifest.PartFaulty: "faulty",
	}}
	run := one(t, newFailureTask, node(task, "rounds", "packets", "per-port", "faulty"), Options{})
	f := &fakeFabric{registers: map[string][]uint64{
		"rounds": {9, 0, 0, 0}, "packets": {5, 6, 7, 8}, "per-port": {1, 2, 3, 4}, "faulty": {0, 0, 0, 0},
	}}
	if next, err := run.Run(time.Second, f); err != nil || next != time.Second+time.Millisecond {
		t.Errorf("next at %v, %v", next, err)
	}
	for name, cells := range f.registers {
		if !slices.Equal(cells, make([]uint64, 4)) {
			t.Errorf("%s has %d", name, cells)
		}
	}
}
