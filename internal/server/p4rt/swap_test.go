package p4rt

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/p4"
)

// marking is a program that writes MARK into two bytes of each packet: one in
// ingress, one in egress.
const marking = `
#include <core.p4>
#include <v1model.p4>
header mark_t { bit<8> ingress; bit<8> egress; bit<8> number; }
struct headers { mark_t mark; }
struct metadata {}
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.mark); transition accept; }
}
control V(inout headers h, inout metadata m) { apply {} }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { h.mark.ingress = MARK; s.egress_spec = 1; }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { h.mark.egress = MARK; }
}
control D(packet_out p, in headers h) { apply { p.emit(h.mark); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

func markingProgram(t *testing.T, mark string) []byte {
	t.Helper()
	text := strings.ReplaceAll(marking, "MARK", mark)
	p, err := p4.Compile(fstest.MapFS{"marking.p4": {Data: []byte(text)}}, "marking.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p.JSON()
}

// TestSwapUnderTraffic: no packet is lost in a swap, and ingress and egress of
// each packet belong to the same program, also of packets that wait in a queue.
func TestSwapUnderTraffic(t *testing.T) {
	dev, err := NewDevice(DeviceOptions{Load: loadProgram, Rate: 1000, Depth: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if dev.SwapConfigs() {
		t.Error("a swap without a loaded program succeeds")
	}
	swap := func(mark string) {
		t.Helper()
		if ok, err := dev.LoadConfig(markingProgram(t, mark)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := dev.LoadConfig(markingProgram(t, mark)); ok || err != nil {
			t.Errorf("a second program is loaded: %t, %v", ok, err)
		}
		if !dev.SwapConfigs() {
			t.Fatal("there is no loaded program")
		}
	}
	swap("1")
	out := newTestPort()
	if err := dev.AddPorts(NewPort{Number: 0, Port: newTestPort()}, NewPort{Number: 1, Port: out}); err != nil {
		t.Fatal(err)
	}
	const each = 50
	for _, mark := range []string{"2", "3", ""} {
		for i := range each {
			dev.receive(0, [][]byte{{0, 0, byte(i)}})
		}
		if mark != "" {
			swap(mark)
		}
	}
	came := map[byte]int{}
	for range 3 * each {
		select {
		case b := <-out.out:
			if b[0] != b[1] || int(b[2]) != came[b[0]] {
				t.Fatalf("packet %v: want the same program twice, and number %d", b, came[b[0]])
			}
			came[b[0]]++
		case <-time.After(10 * time.Second):
			t.Fatalf("packets of programs: %v, want %d of each", came, each)
		}
	}
	if !dev.Idle() {
		t.Error("an engine still finishes packets")
	}
}

// TestSwapEndsPipeline: P4Runtime finds no program after a swap over Thrift, and a
// client can push one again.
func TestSwapEndsPipeline(t *testing.T) {
	s := configured(t)
	if ok, err := s.rig.dev.LoadConfig(markingProgram(t, "1")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s.mustRead(2, entityOf(&p4v1.TableEntry{})) // requests use the running program until the swap
	if !s.rig.dev.SwapConfigs() {
		t.Fatal("there is no loaded program")
	}
	if _, err := s.read(entityOf(&p4v1.TableEntry{})); codeOfRPC(err) != codes.FailedPrecondition {
		t.Errorf("reading after the swap: %v", err)
	}
	s.must(s.configure(commitNew, testConfig(t)))
	s.mustRead(2, entityOf(&p4v1.TableEntry{}))
}
