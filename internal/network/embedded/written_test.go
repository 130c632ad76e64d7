package embedded_test

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// written is a program with a table of every kind of match, and one with an
// action selector.
const written = `#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { eth_t eth; ip_t ip; }
struct m_t { bit<8> x; }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); p.extract(h.ip); transition accept; }
}
control V(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    register<bit<16>>(32) ports;
    action_selector(HashAlgorithm.crc16, 32w64, 32w8) choice;
    action drop() { mark_to_drop(s); }
    action send(bit<9> port, bit<48> mac) { s.egress_spec = port; h.eth.dst = mac; }
    action mark(bit<8> x) { m.x = x; }
    table routes {
        key = { h.ip.dst: lpm; h.ip.src: selector; h.ip.proto: selector; }
        actions = { send; drop; }
        implementation = choice;
        size = 64;
    }
    table rules {
        key = { h.ip.src: ternary; h.ip.ttl: range; h.eth.type: exact; h.ip.proto: optional; }
        actions = { mark; drop; }
        default_action = mark(9);
        size = 64;
    }
    table kinds {
        key = { s.egress_spec: exact; }
        actions = { mark; NoAction; }
        size = 16;
    }
    table tune { actions = { mark; } default_action = mark(1); }
    apply {
        bit<16> n;
        ports.read(n, 0);
        routes.apply(); rules.apply(); kinds.apply(); tune.apply();
        if (m.x == 7) { clone(CloneType.I2E, 105); }
    }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control C(inout h_t h, inout m_t m) { apply {} }
control D(packet_out p, in h_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`

const writtenManifest = `
version: 2
scheme: written
arch: v1model
registers:
- name: I.ports
  size: 32
  cells:
  - {each: host, at: $host, value: $port}
  - {at: 0, value: $switch + 100, roles: [leaf]}
tables:
- name: I.routes
  entries:
  - {each: host, match: {h.ip.dst: $host-address/32}, action: send, args: {port: $port, mac: $next-mac}, one_of: path}
- name: I.rules
  entries:
  - {each: host, where: $here, priority: 10 + $host-place, match: {h.ip.src: $host-address&&&255.255.255.0, h.ip.ttl: 1..64, h.eth.type: 0x800, h.ip.proto: 6}, action: mark, args: {x: $leaf}}
  - {match: {h.eth.type: 0x806}, action: drop}
  - {default: true, action: mark, args: {x: "$home ? 5 : 6"}}
- name: I.kinds
  entries:
  - {each: port, match: {s.egress_spec: $port}, action: mark, args: {x: "$neighbour ? 2 : 1"}}
- name: I.tune
  entries:
  - {default: true, each: host, where: $here && $host-place == 0, action: mark, args: {x: $host}}
clone_sessions:
- {each: port, at: 100 + $port, to: $far-port}
multicast_groups:
- {each: port, at: 10 + $port, to: $to-port != $port && !$to-host}
tasks:
- {kind: send, period: 1ms, each: leaf path, roles: [leaf], frame: ["0xffffffffffff:48", "$own-mac:48", "0x88b7:16", "$port:8", "$next-port:8", "$leaf:16"]}
`

