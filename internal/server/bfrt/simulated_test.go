package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// A virtualTime is a simulator with a clock for tests to move. It records the calls and
// reports of the server.
type virtualTime struct {
	mu       sync.Mutex
	now      time.Duration
	fixed    error
	counts   []bmv2.PortCounts
	running  *dataplane.Switch
	moments  []func()
	due      func(time.Duration) ([]dataplane.Generated, time.Duration, bool)
	calls    []p4rt.SimCall
	reasons  []error // of calls, nil for accepted ones
	refused  []error // messages on streams
	sessions []bool
}

func (v *virtualTime) do(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}

func (v *virtualTime) Now() (now time.Duration) {
	v.do(func() { now = v.now })
	return now
}

func (v *virtualTime) PortCounts() (list []bmv2.PortCounts) {
	v.do(func() { list = slices.Clone(v.counts) })
	return list
}

func (v *virtualTime) Fixed() (err error) {
	v.do(func() { err = v.fixed })
	return err
}

func (v *virtualTime) Turn(_ context.Context, c p4rt.SimCall) (func(error), error) {
	v.do(func() { v.calls = append(v.calls, c) })
	return func(why error) { v.do(func() { v.reasons = append(v.reasons, why) }) }, nil
}

func (v *virtualTime) Generator(due func(time.Duration) ([]dataplane.Generated, time.Duration, bool)) {
	v.due = due
}

func (v *virtualTime) Run(sw *dataplane.Switch) { v.running = sw }
func (v *virtualTime) AtMoments(f func())       { v.moments = append(v.moments, f) }
func (v *virtualTime) PacketOut([]byte)         {}
func (v *virtualTime) Session(_ string, open bool) {
	v.do(func() { v.sessions = append(v.sessions, open) })
}
func (v *virtualTime) Refused(_ string, err error) {
	v.do(func() { v.refused = append(v.refused, err) })
}

// stop stops the clock at a time, at which the server sends notifications.
func (v *virtualTime) stop(at time.Duration) {
	v.do(func() { v.now = at })
	for _, f := range v.moments {
		f()
	}
}

func newVirtualRig(t *testing.T, p *testProgram) (*rig, *virtualTime) {
	v := &virtualTime{}
	return newRigIn(t, p, gate.Limits{}, v), v
}

// A simulated chip has one pipe, which the simulator runs.
func TestSimulatedPipe(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	if len(r.s.pipes) != 1 || v.running != r.s.pipes[0] {
		t.Errorf("the simulator runs %p, of the pipes %v", v.running, r.s.pipes)
	}
	d := r.get(everywhere, "device_configuration", nil)
	if got := r.values("device_configuration", d, "num_pipes"); !slices.Equal(got, []uint64{1}) {
		t.Errorf("%v pipes", got)
	}
	if loops := r.field("device_configuration", d, "recirc_port_list").GetIntArrVal().GetVal(); len(loops) == 0 || slices.Max(loops) >= 128 {
		t.Errorf("ports %d recirculate, want only ports of pipe 0", loops)
	}
	if got := r.field("device_configuration", d, "sku").GetStrVal(); got != "UNKNOWN" {
		t.Errorf("the chip is %q", got)
	}
	rate := func(port uint64) *wire.Update {
		return update(mod, r.entry("tf1.tm.port.sched_shaping", r.key("tf1.tm.port.sched_shaping", port), r.data("tf1.tm.port.sched_shaping", "", "max_rate", 5)))
	}
	r.fine(rate(71))
	r.refused("a port beyond the pipe", rate(72), codes.InvalidArgument, "there is no port 72")
	r.refused("a port of another pipe", rate(128), codes.InvalidArgument, "there is no port 128")
	entry := r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1))
	if got := details(t, r.write(pipe(1), update(ins, entry)))[0].GetMessage(); !strings.Contains(got, "there is no pipe 1") {
		t.Errorf("the second pipe: %s", got)
	}
	r.must(r.write(pipe(0), update(ins, entry)))
	list, err := v.running.Tables().Entries("In.dmac")
	if err != nil || len(list) != 1 {
		t.Errorf("the simulated switch has the entries %v: %v", list, err)
	}
	if _, err := New(r.dev, Options{Arch: bmv2.TNA, Pipes: 2}); err == nil || !strings.Contains(err.Error(), "2 pipes: want 1 to 1") {
		t.Errorf("two pipes: %v", err)
	}
}

