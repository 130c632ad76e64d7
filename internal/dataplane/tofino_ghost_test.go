package dataplane

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
)

// ghostly sends packets {port, number, ...} to their port, with the length that the ghost
// thread last read from the queue of that number. A test replaces GHOST and TELL.
const ghostly = `#include <t2na.p4>
header h_t { bit<8> port; bit<16> queue; bit<32> told; }
struct headers_t { h_t h; }
struct none_t {}

Register<bit<32>, bit<11>>(2048, 0x99) first;
Register<bit<32>, bit<11>>(2048, 0x99) second;
Register<bit<8>, bit<1>>(1) messages;

parser IP(packet_in b, out headers_t h, out none_t m, out ingress_intrinsic_metadata_t ig) {
    state start { b.extract(ig); b.advance(PORT_METADATA_SIZE); b.extract(h.h); transition accept; }
}
control I(inout headers_t h, inout none_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t p,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm INGRESS) {
    apply {
        tm.ucast_egress_port = 1w0 ++ h.h.port;
        TELL
    }
}
control ID(packet_out b, inout headers_t h, in none_t m, in ingress_intrinsic_metadata_for_deparser_t d) { apply { b.emit(h); } }
parser EP(packet_in b, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { b.extract(eg); transition accept; } }
control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t p,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out b, inout none_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply {} }
control G(in ghost_intrinsic_metadata_t gh) {
    RegisterAction<bit<8>, bit<1>, bit<8>>(messages) count = {
        void apply(inout bit<8> held) { held = held + 1; }
    };
    apply {
        count.execute(0);
        GHOST
    }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED(), G()) pipe;
Switch(pipe) main;
`

// hauntedSwitch compiles the program with the parts of a test.
func hauntedSwitch(t *testing.T, parts ...string) *Switch {
	t.Helper()
	const name = "ghost.p4"
	source := strings.NewReplacer(append(parts, " INGRESS", "")...).Replace(ghostly)
	p, err := p4.CompileText(name, []byte(source), p4.Options{Arch: bmv2.T2NA})
	if err != nil {
		t.Fatal(err)
	}
	c, err := bmv2.Load(p.JSON())
	must(t, err)
	s, err := New(c, Options{Priorities: 8})
	must(t, err)
	return s
}

// The ghost thread sees each packet that enters or leaves a queue, and ingress
// sees the effect at once.
func TestGhost(t *testing.T) {
	for name, parts := range map[string][]string{
		"one copy": {
			"GHOST", "first.write(gh.qid, 12w0 ++ gh.pipe_id ++ gh.qlength);",
			"TELL", "h.h.told = first.read(h.h.queue[10:0]);",
		},
		"two copies": {
			"GHOST", "if (gh.ping_pong == 1) { first.write(gh.qid, 12w0 ++ gh.pipe_id ++ gh.qlength); } else { second.write(gh.qid, 12w0 ++ gh.pipe_id ++ gh.qlength); }",
			" INGRESS", ", in ghost_intrinsic_metadata_t gh",
			"TELL", "if (gh.ping_pong == 0) { h.h.told = first.read(h.h.queue[10:0]); } else { h.h.told = second.read(h.h.queue[10:0]); }",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := hauntedSwitch(t, parts...)
			arrive := func(port byte, queue int, want uint64) *Packet {
				t.Helper()
				data := append([]byte{port, byte(queue >> 8), byte(queue), 0, 0, 0, 0}, make([]byte, 300)...)
				out := s.Ingress(s.Receive(1, data, time.Second), time.Second, nil)
				if len(out) != 1 || out[0].Port != uint32(port) {
					t.Fatalf("ingress: %+v", out)
				}
				if got := out[0].Packet.Bytes()[3:7]; !bytes.Equal(got, be(want, 4)) {
					t.Errorf("of queue %d ingress knows %x, want %x", queue, got, want)
				}
				return out[0].Packet
			}
			const cells = 2 // of 176 bytes
			p := arrive(3, QueueNumber(3, 0), 0x99)
			s.Enqueued(p, 5, time.Second)
			s.park(p)
			q := arrive(200, QueueNumber(3, 0), 5+cells)
			s.Enqueued(q, 0, time.Second)
			arrive(9, QueueNumber(200, 0), 1<<18|cells) // in pipe 1
			s.Egress(p, 4, time.Second, nil)
			arrive(9, QueueNumber(3, 0), 4)
			arrive(9, QueueNumber(3, 1), 0x99)
			counted, err := s.Registers().Cells("messages", nil)
			must(t, err)
			if want := 3 * s.tofino.programs[0].ghost.copies; counted[0] != want || (want == 6) != (name == "two copies") {
				t.Errorf("the control ran %d times, want %d", counted[0], want)
			}
		})
	}
}

// The ghost thread gets the lengths of the engine's queues.
func TestGhostInEngine(t *testing.T) {
	s := hauntedSwitch(t, "GHOST", "first.write(gh.qid, 14w0 ++ gh.qlength);", "TELL", "tm.bypass_egress = 1;")
	e := NewEngine(s)
	e.Queues(func(q *Queues) { must(t, q.SetRate(3, 0, 1000)) })
	length := func() uint64 {
		cells, err := s.Registers().Cells("first", nil)
		must(t, err)
		return cells[QueueNumber(3, 0)]
	}
	for i, want := range []uint64{0, 1, 2} { // the first leaves at once
		e.Process(1, []byte{3, 0, 0, 0, 0, 0, 0}, time.Second)
		if got := length(); got != want {
			t.Errorf("after packet %d the queue has %d cells, want %d", i, got, want)
		}
	}
	e.Run(time.Second + time.Millisecond)
	if got := length(); got != 1 {
		t.Errorf("later it has %d cells, want 1", got)
	}
}

// The first queues of two ports have different numbers, and no port has the
// last number.
func TestQueueNumber(t *testing.T) {
	if QueueNumber(0, 0) != 0 || QueueNumber(1, 0) <= QueueNumber(0, 7) || QueueNumber(noPort, 9) != 2047 {
		t.Error(QueueNumber(0, 0), QueueNumber(0, 7), QueueNumber(1, 0), QueueNumber(noPort, 9))
	}
}
