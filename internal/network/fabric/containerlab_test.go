package fabric

import (
	"strings"
	"testing"
)

const clos = `name: clos
prefix: ""
topology:
  kinds:
    nokia_srlinux: {image: srlinux}
  defaults: {kind: nokia_srlinux}
  groups:
    client: {kind: linux}
  nodes:
    leaf1: {group: leaf}
    leaf2: {type: ixrd3}
    spine1: {group: spine}
    gateway: {kind: linux}
    client1:
      kind: linux
      exec:
        - ip link set address 00:c1:ab:00:00:01 dev eth1
        - ip address add 172.17.0.1/24 dev eth1
    client2: {group: client}
  links:
    - endpoints: ["leaf1:e1-1", "client1:eth1"]
    - endpoints: ["leaf1:e1-49", "spine1:e1-1"]
    - endpoints: ["leaf2:ethernet-1/1", "client2:eth1"]
    - endpoints: ["leaf2:ethernet-2/1", "spine1:e1-2"]
    - type: veth
      endpoints:
        - {node: gateway, interface: eth1}
        - {node: spine1, interface: e1-7}
    - endpoints: ["gateway:eth2", "leaf2:ethernet-2/2"]
    - endpoints: ["leaf1:mgmt0", "mgmt-net:leaf1"]
    - type: host
      endpoint: {node: leaf2, interface: e9}
`

// TestContainerlab: the import distinguishes hosts and switches, numbers ports
// by interface names or in order, reads addresses from commands, and notes
// ignored links.
func TestContainerlab(t *testing.T) {
	topology, notes, err := Imports{}.Import("clos.clab.yml", []byte(clos))
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, l := range topology.Links {
		links = append(links, l.String())
	}
	want := "leaf1:1-client1 leaf1:49-spine1:1 leaf2:1-client2 leaf2:2-spine1:2 gateway:1-spine1:7 gateway:2-leaf2:3"
	if got := strings.Join(links, " "); topology.Name != "clos" || got != want {
		t.Errorf("%s has the links\n%s, want\n%s", topology.Name, got, want)
	}
	if h := topology.Host("client1"); h == nil || h.IP.String() != "172.17.0.1/24" {
		t.Errorf("client1 is %+v", h)
	}
	if s := topology.Switch("spine1"); s == nil || s.Role != Spine {
		t.Errorf("spine1 is %+v", s)
	}
	for _, part := range []string{"clos.clab.yml:30: link to mgmt-net ignored", "clos.clab.yml:31: link of type host ignored"} {
		if !strings.Contains(strings.Join(notes, "\n"), part) {
			t.Errorf("the notes have no %q:\n%s", part, strings.Join(notes, "\n"))
		}
	}
}

// TestContainerlabMistakes: errors name the line and describe valid input.
func TestContainerlabMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"leaf1:e1-1", "client1:eth1"`, `"leaf1", "client1:eth1"`, `clos.clab.yml:21: link: endpoint "leaf1": want NODE:INTERFACE`},
		{`"leaf1:e1-1", "client1:eth1"`, `"leaf1:e1-1"`, `clos.clab.yml:21: link: want two endpoints`},
		{`"leaf2:ethernet-1/1"`, `"leaf3:ethernet-1/1"`, `clos.clab.yml:23: link: there is no node "leaf3"`},
		{"172.17.0.1/24", "172.17.0.1/64", "clos.clab.yml:18: node client1: "},
		{"  nodes:", "  nodes: 7\n  others:", "clos.clab.yml"},
	} {
		text := strings.Replace(clos, c.old, c.new, 1)
		if _, _, err := (Imports{}).Import("clos.clab.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}

// TestPortsOfP4Utils: links without port numbers get the same ones as in
// p4-utils, in the order of the nodes' names instead of the order of the links.
func TestPortsOfP4Utils(t *testing.T) {
	const app = `{"topology": {"assignment_strategy": "mixed", "hosts": {"h1": {}, "h3": {}, "h10": {}}, "switches": {"s1": {}, "s2": {}, "s10": {}},
	  "links": [["s1", "s10"], ["s2", "s1"], ["h1", "s1"], ["h10", "s1", {"port2": 3}], ["h3", "s1"]]}}`
	topology, _, err := Imports{}.Import("p4app.json", []byte(app))
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, l := range topology.Links {
		links = append(links, l.String())
	}
	// In order of names: h1-s1, h3-s1, h10-s1 (port 3), s1-s10, s2-s1.
	if got, want := strings.Join(links, " "), "s1:4-s10:1 s2:1-s1:5 h1-s1:1 h10-s1:3 h3-s1:2"; got != want {
		t.Errorf("the links are %s, want %s", got, want)
	}
}
