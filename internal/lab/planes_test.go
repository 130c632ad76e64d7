package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

const planesTest = `
name: planes
topology: {%s, host-rate: 100G, host-delay: 500ns, delay: 500ns, queue: 100}}
schemes: [ecmp]
traffic: [{collective: send-recv, groups: 4, order: strided, size: 8MB}]
transport: {kind: uec, ports: consecutive%s}
mtu: 4160
seeds: 1
`

const (
	twoPlanes = "rail: {rails: 4, servers: 4, spines: 4, planes: 2"
	dualToR   = "leaf-spine: {leaves: 8, spines: 4, hosts: 4, dual-tor: true"
	oblivious = ", entropy: oblivious, paths: 64"
)

// planes runs the test with both engines, which must agree, and returns its metrics.
func planes(t *testing.T, topology, transport, more string) map[string]float64 {
	t.Helper()
	var before map[string]float64
	for _, engine := range []string{"p4", "native"} {
		m := run(t, &Runner{}, load(t, fmt.Sprintf(planesTest, topology, transport)+more+"\nengine: "+engine+"\n")).Rows[0].Runs[0].Metrics
		for name, v := range before {
			if m[name] != v {
				t.Errorf("%s: %g with models, %g with programs", name, m[name], v)
			}
		}
		before = m
	}
	return before
}

// carried returns the ms in which a link of 100 Gbit/s carries a payload in packets of
// 4,160 bytes and a header of Ethernet, of which 64 are headers in all.
func carried(bytes float64) float64 { return bytes * (4174.0 / (4174 - 64)) * 8 / 100e9 * 1e3 }

// TestPlanes: a host that chooses a source port for each packet sends through all its
// ports at once, and else through one.
func TestPlanes(t *testing.T) {
	leftToPlainRun(t)
	for _, topology := range []string{twoPlanes, dualToR} {
		m := planes(t, topology, oblivious, "")
		atMost(t, m, "cct", carried(8e6)/2, 0.05)
		if r := m["cct-ratio"]; r < 1 || r > 1.05 {
			t.Errorf("%s: ratio %g: want 1 to 1.05", topology, r)
		}
		atMost(t, planes(t, topology, "", ""), "cct", carried(8e6), 0.05)
	}
}

// TestPlaneLost: when one of two planes fails, the rest of the bytes takes the other.
// Both ends of a link notice at once, so that the fault loses packets for no longer
// than a packet is on its way.
func TestPlaneLost(t *testing.T) {
	leftToPlainRun(t)
	m := planes(t, twoPlanes, oblivious, "faults: [{at: 100us, plane: 2, down: true}]")
	// 100 us of two ports, then one; the lost packets go again.
	atMost(t, m, "cct", 0.1+carried(8e6)-2*0.1, 0.06)
	if v := m["recovery"]; v <= 0 || v > 0.01 {
		t.Errorf("recovery %g ms: want above 0 and at most 0.01", v)
	}
	if v := m["unfinished"]; v != 0 {
		t.Errorf("%g %% of the flows unfinished", v)
	}
	back := planes(t, twoPlanes, oblivious, "faults: [{at: 100us, until: 300us, plane: 2, down: true}]")
	if back["cct"] > m["cct"]*0.95 {
		t.Errorf("%g ms if the plane comes back, %g else: want less", back["cct"], m["cct"])
	}
	// A leaf of a pair fails: other hosts learn it from the controller.
	leaf := planes(t, dualToR, oblivious, "faults: [{at: 100us, switch: l2, down: true}]\nlatency: 50us")
	if v := leaf["recovery"]; v < 0.04 || v > 0.08 || leaf["unfinished"] != 0 {
		t.Errorf("recovery %g ms of a leaf, %g %% unfinished: want the controller's 0.05 ms and a few µs", v, leaf["unfinished"])
	}
}

// TestPlanesErrors: planes are refused in unsuitable topologies.
func TestPlanesErrors(t *testing.T) {
	for text, want := range map[string]string{
		fmt.Sprintf(planesTest, twoPlanes, "") + "ties: place\n":                                                        "ties: place with hosts of several ports",
		fmt.Sprintf(planesTest, twoPlanes, "") + "faults: [{at: 1ms, plane: 3, down: true}]\n":                          "faults[0]: plane 3: the hosts of rail have 2 ports",
		fmt.Sprintf(planesTest, twoPlanes, "") + "faults: [{at: 1ms, plane: 1, switch: l1, down: true}]\n":              "faults[0]: want one of link, switch, plane and server",
		fmt.Sprintf(planesTest, "leaf-spine: {leaves: 4, hosts: 4", "") + "faults: [{at: 1ms, plane: 1, down: true}]\n": "faults[0]: plane 1: the hosts of leaf-spine have one port",
		fmt.Sprintf(planesTest, "rail: {rails: 4, planes: 99", ""):                                                      "topology: 99 planes: want at most 16",
		fmt.Sprintf(planesTest, "rail: {rails: 4, levels: 9", ""):                                                       `topology.rail.levels: there is no key "levels"`,
		strings.Replace(fmt.Sprintf(planesTest, twoPlanes, ""), "groups: 4,", "from: [h1.2, h2],", 1):                   `traffic[0]: from: there is no host "h1.2"`,
	} {
		_, err := spec.Load("t.yaml", []byte(text), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "t.yaml:") {
			t.Errorf("%v: want %s", err, want)
		}
	}
}
