package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// generating counts generated packets and sends them to port 1 after the port at which
// they arrived.
var (
	generating  = newTestProgram("generate", bmv2.TNA)
	generating2 = newTestProgram("generate2", bmv2.T2NA)
)

// arrivals returns the next n packets of port 1 in hexadecimal digits, sorted: the port at
// which a packet arrived, its header and its data.
func (r *rig) arrivals(n int) (list []string) {
	r.t.Helper()
	for range n {
		select {
		case b := <-r.ports[1].sent:
			list = append(list, fmt.Sprintf("%x %x %x", b[:2], b[2:8], b[8:]))
		case <-time.After(patience):
			r.t.Fatalf("%d packets came, want %d: %q", len(list), n, list)
		}
	}
	slices.Sort(list)
	return list
}

// app writes fields of an application.
func (r *rig) app(at *wire.TargetDevice, id uint64, action string, list ...any) error {
	return r.write(at, update(mod, r.entry("pktgen.app_cfg", r.key("pktgen.app_cfg", id), r.data("pktgen.app_cfg", action, list...))))
}

// made returns the counters of an application: triggers, batches and packets.
func (r *rig) made(at *wire.TargetDevice, id uint64) (n [3]uint64) {
	r.t.Helper()
	list, err := r.read(at, r.entry("pktgen.app_cfg", r.key("pktgen.app_cfg", id), nil))
	r.must(err)
	for _, f := range list[0].GetData().GetFields() {
		for i, name := range []string{"trigger_counter", "batch_counter", "pkt_counter"} {
			if f.GetFieldId() == r.table("pktgen.app_cfg").field(name).id {
				n[i] = uintOf(f.GetStream())
			}
		}
	}
	return n
}

// buffer puts the bytes 0xa0, 0xa1, ... into the buffers of all pipes.
func (r *rig) buffer(offset, n uint64) {
	r.t.Helper()
	var bytes []uint32
	for i := range n {
		bytes = append(bytes, uint32(0xa0+i))
	}
	k := r.key("pktgen.pkt_buffer", offset, n)
	r.must(r.write(everywhere, update(mod, r.entry("pktgen.pkt_buffer", k, r.data("pktgen.pkt_buffer", "", "buffer", bytes)))))
	list, err := r.read(pipe(2), r.entry("pktgen.pkt_buffer", k, nil))
	r.must(err)
	if got := list[0].GetData().GetFields()[0].GetIntArrVal().GetVal(); !slices.Equal(got, bytes) {
		r.t.Errorf("the buffer has %x, want %x", got, bytes)
	}
}

