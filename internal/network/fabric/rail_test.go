package fabric

import (
	"fmt"
	"strings"
	"testing"
)

// TestRailPlanes: three rails of two servers in two planes are 6 hosts with two ports
// each. A plane has a leaf for each rail and spines of its own.
func TestRailPlanes(t *testing.T) {
	top, err := Rail{Rails: 3, Servers: 2, Spines: 2, Planes: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if got := countOf(top); got.switches != 10 || got.hosts != 12 || got.links != 12+2*6 || top.NICs() != 6 {
		t.Errorf("%+v and %d hosts with ports: want 10 switches, 12 ports of 6 hosts, 24 links", got, top.NICs())
	}
	for i, ports := range top.HostPorts() {
		first, second := top.Hosts[ports[0]], top.Hosts[ports[1]]
		rail := i % 3
		if first.Name != fmt.Sprint("h", i+1) || first.Switch != fmt.Sprint("l", rail+1) ||
			second.Name != fmt.Sprintf("h%d.2", i+1) || second.Switch != fmt.Sprint("l", 3+rail+1) || second.NIC != first.Name {
			t.Errorf("host %d has the ports %+v and %+v", i+1, first, second)
		}
	}
	for plane, want := range []string{"l1 l2 l3 s1 s2", "l4 l5 l6 s3 s4"} {
		if got, err := top.Plane(plane + 1); err != nil || strings.Join(got, " ") != want {
			t.Errorf("plane %d: %v (%v), want %s", plane+1, got, err, want)
		}
	}
	again, err := Load("x.yaml", top.YAML())
	if err != nil || string(again.YAML()) != string(top.YAML()) || again.NICs() != 6 {
		t.Errorf("written and read again: %v", err)
	}
}

// TestDualToR: hosts of a pair of leaves have a port at each, and the leaves share the
// spines. The second plane is the second leaf of each pair.
func TestDualToR(t *testing.T) {
	top, err := LeafSpine{Leaves: 4, Spines: 2, Hosts: 3, DualToR: true}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if got := countOf(top); got.switches != 6 || got.hosts != 12 || got.links != 12+8 || top.NICs() != 6 {
		t.Errorf("%+v and %d hosts: want 6 switches, 12 ports of 6 hosts, 20 links", got, top.NICs())
	}
	for i, ports := range top.HostPorts() {
		pair := i / 3
		if a, b := top.Hosts[ports[0]], top.Hosts[ports[1]]; a.Switch != fmt.Sprint("l", 2*pair+1) || b.Switch != fmt.Sprint("l", 2*pair+2) {
			t.Errorf("host %d is at %s and %s", i+1, a.Switch, b.Switch)
		}
	}
	if got, err := top.Plane(2); err != nil || strings.Join(got, " ") != "l2 l4" {
		t.Errorf("plane 2: %v (%v), want l2 l4", got, err)
	}
}

// TestPlaneErrors refuses hosts, planes and networks that cannot be.
func TestPlaneErrors(t *testing.T) {
	one, err := LeafSpine{}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, noPlanes := one.Plane(1)
	two, err := Rail{Planes: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, third := two.Plane(3)
	text := func(change, to string) error {
		_, err := Load("x.yaml", []byte(strings.Replace(string(two.YAML()), change, to, 1)))
		return err
	}
	made := func(m interface{ Make() (*Topology, error) }) error {
		_, err := m.Make()
		return err
	}
	for want, err := range map[string]error{
		"plane 1: the hosts of leaf-spine have one port, want":  noPlanes,
		"plane 3: the hosts of rail have 2 ports":               third,
		"host h1.2: nic: there is no host h9 above":             text("nic: h1", "nic: h9"),
		"host h3 is behind h2, a further port of h1: want":      text("\"}\n  h3", "\", nic: h1}\n  h3"),
		"dual-tor with 3 leaves: want an even number":           made(LeafSpine{Leaves: 3, DualToR: true}),
		"17 planes: want at most 16":                            made(Rail{Planes: 17}),
		"-1 rails, 2 servers, 2 spines, 1 planes: want numbers": made(Rail{Rails: -1}),
		"600 rails: a spine has at most 510 ports":              made(Rail{Rails: 600}),
		"500 servers and 20 spines at a leaf: want at most":     made(Rail{Servers: 500, Spines: 20}),
		"400 rails of 400 servers with 2 spines in 1 planes":    made(Rail{Rails: 400, Servers: 400}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}