func writtenPlan(t *testing.T, text string, topology *fabric.Topology) (*plan.Plan, error) {
	t.Helper()
	c, err := p4.CompileText("x.p4", []byte(written), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON()}
	return plan.New(topology, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
}

func writtenFabric(t *testing.T) *fabric.Topology {
	t.Helper()
	topology, err := fabric.LeafSpine{Name: "w", Leaves: 2, Spines: 2, Hosts: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// TestWritten plans and deploys the explicit entries of a manifest. A second
// deployment finds no difference, so the switch holds the written entries.
func TestWritten(t *testing.T) {
	plan, err := writtenPlan(t, writtenManifest, writtenFabric(t))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, r := range plan.Rows() {
		rows[r[0]+" "+r[1]] = r[2]
	}
	for object, want := range map[string]string{
		"l1 I.routes dst=10.0.1.1/32":                                      "one of send(port=1, mac=02:00:0a:00:01:01)",
		"l1 I.routes dst=10.0.2.1/32":                                      "one of send(port=3, mac=06:00:00:03:00:01), send(port=4, mac=06:00:00:04:00:01)",
		"l1 I.rules src=10.0.1.1&&&0xffffff00 ttl=1..64 type=2048 proto=6": "mark(x=1)",
		"l1 I.rules src=* ttl=* type=2054 proto=*":                         "drop()",
		"l1 I.rules default":                                               "mark(x=5)",
		"s1 I.rules default":                                               "mark(x=6)",
		"l1 I.kinds egress_spec=1":                                         "mark(x=1)",
		"l1 I.kinds egress_spec=3":                                         "mark(x=2)",
		"l2 I.tune default":                                                "mark(x=3)",
		"l1 clone session 103":                                             "port 1",
		"l1 multicast group 13":                                            "ports 4",
		"l1 register I.ports[4]":                                           "4",
		"l1 register I.ports[0]":                                           "101",
	} {
		if got, ok := rows[object]; !ok || got != want {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
	if t.Failed() {
		for object, value := range rows {
			t.Log(object, "=", value)
		}
	}
	if f := plan.Switch("l1").Frames; len(f) != 2 || string(f[1].Bytes[12:]) != "\x88\xb7\x04\x02\x00\x02" {
		t.Errorf("frames %+v", f)
	}
	if f := plan.Switch("s1").Frames; len(f) != 0 {
		t.Errorf("a spine sends %+v", f)
	}
	target := embedded.New(embedded.Options{Memory: true})
	defer target.Close()
	for i := range 2 {
		r, err := controller.Deploy(testContext(t), plan, target, controller.DeployOptions{Takeover: i > 0})
		if err != nil || !r.Verified() || (r.Written() == 0) != (i > 0) {
			t.Fatalf("deploy %d: %v, %d changes", i, err, r.Written())
		}
	}
	e, err := target.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	in, err := inspect.New(plan.Nodes()[0], e.Registers, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.Snapshot(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, r := range s.Readings {
		if r.Quantity == "ports" { // the register; what ports count is there for every program
			cells = append(cells, r.Quantity+" "+r.Index+" "+r.Text)
		}
	}
	if got := strings.Join(cells, ", "); got != "ports cell 0 101, ports cell 1 1, ports cell 2 2, ports cell 3 3, ports cell 4 4" {
		t.Errorf("readings of an opaque register: %s", got)
	}
	// Without the entries the defaults are the program's again.
	bare, _, _ := strings.Cut(writtenManifest, "registers:")
	empty, err := writtenPlan(t, bare, writtenFabric(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(empty.Empty(), " "); got != "I.routes I.rules I.kinds" {
		t.Errorf("empty: %s", got)
	}
	for i := range 2 {
		r, err := controller.Deploy(testContext(t), empty, target, controller.DeployOptions{Takeover: true})
		if err != nil || !r.Verified() || (r.Written() == 0) != (i > 0) {
			t.Fatalf("deploy %d without entries: %v, %d changes", i, err, r.Written())
		}
	}
}

// TestWrittenErrors: errors name entries that the network makes impossible.
func TestWrittenErrors(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"mark, args: {x: $leaf}", "mark, args: {x: $host-address}", "l1: table I.rules, entry 1 of the manifest: x: 167772417 does not fit 8 bits"},
		{"at: $host,", "at: $host + 30,", "l1: register I.ports, cells 1 of the manifest: there is no cell 32, but 32"},
		{"each: port, at: 100 + $port", "each: port, at: 100", "l1: clone sessions of the manifest: there is a session 100 already"},
		{"s.egress_spec: $port}, action: mark, args: {x: \"$neighbour ? 2 : 1\"}", "s.egress_spec: $neighbour}, action: mark, args: {x: $port}",
			"l1: table I.kinds, entry 1 of the manifest: there is an entry I.kinds egress_spec=0 already, with the action mark(x=1): this one has mark(x=2)"},
		{"s.egress_spec: $port}", "s.egress_spec: $port(x9)}", "l1: table I.kinds, entry 1 of the manifest: s.egress_spec: \"$port(x9)\": topology w has no x9"},
		{"s.egress_spec: $port}", "s.egress_spec: $port + 511}", "l1: table I.kinds, entry 1 of the manifest: s.egress_spec: 512 does not fit 9 bits"},
		{"where: $here && $host-place == 0, ", "", "l1: table I.tune, entry 1 of the manifest: there is an entry I.tune default already"},
		{"ttl: 1..64", "ttl: $leaf + 64..64", "l1: table I.rules, entry 1 of the manifest: h.ip.ttl: the range 65..64 is empty"},
		{"\"$port:8\"", "\"$port:9\"", "l1: task 1 of the manifest: the frame is no whole number of bytes"},
		{"to: $far-port", "to: $far-port % ($tier - 1)", "l1: clone sessions of the manifest: \"$far-port % ($tier - 1)\": the remainder of a division by 0"},
	} {
		text := strings.Replace(writtenManifest, c.from, c.to, 1)
		if text == writtenManifest {
			t.Fatalf("the manifest has no %q", c.from)
		}
		_, err := writtenPlan(t, text, writtenFabric(t))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v\nwant %s", c.from, c.to, err, c.want)
		}
	}
}
