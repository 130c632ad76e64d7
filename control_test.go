package p4lb_test

import (
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb"
)

// objects is a program with an action selector, an action profile, counters, a meter, a
// digest, clones and multicast.
const objects = `
#include <core.p4>
#include <v1model.p4>
#include "sizes.p4"

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { bit<8> color; }
struct seen_t { bit<48> src; bit<9> port; }

parser P(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) arrived;
    direct_counter(CounterType.packets) hits;
    meter(16, MeterType.packets) limit;
    register<bit<32>>(CELLS) notes;
    action_selector(HashAlgorithm.crc32, 64, 16) paths;
    action_profile(16) shared;
    action to(bit<9> port) { std.egress_spec = port; }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action tag(bit<16> type) { hdr.ethernet.type = type; hits.count(); }
    table spread {
        key = { hdr.ethernet.dst: exact; hdr.ethernet.src: selector; }
        actions = { to; flood; NoAction; }
        implementation = paths;
    }
    table one {
        key = { hdr.ethernet.dst: exact; }
        actions = { flood; NoAction; }
        implementation = shared;
    }
    table kinds {
        key = { hdr.ethernet.type: ternary; }
        actions = { tag; NoAction; }
        counters = hits;
    }
    apply {
        arrived.count((bit<32>)std.ingress_port);
        notes.write((bit<32>)std.ingress_port, (bit<32>)hdr.ethernet.type);
        limit.execute_meter((bit<32>)std.ingress_port, meta.color);
        spread.apply();
        one.apply();
        kinds.apply();
        if (hdr.ethernet.src[40:40] == 1) { digest(1, { hdr.ethernet.src, std.ingress_port }); }
        if (hdr.ethernet.type == 7) { clone(CloneType.I2E, 5); }
        if (meta.color == 2) { mark_to_drop(std); }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.ethernet); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
`

