package p4lb_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/p4lb/p4lb"
)

// The program of QALL with a polynomial of degree 3, for groups of two paths.
func ExampleBuild() {
	p, err := p4lb.Build("qall-poly3", p4lb.Options{Paths: 2, Set: map[string]string{"tb": "500us"}})
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(p.Text())) {
		if strings.HasPrefix(line, "// qall") || strings.HasPrefix(line, "const time_us_t T_B") {
			fmt.Print(line)
		}
	}
	fmt.Println(p.Arch(), strings.Contains(string(p.P4Info()), `"LbIngress.ipv4_route"`))
	// Output:
	// // qall-poly3: packets spread by a polynomial of degree 3 in queue behaviour.
	// const time_us_t T_B = 500;
	// v1model true
}

const forward = `
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
    register<bit<32>>(16) seen;
    action drop() { mark_to_drop(std); }
    action to(bit<9> port) { std.egress_spec = port; }
    table bridge {
        key = { hdr.ethernet.dst: exact; }
        actions = { to; drop; }
        default_action = drop();
    }
    apply {
        bit<32> n;
        seen.read(n, (bit<32>)std.ingress_port);
        seen.write((bit<32>)std.ingress_port, n + 1);
        bridge.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.ethernet); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
`

// Compile a program of your own, and print the compiler's message for a mistake.
func ExampleCompile() {
	p, err := p4lb.Compile("forward.p4", []byte(forward))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Arch(), len(p.JSON()) > 0)

	_, err = p4lb.Compile("forward.p4", []byte(strings.Replace(forward, "to; drop;", "go; drop;", 1)))
	fmt.Println(err)
	// Output:
	// v1model true
	// forward.p4:16:12: warning: action to is never used
	// forward.p4:19:21: go is not declared; did you mean to?
}

// A packet leaves at the port of its entry.
func ExampleSwitch() {
	p, err := p4lb.Compile("forward.p4", []byte(forward))
	if err != nil {
		log.Fatal(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		log.Fatal(err)
	}
	err = sw.Insert(p4lb.Entry{
		Table: "bridge", Match: map[string]string{"dst": "02:00:00:00:00:07"},
		Action: "to", Args: map[string]string{"port": "3"},
	})
	if err != nil {
		log.Fatal(err)
	}
	packet := []byte("\x02\x00\x00\x00\x00\x07\x02\x00\x00\x00\x00\x01\x08\x00hello")
	for _, out := range sw.Send(1, packet) {
		fmt.Printf("port %d: %q\n", out.Port, out.Data[14:])
	}
	packet[5] = 8 // an unknown address
	fmt.Println(len(sw.Send(1, packet)), "packets")
	n, err := sw.Register("I.seen", 1)
	fmt.Println(n, "seen", err)
	// Output:
	// port 3: "hello"
	// 0 packets
	// 2 seen <nil>
}

// Packet spraying against a hash for each flow, on two spines at a load of 0.6.
func ExampleRun() {
	results, err := p4lb.Run(context.Background(), `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}
schemes: [rps, ecmp]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.6]
seeds: 1
duration: 5ms
`, nil)
	if err != nil {
		log.Fatal(err)
	}
	rps, err := results.Mean("rps", "fct-mean")
	if err != nil {
		log.Fatal(err)
	}
	ecmp, err := results.Mean("ecmp", "fct-mean")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("flows take %.2f of the time\n", rps/ecmp)
	// Output: flows take 0.93 of the time
}
