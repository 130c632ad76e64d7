package dataplane_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

// waiting is a program for Tofino whose packets recirculate until the time in their header.
// With copies, each packet is also mirrored to session 5 each time.
func waiting(t *testing.T, copies bool, o dataplane.Options) *dataplane.Switch {
	t.Helper()
	text := `#include <core.p4>
#include <tna.p4>
header h_t { bit<48> until; }
struct H { h_t h; }
struct N {}
parser IP(packet_in p, out H h, out N m, out ingress_intrinsic_metadata_t ig) {
    state start { p.extract(ig); p.advance(PORT_METADATA_SIZE); p.extract(h.h); transition accept; }
}
control I(inout H h, inout N m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t ip,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.bypass_egress = 1;
        tm.ucast_egress_port = 68;
        if (ip.global_tstamp >= h.h.until) { tm.ucast_egress_port = 3; }
        COPY
    }
}
control ID(packet_out p, inout H h, in N m, in ingress_intrinsic_metadata_for_deparser_t d) {
    Mirror() mirror;
    apply { if (d.mirror_type == 1) { mirror.emit(10w5); } p.emit(h); }
}
parser EP(packet_in p, out H h, out N m, out egress_intrinsic_metadata_t eg) { state start { p.extract(eg); transition accept; } }
control E(inout H h, inout N m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t ep,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out p, inout H h, in N m, in egress_intrinsic_metadata_for_deparser_t d) { apply { p.emit(h); } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
`
	statement := ""
	if copies {
		statement = "d.mirror_type = 1;"
	}
	p, err := p4.Compile(fstest.MapFS{"x.p4": {Data: []byte(strings.Replace(text, "COPY", statement, 1))}}, "x.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sw, err := dataplane.New(p.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

// follow sends a packet at time 0 and runs the engine at each time that it asks for. It
// returns the time at which a packet leaves, the number of calls, and the last time.
func follow(t *testing.T, sw *dataplane.Switch, until time.Duration) (leaves time.Duration, calls int, last time.Duration) {
	t.Helper()
	e := dataplane.NewEngine(sw)
	frame := make([]byte, 20)
	for i := range 6 {
		frame[i] = byte(uint64(until) >> (8 * (5 - i)))
	}
	out := e.Process(1, frame, 0)
	for len(out) == 0 {
		at, due := e.Next()
		if !due {
			return -1, calls, last
		}
		last = max(last, at)
		out = e.Run(last)
		if calls++; calls > 1<<20 {
			t.Fatal("the packet does not end")
		}
	}
	return last, calls, last
}

// A packet that a program for Tofino recirculates as a timer waits a fifth of a second, which
// is longer than its rounds take. The switch has little work meanwhile.
func TestTimerPacketWaits(t *testing.T) {
	sw := waiting(t, false, dataplane.Options{})
	const until = 200 * time.Millisecond
	leaves, calls, _ := follow(t, sw, until)
	if leaves < until || leaves > until+time.Millisecond || sw.Ended() != 0 {
		t.Errorf("the packet leaves at %v, want %v; %d had no round left", leaves, until, sw.Ended())
	}
	if calls > int(until/(10*time.Microsecond)) {
		t.Errorf("%d calls for one packet", calls)
	}
	sw = waiting(t, false, dataplane.Options{})
	if leaves, calls, _ := follow(t, sw, 0); leaves != 0 || calls > 1 {
		t.Errorf("a packet that does not wait leaves at %v after %d calls", leaves, calls)
	}
}

// A packet that recirculates endlessly is dropped after some seconds, and its port is
// reported.
func TestTimerPacketEnds(t *testing.T) {
	var ended dataplane.Ended
	sw := waiting(t, false, dataplane.Options{Ended: func(e dataplane.Ended) { ended = e }})
	leaves, _, last := follow(t, sw, 1<<47)
	if leaves >= 0 || sw.Ended() != 1 || last < time.Second || last > 20*time.Second {
		t.Errorf("leaves at %v, %d ended, last at %v", leaves, sw.Ended(), last)
	}
	if want := "recirculated by port 68"; ended.Port != 68 || !strings.Contains(ended.String(), want) {
		t.Errorf("%v\nwant %s", ended, want)
	}
}

// Packets that multiply do not wait: they end at once, so they cannot fill the memory.
func TestTimerPacketsThatMultiplyEnd(t *testing.T) {
	sw := waiting(t, true, dataplane.Options{Rounds: 500})
	if err := sw.Mirrors().Set(5, dataplane.MirrorSession{Port: 68, HasPort: true}); err != nil {
		t.Fatal(err)
	}
	leaves, _, last := follow(t, sw, 1<<47)
	if leaves >= 0 || sw.Ended() == 0 || last != 0 {
		t.Errorf("leaves at %v, %d ended, last at %v", leaves, sw.Ended(), last)
	}
}