// In virtual time, clients get notifications when the clock stops, in the order ports, idle
// entries, digests. No timer of the server's own sends them.
func TestSimulatedNotifications(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	r.must(r.write(everywhere,
		r.attribute("$PORT", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: true}}}),
		r.attribute("In.dmac", &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
			Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, TtlQueryInterval: 100, MinTtl: 100, MaxTtl: 10_000,
		}}}),
		update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2, "$ENTRY_TTL", 1000)))))
	p := r.s.programs[0]
	learn := func(n byte) {
		for list, l := range p.learners {
			p.learn(0, dataplane.Digest{List: list, Data: []byte{0, 0, 0, 0, 0, n, 0, 5}})
			l.mu.Lock()
			if l.timer != nil {
				t.Error("a timer of real time reports a digest")
			}
			l.mu.Unlock()
		}
	}
	learned := func(want ...uint64) {
		t.Helper()
		var got []uint64
		m := r.hear()
		for _, x := range m.GetDigest().GetData() {
			got = append(got, uintOf(x.GetFields()[0].GetStream()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("heard %v, want a digest of %v", m, want)
		}
	}
	learn(1)
	learn(2)
	r.dev.SetPortUp(2, false)
	v.stop(900 * time.Millisecond)
	if m := r.hear().GetPortStatusChangeNotification(); m.GetPortUp() || uintOf(m.GetTableEntry().GetKey().GetFields()[0].GetExact().GetValue()) != 2 {
		t.Errorf("first %v, want port 2 down", m)
	}
	learned(1, 2) // the entry is not idle yet
	learn(3)
	v.stop(1200 * time.Millisecond)
	if m := r.hear().GetIdleTimeoutNotification(); m.GetType() != wire.IdleTimeoutNotification_ENTRY_IDLE || m.GetTableEntry() == nil {
		t.Errorf("first %v, want an idle entry", m)
	}
	learned(3)
	v.stop(5 * time.Second) // an idle entry is reported once
	learn(4)
	v.stop(5 * time.Second)
	learned(4)
}

// The simulator asks the packet generator for the packets that are due in virtual time.
func TestSimulatedGenerator(t *testing.T) {
	r, v := newVirtualRig(t, generating)
	const bytes = "\xa0\xa1"
	r.must(r.write(everywhere, update(mod, r.entry("pktgen.pkt_buffer", r.key("pktgen.pkt_buffer", 0, 2), r.data("pktgen.pkt_buffer", "", "buffer", []uint32{0xa0, 0xa1})))))
	r.sends(68)
	if list, _, more := v.due(0); list != nil || more {
		t.Errorf("without application: %v, more: %v", list, more)
	}
	r.must(r.app(everywhere, 3, "trigger_timer_one_shot", "timer_nanosec", 5000, "pkt_len", 2, "pkt_buffer_offset", 0,
		"batch_count_cfg", 0, "packets_per_batch_cfg", 1, "app_enable", true))
	if list, next, more := v.due(1000); list != nil || next != 6000 || !more {
		t.Errorf("before the timer: %v, next at %d, more: %v; want none, and the first at 6000", list, next, more)
	}
	list, next, more := v.due(6000)
	if len(list) != 1 || string(list[0].Data) != bytes || list[0].Port != 68 || list[0].App != 3 || next != 6000+generatorGap || !more {
		t.Errorf("at the timer: %v, next at %d, more: %v", list, next, more)
	}
	if list, _, more := v.due(6000 + generatorGap); len(list) != 1 || list[0].Number != 1 || more {
		t.Errorf("after the timer: %v, more: %v", list, more)
	}
	want := "trigger_port_down is not served in virtual time"
	err := r.app(everywhere, 2, "trigger_port_down", "pkt_len", 2, "pkt_buffer_offset", 0, "app_enable", true)
	if e := details(t, err)[0]; codes.Code(e.GetCode()) != unimplemented || !strings.Contains(e.GetMessage(), want) {
		t.Errorf("%v, want %s", e, want)
	}
}

// A simulator may forbid changes of ports, rates and queues. The refusal has its reason. A
// port that is up may be enabled again.
func TestSimulatedPortsFixed(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	port := func(on bool) *wire.Update {
		return update(mod, r.entry("$PORT", r.key("$PORT", 1), r.data("$PORT", "", "$PORT_ENABLE", on)))
	}
	changes := []*wire.Update{
		port(false),
		update(mod, r.entry("tf1.tm.port.sched_shaping", r.key("tf1.tm.port.sched_shaping", 1), r.data("tf1.tm.port.sched_shaping", "", "max_rate", 5))),
		update(mod, r.entry("tf1.tm.queue.sched_shaping", r.key("tf1.tm.queue.sched_shaping", 0, 8), r.data("tf1.tm.queue.sched_shaping", "", "max_rate", 5))),
		update(del, r.entry("$PORT", r.key("$PORT", 1), nil)),
	}
	v.do(func() { v.fixed = errors.New("the topology defines ports") })
	for i, u := range changes {
		r.refused(fmt.Sprint("change ", i), u, codes.Unimplemented, "the topology defines ports")
	}
	r.must(r.write(everywhere, port(true)))
	v.do(func() { v.fixed = nil })
	for _, u := range changes {
		r.fine(u)
	}
}

// The counters of simulated ports come from the simulator.
func TestSimulatedPortCounters(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	v.do(func() {
		v.counts = []bmv2.PortCounts{{Port: 2, OutPackets: 3, OutBytes: 400, InPackets: 5, InBytes: 600}}
	})
	d := r.get(everywhere, "$PORT_STAT", r.key("$PORT_STAT", 2))
	for name, want := range map[string]uint64{"$FramesTransmittedOK": 3, "$OctetsTransmittedTotal": 400, "$FramesReceivedOK": 5, "$OctetsReceived": 600} {
		if got := r.values("$PORT_STAT", d, name); !slices.Equal(got, []uint64{want}) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
}

// The simulator admits each call that reads or changes the chip, and gets the reason of each
// refusal: of calls, and of messages on streams.
func TestSimulatedTurns(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	entry := update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1)))
	r.must(r.write(everywhere, entry))
	if err := r.write(everywhere, entry); err == nil {
		t.Error("an entry twice is accepted")
	}
	r.size("In.dmac")
	if _, err := r.c.GetForwardingPipelineConfig(t.Context(), &wire.GetForwardingPipelineConfigRequest{}); err != nil {
		t.Error(err) // needs no turn
	}
	v.do(func() {
		var methods []string
		for _, c := range v.calls {
			methods = append(methods, c.Method)
			if c.Stream != (c.Method == "Read") {
				t.Errorf("%s is a stream: %v", c.Method, c.Stream)
			}
		}
		if want := []string{"SetForwardingPipelineConfig", "Write", "Write", "Read"}; !slices.Equal(methods, want) {
			t.Errorf("turns of %v, want %v", methods, want)
		}
		if len(v.reasons) != 4 || v.reasons[0] != nil || v.reasons[1] != nil || v.reasons[3] != nil {
			t.Fatalf("reasons %v", v.reasons)
		}
		if got := v.reasons[2].Error(); !strings.HasPrefix(got, "part 1: Already exists") {
			t.Errorf("the reason is %q", got)
		}
		if !slices.Equal(v.sessions, []bool{true}) {
			t.Errorf("sessions %v, want one open", v.sessions)
		}
	})
	stream, err := r.c.StreamChannel(t.Context())
	r.must(err)
	r.must(stream.Send(&wire.StreamMessageRequest{ClientId: 5, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{DeviceId: 9}}}))
	if m, err := stream.Recv(); err != nil || codes.Code(m.GetSubscribe().GetStatus().GetCode()) != codes.InvalidArgument {
		t.Errorf("another device: %v, %v", m, err)
	}
	r.must(stream.Send(&wire.StreamMessageRequest{ClientId: 5}))
	if m, err := stream.Recv(); err == nil {
		t.Errorf("an empty message was answered with %v", m)
	}
	ended := func() (yes bool) {
		v.do(func() { yes = slices.Equal(v.sessions, []bool{true, true, false}) })
		return yes
	}
	until(t, "the second session ends", ended)
	v.do(func() {
		if len(v.refused) != 2 || !strings.Contains(v.refused[0].Error(), "there is no device 9") || !strings.Contains(v.refused[1].Error(), "neither a subscription nor") {
			t.Errorf("refused messages: %v", v.refused)
		}
	})
}

