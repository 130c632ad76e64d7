package p4lb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb"
)

// A program whose egress clones each packet and each clone to the port that sends it fills the
// queue of that port within one call. The run ends, with flows that have not finished.
func TestEndlessEgressClones(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clones.p4": `#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<96> a; bit<32> src; bit<32> dst; }
struct H { eth_t eth; ip_t ip; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.eth); p.extract(h.ip); transition accept; } }
control N(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action to(bit<9> port) { s.egress_spec = port; }
    table routes { key = { h.ip.dst: lpm; } actions = { to; } }
    apply { routes.apply(); clone(CloneType.I2E, 5); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { clone(CloneType.E2E, 5); } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
`,
		"clones.manifest.yaml": `version: 2
scheme: clones
arch: v1model
tables:
- name: I.routes
  purpose: route
  keys: [{name: h.ip.dst, carries: destination}]
  actions: [{name: to, params: [{name: port, carries: port}]}]
clone_sessions: [{session: 5, port: 1}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// One flow is enough: each of its packets becomes thousands.
	text := strings.Replace(small("./clones.manifest.yaml"), "duration: 5ms", "duration: 200us", 1)
	r, err := p4lb.Experiment{Text: text, Schemes: dir}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Rows()[0].Runs[0].Metrics["unfinished"]; n == 0 {
		t.Errorf("metrics %v: want flows that have not finished", r.Rows()[0].Runs[0].Metrics)
	}
}
