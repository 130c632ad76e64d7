package p4rt

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/p4"
)

// sorting sends a packet to port 1 if its key is in the set, to port 2 otherwise. The
// fields of a member have 72 bits together, and each has another kind of match.
const sorting = `
#include <core.p4>
#include <v1model.p4>
header key_t { bit<12> a; bit<20> b; bit<4> c; bit<36> d; }
struct headers { key_t key; }
struct metadata { bit<1> in_set; }
struct member_t {
    @match(ternary) bit<12> a;
    @match(lpm) bit<20> b;
    @match(optional) bit<4> c;
    bit<36> d;
}
struct ranges_t { @match(range) bit<12> a; bit<4> c; }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    value_set<member_t>(4) members;
    value_set<ranges_t>(4) ranges;
    state start {
        p.extract(h.key);
        transition select(h.key.a, h.key.b, h.key.c, h.key.d) { members: inside; default: more; }
    }
    state more {
        transition select(h.key.a, h.key.c) { ranges: inside; default: accept; }
    }
    state inside { m.in_set = 1; transition accept; }
}
control V(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { if (m.in_set == 1) { s.egress_spec = 1; } else { s.egress_spec = 2; } }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h.key); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// The fields of a member match as P4Info says: with a mask, a prefix, any value or exactly.
func TestMaskedValueSets(t *testing.T) {
	p, err := p4.Compile(fstest.MapFS{"sorting.p4": {Data: []byte(sorting)}}, "sorting.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Options{})
	in, inside, outside := newTestPort(), newTestPort(), newTestPort()
	if err := r.dev.AddPorts(NewPort{Number: 0, Port: in}, NewPort{Number: 1, Port: inside}, NewPort{Number: 2, Port: outside}); err != nil {
		t.Fatal(err)
	}
	s := r.primary()
	s.must(s.configure(commitNew, &p4v1.ForwardingPipelineConfig{P4Info: p.P4Info, P4DeviceConfig: p.JSON()}))
	ids := map[string]uint32{}
	for _, v := range p.P4Info.GetValueSets() {
		ids[v.GetPreamble().GetName()] = v.GetPreamble().GetId()
	}
	set := func(name string, members ...[]*p4v1.FieldMatch) *p4v1.Entity {
		e := &p4v1.ValueSetEntry{ValueSetId: ids["P."+name]}
		for _, m := range members {
			e.Members = append(e.Members, &p4v1.ValueSetMember{Match: m})
		}
		return &p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: e}}
	}
	optional := &p4v1.FieldMatch{FieldId: 3, FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: []byte{7}}}}
	masked := []*p4v1.FieldMatch{ternary(1, "\x0a\x00", "\x0f\x00"), lpm(2, "\x01\x20\x00", 13), optional, exact(4, "\x05")}
	loose := []*p4v1.FieldMatch{exact(4, "\x09")}
	all := set("members", masked, loose)
	s.wantWrite(codes.OK, update(mod, all))
	if got := s.mustRead(1, set("members"))[0]; !proto.Equal(got, all) {
		t.Errorf("read %v, want %v", got, all)
	}
	for _, c := range []struct {
		name string
		key  [9]byte // 12, 20, 4 and 36 bits
		in   bool
	}{
		{"equal", [9]byte{0xa0, 0x01, 0x20, 0x00, 0x70, 0, 0, 0, 5}, true},
		{"bits outside of the mask and the prefix", [9]byte{0xaf, 0xf1, 0x20, 0x7f, 0x70, 0, 0, 0, 5}, true},
		{"a bit of the mask", [9]byte{0xb0, 0x01, 0x20, 0x00, 0x70, 0, 0, 0, 5}, false},
		{"the last bit of the prefix", [9]byte{0xa0, 0x01, 0x20, 0x80, 0x70, 0, 0, 0, 5}, false},
		{"the optional field", [9]byte{0xa0, 0x01, 0x20, 0x00, 0x60, 0, 0, 0, 5}, false},
		{"the exact field", [9]byte{0xa0, 0x01, 0x20, 0x00, 0x70, 0, 0, 0, 4}, false},
		{"the highest bit of the exact field", [9]byte{0xa0, 0x01, 0x20, 0x00, 0x78, 0, 0, 0, 5}, false},
		{"another member without the other fields", [9]byte{0x12, 0x34, 0x56, 0x78, 0x90, 0, 0, 0, 9}, true},
	} {
		r.dev.receive(0, [][]byte{c.key[:]})
		select {
		case <-inside.out:
			if !c.in {
				t.Errorf("%s: in the set", c.name)
			}
		case <-outside.out:
			if c.in {
				t.Errorf("%s: not in the set", c.name)
			}
		case <-time.After(patience):
			t.Fatalf("%s: no packet left", c.name)
		}
	}
	s.wantWrite(codes.AlreadyExists, update(mod, set("members", masked, masked)))
	s.wantWrite(codes.InvalidArgument, update(mod, set("members", []*p4v1.FieldMatch{optional})))
	err = s.write(update(mod, set("ranges", []*p4v1.FieldMatch{exact(2, "\x01")})))
	if err == nil || !strings.Contains(describe(err), "a is matched as RANGE: value sets support exact, lpm, ternary and optional") {
		t.Errorf("a range: %v", err)
	}
}