func (r *rig) sends(ports ...uint64) {
	r.t.Helper()
	for _, p := range ports {
		r.must(r.write(everywhere, update(mod, r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", p), r.data("pktgen.port_cfg", "", "pktgen_enable", true)))))
	}
}

// TestOneShot: an application with a one-shot timer generates its batches in each pipe
// with an enabled port. The header has three bits 0, two of the pipe, three of the
// application, eight bits 0, and 16 each for batch and packet (pktgen_timer_header_t of
// Intel's tofino1_base.p4): 0b000_01_011 is pipe 1, application 3. Counts are zero-based.
func TestOneShot(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	r.buffer(32, 4)
	r.sends(68, 196)
	r.must(r.app(everywhere, 3, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 3, "pkt_buffer_offset", 32,
		"batch_count_cfg", 1, "packets_per_batch_cfg", 2, "app_enable", false))
	if n := r.made(everywhere, 3); n != [3]uint64{} {
		t.Errorf("a disabled application has the counters %d", n)
	}
	r.must(r.app(everywhere, 3, "", "app_enable", true))
	want := []string{
		"0044 030000000000 a0a1a2", "0044 030000000001 a0a1a2", "0044 030000000002 a0a1a2", "0044 030000010000 a0a1a2", "0044 030000010001 a0a1a2", "0044 030000010002 a0a1a2",
		"00c4 0b0000000000 a0a1a2", "00c4 0b0000000001 a0a1a2", "00c4 0b0000000002 a0a1a2", "00c4 0b0000010000 a0a1a2", "00c4 0b0000010001 a0a1a2", "00c4 0b0000010002 a0a1a2",
	}
	if got := r.arrivals(12); strings.Join(got, "\n") != strings.Join(want, "\n") {
		// The pipes' first ports are 68 (0x44) and 128 + 68 (0xc4).
		t.Errorf("%q\nwant %q", got, want)
	}
	if all, one := r.made(everywhere, 3), r.made(pipe(1), 3); all != [3]uint64{2, 4, 12} || one != [3]uint64{1, 2, 6} {
		t.Errorf("the counters of all pipes are %d, of pipe 1 %d", all, one)
	}
	if n := r.values("made", r.get(pipe(0), "made", r.key("made", 3)), "$COUNTER_SPEC_PKTS"); !slices.Equal(n, []uint64{6}) {
		t.Errorf("the program counted %d packets, want 6", n)
	}
	// It triggers again when it is disabled and enabled; other source ports replace the generator's.
	r.must(r.app(pipe(0), 3, "", "app_enable", false, "trigger_counter", 0, "batch_counter", 0, "pkt_counter", 0,
		"pipe_local_source_port", 5, "increment_source_port", true, "batch_count_cfg", 0))
	r.must(r.app(pipe(0), 3, "", "app_enable", true))
	want = []string{"0005 030000000000 a0a1a2", "0006 030000000001 a0a1a2", "0007 030000000002 a0a1a2"}
	if got := r.arrivals(3); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	if n := r.made(everywhere, 3); n != [3]uint64{2, 3, 9} {
		t.Errorf("counters %d, want the new ones of pipe 0 and the old ones of pipe 1", n)
	}
}

// A port whose generator is off sends nothing, and the ports of the other pipes still do.
func TestGeneratorOff(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	r.buffer(0, 2)
	r.sends(68, 69, 196)
	enable := func(port uint64, on bool) {
		t.Helper()
		r.must(r.write(everywhere, update(mod, r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", port), r.data("pktgen.port_cfg", "", "pktgen_enable", on)))))
	}
	enable(68, false)
	enable(69, false)
	start := func() {
		t.Helper()
		r.must(r.app(everywhere, 2, "", "app_enable", false))
		r.must(r.app(everywhere, 2, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 2, "pkt_buffer_offset", 0,
			"batch_count_cfg", 0, "packets_per_batch_cfg", 0, "app_enable", true))
	}
	start()
	if got := r.arrivals(1)[0]; got != "00c4 0a0000000000 a0a1" {
		t.Errorf("packet %q, want one of pipe 1", got)
	}
	if n := r.made(pipe(0), 2); n[2] != 0 {
		t.Errorf("pipe 0 made %d packets without a port that sends", n[2])
	}
	enable(69, true)
	start()
	if got := r.arrivals(2); !strings.HasSuffix(got[0], " 020000000000 a0a1") || got[1] != "00c4 0a0000000000 a0a1" {
		t.Errorf("packets %q, want one of each pipe", got)
	}
}

// After a new program, the applications of the old one have ended, and new ones start.
func TestGeneratorOfNextProgram(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	start := func() {
		t.Helper()
		r.buffer(0, 2)
		r.sends(68)
		r.must(r.app(pipe(0), 2, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 2, "pkt_buffer_offset", 0,
			"batch_count_cfg", 0, "packets_per_batch_cfg", 0, "app_enable", true))
		if got := r.arrivals(1)[0]; got != "0044 020000000000 a0a1" {
			t.Errorf("packet %q", got)
		}
	}
	start()
	program, err := generating.program()
	r.must(err)
	_, err = r.c.SetForwardingPipelineConfig(t.Context(), &wire.SetForwardingPipelineConfigRequest{
		ClientId: r.client, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END,
		Config: []*wire.ForwardingPipelineConfig{{P4Name: program.Name, BfruntimeInfo: program.Schema, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: program.Binary}}}},
	})
	r.must(err)
	if n := r.made(everywhere, 2); n != [3]uint64{} {
		t.Errorf("after the new program the application has the counters %d", n)
	}
	start()
}

// TestOneShotTofino2: an application of Tofino 2 has a number of four bits after two bits 0 and
// two of the pipe (pktgen_timer_header_t of Intel's tofino2_base.p4): 0b00_01_1011 is pipe 1,
// application 11. Its packets arrive at the port of its channel, or at another source port.
func TestOneShotTofino2(t *testing.T) {
	r := newProgramRig(t, generating2, gate.Limits{})
	r.buffer(32, 4)
	r.sends(6, 134)
	r.must(r.app(everywhere, 11, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 3, "pkt_buffer_offset", 32,
		"batch_count_cfg", 1, "packets_per_batch_cfg", 1, "assigned_chnl_id", 6, "app_enable", true))
	want := []string{
		"0006 0b0000000000 a0a1a2", "0006 0b0000000001 a0a1a2", "0006 0b0000010000 a0a1a2", "0006 0b0000010001 a0a1a2",
		"0086 1b0000000000 a0a1a2", "0086 1b0000000001 a0a1a2", "0086 1b0000010000 a0a1a2", "0086 1b0000010001 a0a1a2",
	}
	if got := r.arrivals(8); strings.Join(got, "\n") != strings.Join(want, "\n") {
		// The ports of channel 6 are 6 and 128 + 6 (0x86).
		t.Errorf("%q\nwant %q", got, want)
	}
	if all, one := r.made(everywhere, 11), r.made(pipe(1), 11); all != [3]uint64{2, 4, 8} || one != [3]uint64{1, 2, 4} {
		t.Errorf("the counters of all pipes are %d, of pipe 1 %d", all, one)
	}
	r.sends(3)
	r.must(r.app(pipe(0), 2, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 1, "pkt_buffer_offset", 32, "assigned_chnl_id", 3, "app_enable", true))
	if got, want := r.arrivals(1)[0], "0003 020000000000 a0"; got != want {
		t.Errorf("of channel 3: %s, want %s", got, want)
	}
	r.must(r.app(pipe(0), 15, "trigger_timer_one_shot", "timer_nanosec", 1000, "pkt_len", 1, "pkt_buffer_offset", 32, "pipe_local_source_port", 9,
		"assigned_chnl_id", 6, "app_enable", true))
	if got, want := r.arrivals(1)[0], "0009 0f0000000000 a0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestGeneratorRefusesTofino2: applications of Tofino 2 need a channel, which is one of the eight
// ports with a generator. Triggers that need tables or packets of other parts are named.
func TestGeneratorRefusesTofino2(t *testing.T) {
	r := newProgramRig(t, generating2, gate.Limits{})
	for _, c := range []struct {
		action string
		list   []any
		code   codes.Code
		want   string
	}{
		{"trigger_timer_one_shot", []any{"timer_nanosec", 1}, codes.InvalidArgument, "the application has no assigned_chnl_id: want a port from 0 to 7"},
		{"trigger_timer_one_shot", []any{"timer_nanosec", 1, "assigned_chnl_id", 8}, codes.InvalidArgument, "assigned_chnl_id 8: want 0 to 7"},
		{"trigger_timer_one_shot", []any{"timer_nanosec", 1, "assigned_chnl_id", 6, "source_port_wrap_max", 1}, unimplemented, "source_port_wrap_max is not served"},
		{"trigger_port_down", []any{"assigned_chnl_id", 6}, unimplemented, "trigger_port_down is not served for Tofino 2: it needs the table pktgen.port_mask"},
		{"trigger_dprsr", []any{"assigned_chnl_id", 6}, unimplemented, "trigger_dprsr is not served"},
		{"trigger_pfc", []any{"assigned_chnl_id", 6}, unimplemented, "trigger_pfc is not served"},
	} {
		err := r.app(everywhere, 1, c.action, append([]any{"app_enable", true, "pkt_len", 64, "pkt_buffer_offset", 0}, c.list...)...)
		if err == nil {
			t.Errorf("%s %v is accepted, want %s", c.action, c.list, c.want)
			continue
		}
		if e := details(t, err)[0]; codes.Code(e.GetCanonicalCode()) != c.code || !strings.Contains(e.GetMessage(), c.want) {
			t.Errorf("%v\nwant %v %s", e, c.code, c.want)
		}
	}
	err := r.write(everywhere, update(mod, r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", 8), r.data("pktgen.port_cfg", "", "pktgen_enable", true))))
	if want := "port 8 has no packet generator: want 0 to 7 of a pipe"; err == nil || !strings.Contains(details(t, err)[0].GetMessage(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := r.app(everywhere, 16, "", "app_enable", false); err == nil {
		t.Error("application 16 is accepted: Tofino 2 has 16")
	}
}

// TestPeriodic: a periodic application continues until it is disabled. Its counters count
// the packets that reach the program.
func TestPeriodic(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	r.buffer(0, 2)
	r.sends(71)
	r.must(r.app(pipe(0), 7, "trigger_timer_periodic", "timer_nanosec", 100_000, "pkt_len", 2, "pkt_buffer_offset", 0,
		"batch_count_cfg", 0, "packets_per_batch_cfg", 1, "app_enable", true))
	for i, p := range r.arrivals(40) {
		if want := fmt.Sprintf("0044 07000000000%d a0a1", i/20); p != want {
			t.Errorf("%s, want %s", p, want)
		}
	}
	r.must(r.app(pipe(0), 7, "", "app_enable", false))
	n := r.made(pipe(0), 7)
	r.arrivals(int(n[2]) - 40)
	if n[0] < 20 || n[2] > 2*n[0] || n[2] < 2*n[0]-1 || n[1] != n[2]/2 {
		t.Errorf("counters %d: want two packets for each trigger", n)
	}
	if counted := r.values("made", r.get(pipe(0), "made", r.key("made", 7)), "$COUNTER_SPEC_PKTS"); !slices.Equal(counted, n[2:]) {
		t.Errorf("the program counted %d packets, the generator %d", counted, n[2])
	}
}

// TestPortDown: a port that goes down triggers the applications of its pipe, with its
// number in the last nine bits before the number of the packet (pktgen_port_down_header_t).
// It triggers only once until a client clears its state, and not before that.
func TestPortDown(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	r.buffer(0, 1)
	r.sends(68, 196)
	r.must(r.app(everywhere, 2, "trigger_port_down", "pkt_len", 1, "pkt_buffer_offset", 0, "batch_count_cfg", 0, "packets_per_batch_cfg", 0, "app_enable", true))
	flap := func(port uint32) {
		t.Helper()
		for _, up := range []bool{false, true} {
			r.must(r.write(everywhere, update(mod, r.entry("$PORT", r.key("$PORT", uint64(port)), r.data("$PORT", "", "$PORT_ENABLE", up)))))
		}
	}
	arm := func(port uint64) {
		t.Helper()
		r.must(r.write(everywhere, update(mod, r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", port), r.data("pktgen.port_cfg", "", "clear_port_down_enable", true)))))
	}
	flap(130) // no client has cleared its state
	arm(130)
	flap(130)
	flap(130)
	if got, want := r.arrivals(1)[0], "00c4 0a0000820000 a0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	arm(130)
	arm(2)
	r.dev.SetPortUp(2, false) // the link fails
	if got, want := r.arrivals(1)[0], "0044 020000020000 a0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := r.made(everywhere, 2); n != [3]uint64{2, 2, 2} {
		t.Errorf("counters %d, want 2 triggers", n)
	}
}

// TestGeneratorRefuses: a client cannot use up the processor or the memory by the
// generator, and errors name parts that the switch does not have.
func TestGeneratorRefuses(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	const full, invalid = codes.ResourceExhausted, codes.InvalidArgument
	app := func(action string, list ...any) *wire.Update {
		list = append([]any{"app_enable", true, "pkt_len", 64, "pkt_buffer_offset", 0}, list...)
		return update(mod, r.entry("pktgen.app_cfg", r.key("pktgen.app_cfg", 1), r.data("pktgen.app_cfg", action, list...)))
	}
	port := func(n uint64, field string) *wire.Update {
		return update(mod, r.entry("pktgen.port_cfg", r.key("pktgen.port_cfg", n), r.data("pktgen.port_cfg", "", field, true)))
	}
	buffer := func(offset, size uint64, bytes ...uint32) *wire.Update {
		return update(mod, r.entry("pktgen.pkt_buffer", r.key("pktgen.pkt_buffer", offset, size), r.data("pktgen.pkt_buffer", "", "buffer", bytes)))
	}
	for _, c := range []struct {
		u    *wire.Update
		code codes.Code
		want string
	}{
		{app("trigger_timer_periodic", "timer_nanosec", 1000), full, "1 packets every 1µs, at least 10µs apart: want a period of at least 10µs"},
		{app("trigger_timer_periodic", "timer_nanosec", 20_000, "packets_per_batch_cfg", 9), full, "want a period of at least 100µs"},
		{app("trigger_timer_periodic", "timer_nanosec", 1_000_000, "ipg", 600_000, "packets_per_batch_cfg", 1), full, "at least 600µs apart"},
		{app("trigger_timer_periodic", "timer_nanosec", 20_000), full, "would make more than 100000 packets per second"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1000, "batch_count_cfg", 255, "packets_per_batch_cfg", 256), full, "a trigger would make 65792 packets: want at most 65536"},
		{app("trigger_timer_periodic"), invalid, "timer_nanosec is 0"},
		{app(""), invalid, "has no trigger"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1, "pkt_buffer_offset", 8), invalid, "pkt_buffer_offset 8: want a multiple of 16"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1, "pkt_buffer_offset", 16_368), invalid, "64 bytes at offset 16368: want a part of the 16384 bytes"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1, "pkt_len", 0), invalid, "0 bytes at offset 0"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1, "pipe_local_source_port", 72), invalid, "pipe_local_source_port 72: want 0 to 71"},
		{app("trigger_timer_one_shot", "timer_nanosec", 1, "ipg_jitter", 1), unimplemented, "ipg_jitter is not served"},
		{app("trigger_recirc_pattern", "pattern_value", 1, "pattern_mask", 1), unimplemented, "trigger_recirc_pattern is not served"},
		{port(5, "pktgen_enable"), invalid, "port 5 has no packet generator: want 68 to 71 of a pipe"},
		{port(580, "pktgen_enable"), invalid, "there is no port 580"},
		{port(68, "pattern_matching_enable"), unimplemented, "pattern_matching_enable"},
		{port(64, "recirculation_enable"), unimplemented, "recirculation_enable"},
		{buffer(16, 2, 1), invalid, "field buffer has 1 bytes, and pkt_buffer_size is 2"},
		{buffer(8, 1, 1), invalid, "pkt_buffer_offset 8"},
		{buffer(16_384, 1, 1), invalid, "1 bytes at offset 16384"},
		{buffer(0, 1, 256), invalid, "256 has more than 8 bits"},
	} {
		err := r.write(everywhere, c.u)
		if err == nil {
			t.Errorf("%v is accepted, want %s", c.u, c.want)
			continue
		}
		if e := details(t, err)[0]; codes.Code(e.GetCanonicalCode()) != c.code || !strings.Contains(e.GetMessage(), c.want) {
			t.Errorf("%v\nwant %v %s", e, c.code, c.want)
		}
	}
	for _, pipe := range r.s.chip.generator.pipes {
		if pipe.apps[1].on {
			t.Error("an application runs in a pipe though its update was refused")
		}
	}
}

// TestTriggersInTime follows the times of packets without a clock: a timer of 300 µs, two
// batches 50 µs apart, and three packets 12 µs apart in each.
func TestTriggersInTime(t *testing.T) {
	g := &generator{wake: make(chan struct{}, 1), pipes: newPipes(1, 8)}
	g.portOn(68, true)
	g.configure(0, 1, appConfig{on: true, trigger: periodic, period: 300 * time.Microsecond, length: 1, batches: 2, perOne: 3, batchGap: 50 * time.Microsecond, gap: 12 * time.Microsecond, port: 68})
	var got []time.Duration
	now := time.Duration(0)
	for len(got) < 8 {
		list, next, more := g.due(now)
		for range list {
			got = append(got, now/time.Microsecond)
		}
		if !more {
			t.Fatal("the generator has ended")
		}
		now = next
	}
	if want := []time.Duration{300, 312, 324, 350, 362, 374, 600, 612}; !slices.Equal(got, want) {
		t.Errorf("packets at %d µs, want %d", got, want)
	}
	// A generator that is late does not catch up endlessly.
	if list, _, _ := g.due(time.Hour); len(list) > dueLimit {
		t.Errorf("%d packets at once, want at most %d", len(list), dueLimit)
	}
}
