package p4app

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Graph returns a topology as the topology.json that p4-utils' controllers load:
// the node-link form of networkx. Versions of networkx before 3.4 read the edges
// from "links", later ones from "edges". cpu maps switches to CPU ports.
func Graph(t *fabric.Topology, cpu map[string]int) ([]byte, error) {
	type object map[string]any
	var nodes []object
	for _, s := range t.Switches {
		n := object{
			"id": s.Name, "isSwitch": true, "isP4Switch": true, "isP4RuntimeSwitch": true, "isHost": false, "isRouter": false,
			"device_id": s.ID, "cpu_port": true, "cpu_port_num": cpu[s.Name],
		}
		for key, address := range map[string]string{"grpc": s.GRPC, "thrift": s.Thrift} {
			if address == "" {
				continue
			}
			host, text, err := net.SplitHostPort(address)
			port, wrong := strconv.Atoi(text)
			if err != nil || wrong != nil {
				return nil, fmt.Errorf("switch %s: %s %q: want host:port", s.Name, key, address)
			}
			n[key+"_ip"], n[key+"_port"] = host, port
		}
		nodes = append(nodes, n)
	}
	for _, h := range t.Hosts {
		nodes = append(nodes, object{
			"id": h.Name, "isSwitch": false, "isP4Switch": false, "isP4RuntimeSwitch": false, "isHost": true, "isRouter": false,
			"ip": h.IP.String(), "mac": h.MAC.String(),
		})
	}
	var edges []object
	known := map[[2]string]bool{}
	for _, l := range t.Links {
		pair := [2]string{min(l.A.Node, l.B.Node), max(l.A.Node, l.B.Node)}
		if known[pair] {
			return nil, fmt.Errorf("%s and %s have several links: topology.json has one for each pair of nodes", l.A.Node, l.B.Node)
		}
		known[pair] = true
		e := object{
			"source": l.A.Node, "target": l.B.Node, "node1": l.A.Node, "node2": l.B.Node,
			"weight": 1, "bw": float64(l.Rate) / 1e6, "delay": l.Delay.String(),
		}
		if l.Queue > 0 {
			e["max_queue_size"] = l.Queue
		}
		for i, end := range []fabric.End{l.A, l.B} {
			place := strconv.Itoa(i + 1)
			e["port"+place] = end.Port
			if h := t.Host(end.Node); h != nil {
				e["intfName"+place], e["addr"+place], e["ip"+place] = "eth0", h.MAC.String(), h.IP.String()
				continue
			}
			e["intfName"+place] = fmt.Sprintf("%s-eth%d", end.Node, end.Port)
			for _, p := range t.Ports(end.Node) {
				if p.Number == end.Port {
					e["addr"+place] = p.MAC.String()
				}
			}
		}
		edges = append(edges, e)
	}
	text, err := json.MarshalIndent(object{"directed": false, "multigraph": false, "graph": object{}, "nodes": nodes, "links": edges, "edges": edges}, "", " ")
	return append(text, '\n'), err
}