// A notification has at most 1024 records of a digest in one pipe, and the number of the
// pipe's list. Only the program's client gets it, and other clients get changes of ports.
func TestSimulatedDigests(t *testing.T) {
	r, v := newVirtualRig(t, chip)
	first := r.heard
	r.subscribe(2, &wire.Subscribe_Notifications{EnableLearnNotifications: true, EnablePortStatusChangeNotifications: true})
	second := r.heard
	r.heard = first
	r.must(r.write(everywhere, r.attribute("$PORT", &wire.TableAttribute{Attribute: &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: true}}})))
	p := r.s.programs[0]
	var name string
	for list := range p.learners {
		name = list
	}
	p.learn(0, dataplane.Digest{List: "another"})
	v.stop(0)
	for range 1025 {
		p.learn(0, dataplane.Digest{List: name, Data: []byte{0, 0, 0, 0, 0, 1, 0, 5}})
	}
	p.learn(2, dataplane.Digest{List: name, Data: []byte{0, 0, 0, 0, 0, 2, 7}}) // a byte is missing
	v.stop(1)
	p.learn(3, dataplane.Digest{List: name, Data: []byte{0, 0, 0, 0, 0, 3, 0, 5}})
	v.stop(2)
	for _, want := range []struct{ pipe, list, records int }{{0, 0, 1024}, {2, 2, 1}, {3, 7, 1}} {
		d := r.hear().GetDigest()
		if int(d.GetTarget().GetPipeId()) != want.pipe || int(d.GetListId()) != want.list || len(d.GetData()) != want.records || d.GetDigestId() != p.learners[name].id {
			t.Fatalf("list %d of pipe %d has %d records, want %+v", d.GetListId(), d.GetTarget().GetPipeId(), len(d.GetData()), want)
		}
		if want.pipe == 2 && (len(d.GetData()[0].GetFields()) != 2 || !slices.Equal(d.GetData()[0].GetFields()[1].GetStream(), []byte{7})) {
			t.Errorf("a record that lacks a byte is %v", d.GetData()[0])
		}
	}
	r.dev.SetPortUp(2, false)
	v.stop(3)
	r.heard = second
	if m := r.hear(); m.GetPortStatusChangeNotification() == nil {
		t.Errorf("a client without program hears %v, want the port alone", m)
	}
	r.heard = first
	if m := r.hear(); m.GetPortStatusChangeNotification() == nil {
		t.Errorf("the program's client hears %v, want the port", m)
	}
}