func objectsSwitch(t *testing.T) *p4lb.Switch {
	t.Helper()
	files := fstest.MapFS{"a/objects.p4": {Data: []byte(objects)}, "b/sizes.p4": {Data: []byte("#ifndef CELLS\n#error CELLS\n#endif\n")}}
	p, err := p4lb.CompileFile(files, "a/objects.p4", p4lb.CompileOptions{Includes: []string{"b"}, Defines: []string{"CELLS=32"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p4lb.CompileFile(files, "a/objects.p4", p4lb.CompileOptions{Includes: []string{"b"}}); err == nil || !strings.Contains(err.Error(), "CELLS") {
		t.Error(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

// frame is an Ethernet frame to an address that ends with a byte.
func frame(dst, src byte, kind uint16) []byte {
	return []byte{2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, byte(kind >> 8), byte(kind), 'x'}
}

// portsOf are the ports by which packets left.
func portsOf(list []p4lb.Packet) string {
	var ports []string
	for _, p := range list {
		ports = append(ports, fmt.Sprint(p.Port))
	}
	return strings.Join(ports, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestControlSelector: a selector sends some addresses to each of its actions; Modify
// replaces them, and Delete leaves nothing that would fill the profile.
func TestControlSelector(t *testing.T) {
	sw := objectsSwitch(t)
	entry := p4lb.Entry{Table: "spread", Match: map[string]string{"dst": "02:00:00:00:00:01"}}
	calls := func(ports ...int) (list []p4lb.Call) {
		for _, p := range ports {
			list = append(list, p4lb.Call{Action: "to", Args: map[string]string{"port": fmt.Sprint(p)}})
		}
		return list
	}
	used := func() string {
		found := map[string]bool{}
		for src := range byte(100) {
			found[portsOf(sw.Send(1, frame(1, src, 9)))] = true
		}
		return fmt.Sprint(found)
	}
	// 64 members fit the profile: without freeing, 100 rounds of 3 would not.
	for range 100 {
		entry.OneOf = calls(3, 4)
		must(t, sw.Insert(entry))
		entry.OneOf = calls(6)
		must(t, sw.Modify(entry))
		must(t, sw.Delete(entry))
	}
	entry.OneOf = calls(3, 4)
	must(t, sw.Insert(entry))
	if got := used(); got != "map[3:true 4:true]" {
		t.Errorf("ports %s", got)
	}
	entry.OneOf = calls(5)
	must(t, sw.Modify(entry))
	if got := used(); got != "map[5:true]" {
		t.Errorf("ports %s after Modify", got)
	}
	if n, err := sw.Len("spread"); n != 1 || err != nil {
		t.Error(n, err)
	}
	must(t, sw.Delete(entry))
	if n, err := sw.Len("spread"); n != 0 || err != nil {
		t.Error(n, err)
	}
	for text, e := range map[string]p4lb.Entry{
		"no action selector": {Table: "kinds", Match: map[string]string{"type": "1"}, OneOf: calls(1)},
		"want one of both":   {Table: "spread", Match: map[string]string{"dst": "1"}, Action: "to", OneOf: calls(1)},
	} {
		if err := sw.Insert(e); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	if err := sw.Modify(p4lb.Entry{Table: "kinds", Match: map[string]string{"type": "77"}, Action: "NoAction"}); err == nil {
		t.Error("Modify of an entry that is not there")
	}
}

// TestControlObjects: multicast, clones, counters, meters, registers and digests.
func TestControlObjects(t *testing.T) {
	sw := objectsSwitch(t)
	must(t, sw.SetMulticast(9, 2, 3))
	must(t, sw.SetClone(5, 8, 14))
	must(t, sw.Insert(p4lb.Entry{Table: "one", Match: map[string]string{"dst": "02:00:00:00:00:02"}, Action: "flood", Args: map[string]string{"group": "9"}}))
	seven := p4lb.Entry{Table: "kinds", Match: map[string]string{"type": "6 &&& 6"}, Priority: 3, Action: "tag", Args: map[string]string{"type": "7"}}
	must(t, sw.Insert(seven))
	out := sw.Send(1, frame(2, 3, 6))
	if got := portsOf(out); got != "8 2 3" && got != "2 3 8" {
		t.Errorf("ports %s, want the group's 2 and 3, and the clone's 8", got)
	}
	for _, p := range out {
		if want := map[bool]int{true: 14, false: 15}[p.Port == 8]; len(p.Data) != want {
			t.Errorf("port %d: %d bytes, want %d", p.Port, len(p.Data), want)
		}
	}
	if c, err := sw.Counter("arrived", 1); c != (p4lb.Count{Packets: 1, Bytes: 15}) || err != nil {
		t.Error(c, err)
	}
	if c, err := sw.EntryCounter(seven); c.Packets != 1 || err != nil {
		t.Error(c, err)
	}
	must(t, sw.SetRegister("notes", 31, 5))
	if cells, err := sw.Registers("notes"); len(cells) != 32 || cells[1] != 6 || cells[31] != 5 || err != nil {
		t.Error(cells, err)
	}
	if err := sw.SetRegister("notes", 0, 1<<32); err == nil || !strings.Contains(err.Error(), "32 bits") {
		t.Error(err)
	}
	// One packet per second, a burst of one: the second packet of a millisecond is red.
	must(t, sw.SetMeter("limit", 1, p4lb.Rate{PerSecond: 1, Burst: 1}, p4lb.Rate{PerSecond: 1, Burst: 1}))
	must(t, sw.Delete(seven))
	if a, b := portsOf(sw.Send(1, frame(2, 3, 6))), portsOf(sw.Send(1, frame(9, 3, 6))); a != "2 3" || b != "" {
		t.Errorf("ports %q, then %q; want 2 3, then a drop", a, b)
	}
	must(t, sw.SetMeter("limit", 1))
	before := sw.Now()
	if got := portsOf(sw.Send(1, frame(2, 3, 6))); got != "2 3" || sw.Now() <= before {
		t.Errorf("ports %q without rates at %v", got, sw.Now())
	}
	source := frame(2, 3, 6)
	source[6] = 3
	sw.Send(4, source)
	if d := sw.Digests(); len(d) != 1 || fmt.Sprint(d[0].Data) != "[3 0 0 0 0 3 0 4]" {
		t.Errorf("digests %v", d)
	}
	if d := sw.Digests(); len(d) != 0 {
		t.Errorf("digests %v again", d)
	}
	for _, err := range []error{sw.SetClone(0, 1, 0), sw.SetMulticast(0, 1), sw.SetMulticast(1, -1)} {
		if err == nil {
			t.Error("no error")
		}
	}
}

// A controller that learns: it sends packets to the port at which their address was seen.
func ExampleSwitch_Digests() {
	const learner = `
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t {}
parser P(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action to(bit<9> port) { std.egress_spec = port; }
    action flood() { std.mcast_grp = 1; }
    table ways { key = { hdr.ethernet.dst: exact; } actions = { to; flood; } default_action = flood(); }
    apply {
        digest(1, { hdr.ethernet.src, std.ingress_port });
        ways.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`
	p, err := p4lb.Compile("learner.p4", []byte(learner))
	if err != nil {
		log.Fatal(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		log.Fatal(err)
	}
	if err := sw.SetMulticast(1, 1, 2, 3); err != nil {
		log.Fatal(err)
	}
	send := func(port int, packet string) {
		var ports []int
		for _, out := range sw.Send(port, []byte(packet)) {
			ports = append(ports, out.Port)
		}
		fmt.Println(ports)
		for _, d := range sw.Digests() {
			err := sw.Insert(p4lb.Entry{
				Table: "ways", Match: map[string]string{"dst": fmt.Sprintf("0x%x", d.Data[:6])},
				Action: "to", Args: map[string]string{"port": fmt.Sprintf("0x%x", d.Data[6:])},
			})
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	send(1, "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a\x08\x00") // to b from a
	send(2, "\x02\x00\x00\x00\x00\x0a\x02\x00\x00\x00\x00\x0b\x08\x00") // to a from b
	// Output:
	// [1 2 3]
	// [1]
}
