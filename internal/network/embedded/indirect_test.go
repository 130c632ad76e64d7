package embedded_test

import (
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// The routes are groups of an action selector, and the marks are members of an action
// profile. The profiles hold little more than the entries of one plan need.
const indirectProgram = `#include <core.p4>
#include <tna.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { eth_t eth; ip_t ip; }
struct m_t { bit<8> mark; bit<16> rest; }
struct none_t {}
parser IP(packet_in p, out h_t h, out m_t m, out ingress_intrinsic_metadata_t ig) {
    Checksum() sum;
    state start {
        p.extract(ig); p.advance(PORT_METADATA_SIZE); m.mark = 0; p.extract(h.eth); p.extract(h.ip);
        sum.subtract({h.ip.ttl, h.ip.proto, h.ip.sum}); sum.subtract_all_and_deposit(m.rest);
        transition accept;
    }
}
control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t ip,
          inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
    ActionProfile(20) hops;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    ActionSelector(hops, hash, SelectorMode_t.FAIR, 8, 10) choice;
    ActionProfile(8) marks;
    action send(bit<9> port, bit<48> mac) { tm.ucast_egress_port = port; h.eth.dst = mac; h.ip.ttl = h.ip.ttl - 1; }
    action mark(bit<8> x) { m.mark = x; }
    table routes {
        key = { h.ip.dst: lpm; h.ip.src: selector; h.ip.proto: selector; }
        actions = { send; }
        implementation = choice;
        size = 64;
    }
    table kinds {
        key = { ig.ingress_port: exact; }
        actions = { mark; }
        implementation = marks;
        size = 64;
    }
    apply { kinds.apply(); if (m.mark != 9) { routes.apply(); } tm.bypass_egress = 1; }
}
control ID(packet_out p, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    Checksum() sum;
    apply { h.ip.sum = sum.update({h.ip.ttl, h.ip.proto, m.rest}); p.emit(h); }
}
parser EP(packet_in p, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) { state start { p.extract(eg); transition accept; } }
control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t ep,
          inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply {} }
control ED(packet_out p, inout none_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply {} }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
`

const indirectManifest = `
version: 2
scheme: indirect
arch: tna
tables:
- name: I.routes
  entries:
  - {each: host, match: {h.ip.dst: $host-address/32}, action: send, args: {port: $port, mac: $next-mac}, one_of: path}
- name: I.kinds
  entries:
  - {each: port, match: {ig.ingress_port: $port}, action: mark, args: {x: "$neighbour ? 2 : 1"}}
`

func indirectPlan(t *testing.T, topology *fabric.Topology) *plan.Plan {
	t.Helper()
	c, err := p4.CompileText("x.p4", []byte(indirectProgram), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DescribeBfRt(); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("m.yaml", []byte(indirectManifest))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON(), Schema: func() ([]byte, error) { return c.Schema.JSON(), nil }}
	a, err := tofino.Embedded(p)
	if err != nil {
		t.Fatal(err)
	}
	if p.Config, err = a.Encode(); err != nil {
		t.Fatal(err)
	}
	made, err := plan.New(topology, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestBfRtIndirect deploys entries whose actions are members and groups of action
// profiles over BfRt. Packets pass before and after a link fails. What the controller
// reads back is what it wrote. Deployments leave no members behind: eight of them
// would overflow the profiles.
func TestBfRtIndirect(t *testing.T) {
	topology := writtenFabric(t)
	links, err := topology.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	target := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	for i := range 8 {
		top := topology
		if i%2 == 1 {
			top = topology.Fail(links...)
		}
		p := indirectPlan(t, top)
		if r := deploy(t, p, target, controller.DeployOptions{}); r.Written() == 0 {
			t.Fatalf("deployment %d has written nothing", i)
		}
		if r := deploy(t, p, target, controller.DeployOptions{}); r.Written() != 0 {
			t.Errorf("deployment %d is not read back as written: %+v", i, r.Switches[0].Changes)
		}
		newNetwork(t, top, target).ping(t, 12)
	}
}
