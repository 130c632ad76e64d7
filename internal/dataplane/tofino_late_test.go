package dataplane

import (
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
)

// shortened removes four bytes from each packet in egress. Three counters count
// it there: at its arrival, and at its departure by an entry and by an index.
// It drops packets that begin with 9.
const shortened = `#include <t2na.p4>
header h_t { bit<8> kind; bit<24> rest; }
struct headers_t { h_t first; h_t second; }
struct none_t {}
parser IP(packet_in b, out none_t h, out none_t m, out ingress_intrinsic_metadata_t ig) { state start { b.extract(ig); b.advance(PORT_METADATA_SIZE); transition accept; } }
control I(inout none_t h, inout none_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t p,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) { apply { tm.ucast_egress_port = 9; } }
control ID(packet_out b, inout none_t h, in none_t m, in ingress_intrinsic_metadata_for_deparser_t d) { apply {} }
parser EP(packet_in b, out headers_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { b.extract(eg); b.extract(h.first); b.extract(h.second); transition accept; } }
control E(inout headers_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t p,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) {
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES, true) entry;
    Counter<bit<32>, bit<4>>(16, CounterType_t.PACKETS_AND_BYTES, true) late;
    Counter<bit<32>, bit<4>>(16, CounterType_t.PACKETS_AND_BYTES) early;
    action shorten() { h.second.setInvalid(); entry.count(); late.count(3); early.count(3); }
    table all { key = { h.first.kind: exact; } actions = { shorten; } counters = entry; size = 16; const entries = { 1: shorten(); 9: shorten(); } }
    apply { all.apply(); if (h.first.kind == 9) { d.drop_ctl = 1; } }
}
control ED(packet_out b, inout headers_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply { b.emit(h); } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
`

// Counters of true egress count the packets that leave, with the frame check
// sequence, and no others.
func TestTrueEgress(t *testing.T) {
	p, err := p4.CompileText("shortened.p4", []byte(shortened), p4.Options{Arch: bmv2.T2NA})
	if err != nil {
		t.Fatal(err)
	}
	c, err := bmv2.Load(p.JSON())
	must(t, err)
	s, err := New(c, Options{})
	must(t, err)
	for _, kind := range []byte{1, 9, 1} {
		for _, o := range s.Ingress(s.Receive(9, append([]byte{kind}, make([]byte, 59)...), 0), 0, nil) {
			s.Egress(o.Packet, 0, 0, nil)
		}
	}
	for name, want := range map[string]Count{"E.late": {Packets: 2, Bytes: 2 * 60}, "E.early": {Packets: 3, Bytes: 3 * 64}} {
		if got, err := s.Counters().Read(name, 3); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	list, err := s.Tables().Entries("E.all")
	if err != nil {
		t.Fatal(err)
	}
	var sum Count
	for _, e := range list {
		c, err := s.Tables().Counter("E.all", e.Handle)
		if err != nil {
			t.Fatal(err)
		}
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
	}
	if want := (Count{Packets: 2, Bytes: 2 * 60}); sum != want {
		t.Errorf("the entries have counted %v, want %v", sum, want)
	}
}
