package p4lb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/p4lb/p4lb"
)

// probed forwards IPv4 and notes the probes that arrive at each port: how many, the number
// and the time that the last one carries.
const probed = `#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header probe_t { bit<16> number; bit<32> sent; bit<16> leaf; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { eth_t eth; probe_t probe; ip_t ip; }
struct m_t { bit<8> x; }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); transition select(h.eth.type) { 0x88b7: probe; 0x800: ip; default: accept; } }
    state probe { p.extract(h.probe); transition accept; }
    state ip { p.extract(h.ip); transition accept; }
}
control V(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    register<bit<32>>(64) count;
    register<bit<32>>(64) number;
    register<bit<32>>(64) late;
    action hop(bit<9> port) { s.egress_spec = port; }
    table routes { key = { h.ip.dst: lpm; } actions = { hop; } }
    apply {
        if (h.probe.isValid()) {
            bit<32> n;
            count.read(n, (bit<32>) s.ingress_port);
            count.write((bit<32>) s.ingress_port, n + 1);
            number.write((bit<32>) s.ingress_port, (bit<32>) h.probe.number);
            late.write((bit<32>) s.ingress_port, (bit<32>) s.ingress_global_timestamp - h.probe.sent);
            mark_to_drop(s);
        } else {
            routes.apply();
        }
    }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in h_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

const probedManifest = `version: 2
scheme: probed
arch: v1model
tables:
- name: I.routes
  purpose: route
  keys: [{name: h.ip.dst, carries: destination}]
  actions: [{name: hop, params: [{name: port, carries: port}]}]
tasks:
- {kind: send, period: 500us, each: port, where: $below && $neighbour, in: $port, frame: ["0xffffffffffff:48", "$next-mac:48", "0x88b7:16", "$sequence:16", "$time:32", "$neighbour:16"]}
`

// TestProbesAtPorts: frames of a task arrive at ports of simulated switches, periodically,
// with the time and a number. Leaves have no ports for these frames.
func TestProbesAtPorts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"probed.p4": probed, "probed.manifest.yaml": probedManifest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	looked := 0
	e := p4lb.Experiment{Text: small("./probed.manifest.yaml") + "latency: 20us\n", Schemes: dir, Begin: func(n *p4lb.Network) error {
		n.At(4100*time.Microsecond, func() {
			for _, name := range n.Switches() {
				c, err := n.Switch(name)
				if err != nil {
					t.Fatal(err)
				}
				for port := range 5 {
					var got [3]uint64
					for i, register := range []string{"count", "number", "late"} {
						if got[i], err = c.Register(register, port); err != nil {
							t.Fatal(err)
						}
					}
					// Sent at 0, 0.5, … 4 ms; each arrives 20 us later.
					want := [3]uint64{}
					if name[0] == 's' && (port == 1 || port == 2) {
						want = [3]uint64{9, 8, 20}
					}
					if got != want {
						t.Errorf("%s port %d: %v, want %v", name, port, got, want)
					}
					looked++
				}
			}
		})
		return nil
	}}
	if _, err := e.Run(context.Background()); err != nil || looked != 20 {
		t.Error(looked, err)
	}
}
