package task

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A fakeFabric has the registers of one switch.
type fakeFabric struct {
	registers map[string][]uint64
	clock     time.Duration
	empty     error // of QueuesEmpty
	busy      bool
	sent      []string
	written   []string
}

func (f *fakeFabric) ReadRegister(_, register string, from, to int, dst []uint64) ([]uint64, error) {
	cells := f.registers[register]
	if cells == nil || to > len(cells) {
		return nil, fmt.Errorf("no register %s with %d cells", register, to)
	}
	return append(dst, cells[from:to]...), nil
}

func (f *fakeFabric) WriteRegister(_, register string, from, to int, value uint64) error {
	for i := from; i < to; i++ {
		f.registers[register][i] = value
	}
	f.written = append(f.written, fmt.Sprintf("%s[%d..%d]=%d", register, from, to, value))
	return nil
}

func (f *fakeFabric) Clock(string) (time.Duration, error) { return f.clock, nil }
func (f *fakeFabric) QueuesEmpty(string) (bool, error)    { return !f.busy, f.empty }
func (f *fakeFabric) PacketOut(_ string, frame []byte) error {
	f.sent = append(f.sent, hex.EncodeToString(frame))
	return nil
}

func (f *fakeFabric) PacketAt(sw string, port int, frame []byte) error {
	f.sent = append(f.sent, fmt.Sprintf("%s:%d %x", sw, port, frame))
	return nil
}

// array returns the array of a register with plain numbers.
func array(t *testing.T, r manifest.Register) *registers.Array {
	t.Helper()
	m := &manifest.Manifest{Registers: []manifest.Register{r}}
	list := registers.Of(m, nil)
	if len(list) != 1 {
		t.Fatalf("%d arrays", len(list))
	}
	return list[0]
}

// The fields of a frame's header are adjacent, with the given values or the manifest's.
// Numbers that do not fit are refused; sequence numbers wrap.
func TestFrame(t *testing.T) {
	header := &manifest.Header{Name: "probe", EtherType: 0x9999, Fields: []manifest.HeaderField{
		{Name: "kind", Width: 4, Value: 5},
		{Name: "from", Width: 12, Carries: manifest.FromLeaf},
		{Name: "seq", Width: 8, Carries: manifest.Sequence},
	}}
	src := fabric.MAC{2, 0, 0, 0, 0, 7}
	m := frameMaker{header: header, src: src}
	const head = "ffffffffffff" + "020000000007" + "9999"
	for _, test := range []struct {
		from, seq uint64
		want      string
	}{
		{1, 0, head + "5001" + "00"},
		{0xABC, 0xFF, head + "5abc" + "ff"},
		{0xFFF, 0x100, head + "5fff" + "00"}, // the sequence number wraps
		{0xFFF, 0x1FE, head + "5fff" + "fe"},
		{0x1000, 0, "error: 4096 does not fit the 12 bits of probe.from"},
	} {
		frame, err := m.frame(map[manifest.FieldRole]uint64{manifest.FromLeaf: test.from, manifest.Sequence: test.seq})
		got := hex.EncodeToString(frame)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != test.want {
			t.Errorf("from %d, number %d: %s, want %s", test.from, test.seq, got, test.want)
		}
	}
	// A field whose value is not given has the manifest's.
	frame, err := m.frame(nil)
	if got := hex.EncodeToString(frame); err != nil || got != head+"5000"+"00" {
		t.Errorf("without values: %s, %v", got, err)
	}
	f := &fakeFabric{}
	task := &sendTask{identity: identity{manifest.SendFrame, "l1"}, Frame: plan.Frame{Every: 3 * time.Millisecond, Bytes: frame}}
	if next, err := task.Run(time.Second, f); err != nil || next != 1003*time.Millisecond || !slices.Equal(f.sent, []string{head + "5000" + "00"}) {
		t.Errorf("sent %v, next at %v, %v", f.sent, next, err)
	}
}

