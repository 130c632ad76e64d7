package dataplane_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

// looping is a program for v1model with the given statements in ingress and
// egress.
func looping(t *testing.T, ingress, egress string) *bmv2.Config {
	t.Helper()
	const text = `#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { bit<8> m; }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) { state start { pkt.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) { apply { INGRESS } }
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply { EGRESS } }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`
	full := strings.NewReplacer("INGRESS", ingress, "EGRESS", egress).Replace(text)
	p, err := p4.Compile(fstest.MapFS{"x.p4": {Data: []byte(full)}}, "x.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Config
}

// Packets that a program recirculates endlessly are dropped, even if each round doubles
// them, and the turns are reported.
func TestEndlessPackets(t *testing.T) {
	const rounds = 500
	for _, c := range []struct {
		name, ingress, egress string
		way                   string
		sent                  int // at most
	}{
		{"resubmitted", "resubmit_preserving_field_list(0);", "", "resubmitted from port 7, resubmitted from port 7", 0},
		{"recirculated", "std.egress_spec = 3;", "recirculate_preserving_field_list(0);", "recirculated by port 3, recirculated by port 3", 0},
		{"clones of clones", "clone(CloneType.I2E, 5); std.egress_spec = 3;", "clone(CloneType.E2E, 5);", "cloned to session 5, cloned to session 5", rounds + 2},
		{"each round makes two", "clone(CloneType.I2E, 5); std.egress_spec = 3;", "recirculate_preserving_field_list(0);", "", 0},
		{"each round makes three", "std.mcast_grp = 9;", "recirculate_preserving_field_list(0);", "recirculated by port", 0},
		{"each clone makes four", "clone(CloneType.I2E, 6); std.egress_spec = 3;", "recirculate_preserving_field_list(0);", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var last dataplane.Ended
			seen := 0
			var endless []string
			sw, err := dataplane.New(looping(t, c.ingress, c.egress), dataplane.Options{Rounds: rounds, Endless: func(e dataplane.Ended) bool {
				endless = append(endless, e.Endless())
				return c.name != "clones of clones"
			}, Ended: func(e dataplane.Ended) { last = e; seen++ }})
			if err != nil {
				t.Fatal(err)
			}
			copies := []dataplane.Replica{{Instance: 1, Port: 1}, {Instance: 2, Port: 2}, {Instance: 3, Port: 4}}
			if err := sw.Replication().SetGroup(9, copies); err != nil {
				t.Fatal(err)
			}
			if err := sw.Mirrors().Set(5, dataplane.MirrorSession{Port: 1, HasPort: true}); err != nil {
				t.Fatal(err)
			}
			if err := sw.Mirrors().Set(6, dataplane.MirrorSession{Port: 1, HasPort: true, Group: 9}); err != nil {
				t.Fatal(err)
			}
			e := dataplane.NewEngine(sw)
			sent := len(e.Process(7, []byte{1, 2, 3}, time.Millisecond))
			for calls := 0; ; calls++ {
				if _, due := e.Next(); !due {
					break
				}
				if calls > 10 {
					t.Fatal("there is still something to do")
				}
				sent += len(e.Run(time.Millisecond))
			}
			if clones := c.name == "clones of clones"; clones != (len(endless) == 1) || clones && !strings.Contains(endless[0], "a packet of port 7 has been cloned 64 times, each time from the clone before: … cloned to session 5, cloned") {
				t.Errorf("%q", endless)
			}
			switch {
			case seen == 0 || sw.Ended() != uint64(seen):
				t.Errorf("%d packets had no round left, and %d said so", sw.Ended(), seen)
			case last.Port != 7 || !strings.Contains(last.String(), c.way):
				t.Errorf("the last one: %v", last)
			case sent > c.sent:
				t.Errorf("%d packets were sent, at most %d are right", sent, c.sent)
			}
		})
	}
}

// If Endless returns true, packets end at the 64th clone of a clone.
func TestEndlessClonesEnd(t *testing.T) {
	sw, err := dataplane.New(looping(t, "std.egress_spec = 3;", "clone(CloneType.E2E, 5);"), dataplane.Options{Endless: func(dataplane.Ended) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Mirrors().Set(5, dataplane.MirrorSession{Port: 1, HasPort: true}); err != nil {
		t.Fatal(err)
	}
	e := dataplane.NewEngine(sw)
	for n := range uint64(2) {
		if out := e.Process(7, []byte{1, 2, 3}, 0); len(out) != 64 || sw.Ended() != n+1 {
			t.Errorf("%d packets leave, %d ended: want the packet and 63 clones", len(out), sw.Ended())
		}
	}
}

// A packet that recirculates less often than its limit leaves the switch.
func TestRoundsEnough(t *testing.T) {
	sw, err := dataplane.New(looping(t, "hdr.h.a = hdr.h.a - 1; std.egress_spec = 3;", "if (hdr.h.a != 0) { recirculate_preserving_field_list(0); }"), dataplane.Options{Rounds: 200})
	if err != nil {
		t.Fatal(err)
	}
	e := dataplane.NewEngine(sw)
	if out := e.Process(1, []byte{201}, 0); len(out) != 1 || out[0].Data[0] != 0 || sw.Ended() != 0 {
		t.Errorf("200 rounds: %v, %d ended", out, sw.Ended())
	}
	if out := e.Process(1, []byte{202}, 0); len(out) != 0 || sw.Ended() != 1 {
		t.Errorf("201 rounds: %v, %d ended", out, sw.Ended())
	}
}
