package p4app

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Database returns a topology as the topology.db that controllers of the older
// p4-utils load, from 2018 to 2020 and for Python 2. It is an object of nodes. Each
// node has its ports and, by the names of its neighbours, its interfaces. cpu maps
// switches to CPU ports.
func Database(t *fabric.Topology, cpu map[string]int) ([]byte, error) {
	nodes := map[string]map[string]any{}
	for _, s := range t.Switches {
		host, text, err := net.SplitHostPort(s.Thrift)
		port, wrong := strconv.Atoi(text)
		if err != nil || wrong != nil {
			return nil, fmt.Errorf("switch %s: thrift %q: topology.db is for controllers over Thrift: want thrift: 127.0.0.1:9090", s.Name, s.Thrift)
		}
		nodes[s.Name] = map[string]any{
			"type": "switch", "subtype": "p4switch", "sw_id": s.ID, "thrift_ip": host, "thrift_port": port,
			"interfaces_to_node": map[string]string{},
			"interfaces_to_port": map[string]int{s.Name + "-cpu-eth1": cpu[s.Name]}, // p4-utils recognises the CPU port by "cpu" in its name
		}
	}
	for _, h := range t.Hosts {
		nodes[h.Name] = map[string]any{"type": "host", "interfaces_to_node": map[string]string{}, "interfaces_to_port": map[string]int{}}
	}
	for _, l := range t.Links {
		if nodes[l.A.Node][l.B.Node] != nil {
			return nil, fmt.Errorf("%s and %s have several links: topology.db has one for each pair of nodes", l.A.Node, l.B.Node)
		}
		for _, ends := range [][2]fabric.End{{l.A, l.B}, {l.B, l.A}} {
			node, peer := nodes[ends[0].Node], ends[1].Node
			link := map[string]any{"bw": float64(l.Rate) / 1e6, "loss": 0, "weight": 1, "delay": l.Delay.String(), "queue_length": -1}
			if l.Queue > 0 {
				link["queue_length"] = l.Queue
			}
			name, number := fmt.Sprintf("%s-eth%d", ends[0].Node, ends[0].Port), ends[0].Port
			if h := t.Host(ends[0].Node); h != nil {
				name, number = h.Name+"-eth0", 0
				link["ip"], link["mac"] = h.IP.String(), h.MAC.String()
			} else {
				link["ip"] = "None/None" // p4-utils' value for an interface without an address
				for _, p := range t.Ports(ends[0].Node) {
					if p.Number == ends[0].Port {
						link["mac"] = p.MAC.String()
					}
				}
			}
			link["intf"], node[peer] = name, link
			node["interfaces_to_node"].(map[string]string)[name] = peer
			node["interfaces_to_port"].(map[string]int)[name] = number
		}
	}
	text, err := json.MarshalIndent(nodes, "", " ")
	return append(text, '\n'), err
}