// RLB's ingress queues are set to 0 only while the switch holds no packet, and only
// those that are not 0.
func TestRezero(t *testing.T) {
	for _, test := range []struct {
		name    string
		busy    bool
		empty   error
		runs    int
		change  bool // packets arrive between the runs
		written []string
	}{
		{"an empty switch", false, nil, 1, false, []string{"q[1..2]=0", "q[3..4]=0"}},
		{"packets wait", true, nil, 1, false, nil},
		{"an unknown state, once", false, errors.ErrUnsupported, 1, false, nil},
		{"an unknown state, twice the same", false, errors.ErrUnsupported, 2, false, []string{"q[1..2]=0", "q[3..4]=0"}},
		{"an unknown state, and packets", false, errors.ErrUnsupported, 2, true, nil},
	} {
		f := &fakeFabric{registers: map[string][]uint64{"q": {0, 5, 0, 2}}, busy: test.busy, empty: test.empty}
		task := &rezeroTask{identity: identity{manifest.Rezero, "l1"}, period: time.Second, cells: 4, queue: array(t, manifest.Register{Name: "q", Size: 4, Width: 32, Index: manifest.ByPort})}
		for range test.runs {
			next, err := task.Run(time.Minute, f)
			if err != nil || next != time.Minute+time.Second {
				t.Errorf("%s: next %v, %v", test.name, next, err)
			}
			if test.change {
				f.registers["q"][1]++
			}
		}
		if !slices.Equal(f.written, test.written) {
			t.Errorf("%s: wrote %v, want %v", test.name, f.written, test.written)
		}
	}
}

// If the switch cannot report its queues, an interval that has begun since the last run is a
// packet in the switch, also if the queues are the same. A register for recirculating bytes is
// set to 0 with the queues.
func TestRezeroIntervals(t *testing.T) {
	registers := func() map[string][]uint64 {
		return map[string][]uint64{"q": {0, 5, 0, 2}, "began": {0, 900, 0, 800}, "waiting": {7, 7}}
	}
	byPort := func(name string) manifest.Register {
		return manifest.Register{Name: name, Size: 4, Width: 32, Index: manifest.ByPort}
	}
	for _, test := range []struct {
		name    string
		begins  int // intervals begin after these runs
		empty   error
		runs    int
		written []string
	}{
		{"one run", 0, errors.ErrUnsupported, 1, nil},
		{"two runs", 0, errors.ErrUnsupported, 2, []string{"q[1..2]=0", "q[3..4]=0", "waiting[0..1]=0"}},
		{"an interval after the first run", 1, errors.ErrUnsupported, 2, nil},
		{"an interval after the first run of three", 1, errors.ErrUnsupported, 3, []string{"q[1..2]=0", "q[3..4]=0", "waiting[0..1]=0"}},
		{"an interval after each of two runs", 2, errors.ErrUnsupported, 3, nil},
		{"an empty switch", 1, nil, 1, []string{"q[1..2]=0", "q[3..4]=0", "waiting[0..1]=0"}},
	} {
		f := &fakeFabric{registers: registers(), empty: test.empty}
		task := &rezeroTask{
			identity: identity{manifest.Rezero, "l1"}, period: time.Second, cells: 4,
			queue: array(t, byPort("q")), interval: array(t, byPort("began")), waiting: array(t, byPort("waiting")),
		}
		for n := range test.runs {
			if _, err := task.Run(time.Minute, f); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			if n < test.begins {
				f.registers["began"][3]++
			}
		}
		if !slices.Equal(f.written, test.written) {
			t.Errorf("%s: wrote %v, want %v", test.name, f.written, test.written)
		}
	}
	for _, missing := range []string{"q", "began"} {
		f := &fakeFabric{registers: registers(), empty: errors.ErrUnsupported}
		delete(f.registers, missing)
		task := &rezeroTask{period: time.Second, cells: 4, queue: array(t, byPort("q")), interval: array(t, byPort("began"))}
		if next, err := task.Run(time.Minute, f); err == nil || next != time.Minute+time.Second || f.written != nil {
			t.Errorf("without %s: next %v, %v, wrote %v", missing, next, err, f.written)
		}
	}
}

// Flows wait until their last packet has left, and expire two RTTs later.
func TestAgeing(t *testing.T) {
	const us = time.Microsecond
	times := manifest.Register{Name: "due", Size: 6, Width: 32, Index: manifest.ByFlow}
	times.Kind, times.Unit = manifest.Deadline, manifest.Microseconds
	slots := manifest.Register{Name: "slot", Size: 6, Width: 8, Index: manifest.ByFlow}
	slots.Kind, slots.Valid = manifest.Slot, 7
	f := &fakeFabric{clock: 1000 * us, registers: map[string][]uint64{
		"due":  {1100, 1001, 1000, 901, 900, 2000},
		"slot": {0x81, 0x80, 0x82, 0x80, 0x83, 0x02}, // the last one is not valid
	}}
	var got []FlowAges
	task := &ageingTask{identity: identity{manifest.Ageing, "l1"}, period: time.Second, idle: 100 * us, report: func(a FlowAges) { got = append(got, a) }, deadline: array(t, times), slot: array(t, slots)}
	if next, err := task.Run(time.Minute, f); err != nil || next != time.Minute+time.Second {
		t.Fatalf("next %v, %v", next, err)
	}
	want := FlowAges{Time: time.Minute, Switch: "l1", Slots: 5, Waiting: 2, Expired: 1, Longest: 100 * us}
	if len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Without a bit for valid slots, a flow exists if it has a deadline. The bit can be at any
// place above 0.
func TestAgeingOfSlots(t *testing.T) {
	times := manifest.Register{Name: "due", Size: 3, Width: 32, Index: manifest.ByFlow}
	times.Kind, times.Unit = manifest.Deadline, manifest.Microseconds
	for _, test := range []struct {
		valid int
		held  []uint64
		want  int
	}{{0, []uint64{0, 0, 0}, 2}, {0, []uint64{1, 1, 1}, 2}, {1, []uint64{3, 1, 2}, 2}, {1, []uint64{1, 1, 1}, 0}, {7, []uint64{0x80, 0x81, 0x7f}, 2}} {
		slots := manifest.Register{Name: "slot", Size: 3, Width: 8, Index: manifest.ByFlow}
		slots.Kind, slots.Valid = manifest.Slot, test.valid
		var got FlowAges
		task := &ageingTask{report: func(a FlowAges) { got = a }, deadline: array(t, times), slot: array(t, slots)}
		f := &fakeFabric{clock: time.Millisecond, registers: map[string][]uint64{"due": {0, 900, 1100}, "slot": test.held}}
		if _, err := task.Run(0, f); err != nil || got.Slots != test.want {
			t.Errorf("valid bit %d of %x: %d flows, %v; want %d", test.valid, test.held, got.Slots, err, test.want)
		}
	}
}

// A schedule runs tasks when they are due, the earliest first, and not before.
func TestKindsAndWaiting(t *testing.T) {
	for kind, want := range map[manifest.TaskKind]bool{
		manifest.Rezero: true, manifest.RecircLimit: true, manifest.FailureWatch: true, manifest.ProbeFlood: false, manifest.QueueLimit: false, "": false,
	} {
		if got := CanWait(string(kind)); got != want {
			t.Errorf("%s can wait: %v, want %v", kind, got, want)
		}
	}
	nodes := []*plan.Node{
		{Name: "a", Manifest: &manifest.Manifest{Scheme: "x", Tasks: []manifest.Task{{Kind: manifest.Rezero}, {Kind: manifest.Ageing}}}},
		{Name: "b", Manifest: &manifest.Manifest{Scheme: "x", Tasks: []manifest.Task{{Kind: manifest.Ageing}, {Kind: manifest.QueueLimit}}}},
	}
	if got := kinds(nodes); !slices.Equal(got, []manifest.TaskKind{manifest.Rezero, manifest.Ageing, manifest.QueueLimit}) {
		t.Errorf("kinds %v", got)
	}
	nodes = []*plan.Node{{Name: "a", Manifest: &manifest.Manifest{Scheme: "x", Tasks: []manifest.Task{{Kind: "unheard-of"}}}}}
	if _, err := New(&fabric.Topology{}, nodes, Options{}); err == nil || !strings.Contains(err.Error(), "unheard-of") {
		t.Errorf("an unknown task: %v", err)
	}
}

// TestSendTask: a frame has the clock and its number in fields of any width at the moment
// of sending, and arrives at its port. The frame of the plan stays as it is.
func TestSendTask(t *testing.T) {
	port, f := 3, &fakeFabric{clock: 0x123456 * time.Microsecond}
	send := &sendTask{identity: identity{sw: "l1"}, Frame: plan.Frame{
		Every: time.Millisecond, Bytes: []byte{0xff, 0xff, 0xff, 0xf0, 0x0f}, Port: &port,
		Stamps: []plan.Stamp{{Fact: manifest.SendTime, Bit: 4, Width: 16}, {Fact: manifest.SendCount, Bit: 28, Width: 2}},
	}}
	for range 6 {
		if next, err := send.Run(0, f); err != nil || next != time.Millisecond {
			t.Fatal(next, err)
		}
	}
	// f, the lowest 16 bits 3456, ff, the number modulo 4 with two bits 0 after it, 0f.
	want := []string{"l1:3 f3456ff00f", "l1:3 f3456ff40f", "l1:3 f3456ff80f", "l1:3 f3456ffc0f", "l1:3 f3456ff00f", "l1:3 f3456ff40f"}
	if !slices.Equal(f.sent, want) {
		t.Errorf("%q\nwant %q", f.sent, want)
	}
}

// TestSendReturns: probes of which none comes back are reported once, after 20 of them or
// a second. A register that changes in time is no fault.
func TestSendReturns(t *testing.T) {
	for _, c := range []struct {
		every   time.Duration
		returns int // the number of the probe after which one has come back; 0: never
		want    string
	}{
		{time.Millisecond, 0, "l1: none of 20 probes from port 3 has come back within 20ms: register seen has not changed"},
		{100 * time.Millisecond, 0, "l1: none of 10 probes from port 3 has come back within 1s: register seen has not changed"},
		{2 * time.Second, 0, "l1: none of 1 probes from port 3 has come back within 2s: register seen has not changed"},
		{100 * time.Microsecond, 0, "l1: none of 200 probes from port 3 has come back within 20ms: register seen has not changed"},
		{time.Millisecond, 20, ""},
		{time.Millisecond, 1, ""},
	} {
		port, f := 3, &fakeFabric{registers: map[string][]uint64{"seen": {0, 7}}}
		var alerts []string
		send := &sendTask{
			identity: identity{sw: "l1"}, Frame: plan.Frame{Every: c.every, Bytes: []byte{1}, Port: &port, Returns: "seen", Cells: 2},
			alert: func(a Alert) { alerts = append(alerts, a.String()) },
		}
		now := time.Minute
		for k := range 500 {
			next, err := send.Run(now, f)
			if err != nil {
				t.Fatal(err)
			}
			if now = next; k+1 == c.returns {
				f.registers["seen"][1] = 8
			}
		}
		if got := strings.Join(alerts, "\n"); got != c.want {
			t.Errorf("every %v, return after %d: %q, want %q", c.every, c.returns, got, c.want)
		}
	}
}

// A brokenFabric fails at calls of one kind.
type brokenFabric struct {
	*fakeFabric
	call string
}

var errBroken = errors.New("broken")

func (f brokenFabric) fails(call string) error {
	if f.call == call {
		return errBroken
	}
	return nil
}

func (f brokenFabric) Clock(string) (time.Duration, error) { return f.clock, f.fails("clock") }

func (f brokenFabric) PacketOut(string, []byte) error { return f.fails("send") }

func (f brokenFabric) PacketAt(string, int, []byte) error { return f.fails("send") }

// Tasks that send are due again after their period if the switch fails.
func TestSendingFails(t *testing.T) {
	port := 3
	stamped := plan.Frame{Every: time.Millisecond, Bytes: make([]byte, 8), Stamps: []plan.Stamp{{Fact: manifest.SendTime, Bit: 0, Width: 8}}}
	atPort := stamped
	atPort.Port = &port
	for name, task := range map[string]Task{
		"frames of the CPU": &sendTask{identity: identity{sw: "l1"}, Frame: stamped},
		"frames of a port":  &sendTask{identity: identity{sw: "l1"}, Frame: atPort},
		"probes of paths":   &pathProbeTask{identity: identity{sw: "l1"}, period: time.Millisecond, frames: [][]byte{{1}}},
	} {
		for _, call := range []string{"", "clock", "send"} {
			if call == "clock" && name == "probes of paths" {
				continue
			}
			next, err := task.Run(time.Second, brokenFabric{&fakeFabric{}, call})
			if next != time.Second+time.Millisecond || errors.Is(err, errBroken) != (call != "") {
				t.Errorf("%s, %q fails: next at %v, %v", name, call, next, err)
			}
		}
	}
}

// The tasks of a plan include one for each frame, with the packet size and queues of the plan.
func TestForPlan(t *testing.T) {
	top, err := fabric.LeafSpine{Name: "x", Leaves: 2, Spines: 1, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Topology: top, Routes: top.Routes(), Switches: []*plan.Switch{
		{Name: "l1", Pipeline: &plan.Pipeline{}, Frames: []plan.Frame{{Every: 5}, {Every: 7}}}, {Name: "l2", Pipeline: &plan.Pipeline{}, Frames: []plan.Frame{{Every: 9}}},
	}}
	list, err := ForPlan(p, Options{})
	var got []string
	for _, task := range list {
		got = append(got, fmt.Sprint(task.Name(), " ", task.Switch(), " ", task.(*sendTask).Every))
	}
	if want := []string{"send l1 5ns", "send l1 7ns", "send l2 9ns"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
