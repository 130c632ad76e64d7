package sim

import (
	"errors"
)

// A host may have several ports, each in its own plane: see fabric.Host.NIC. In the network, each
// port is a separate Host. A flow connects the first ports. Its sender chooses a plane: for each
// packet, by the packet's source port, if it chooses source ports per packet, and otherwise once
// for the flow. A packet travels between ports of the same plane, and the receiver answers in
// that plane. A sender avoids a plane if its own port there is down, or if the controller has
// reported that no path leads to the receiver's port.

// planeQueue is the number of full packets that each port of a host with several ports may queue.
// It keeps a port busy while a sender waits for another port.
const planeQueue = 4

// joinPorts joins the ports of each host.
func (n *Network) joinPorts() error {
	for _, places := range n.topology.HostPorts() {
		if len(places) < 2 {
			continue
		}
		if n.placed() {
			return errors.New("ties by place: hosts with several ports need ties in order")
		}
		first := n.hosts[places[0]]
		for _, i := range places {
			n.hosts[i].first = first
			first.ports = append(first.ports, n.hosts[i])
		}
	}
	return nil
}

// rate returns the rate in bit/s that a flow may send: the sum over all ports if its packets use
// all of them.
func (h *Host) rate(t *Tuning) int64 {
	if t == nil || t.Entropy == EntropyFlow || h.ports == nil {
		return int64(h.nic.Rate())
	}
	sum := int64(0)
	for _, p := range h.ports {
		sum += int64(p.nic.Rate())
	}
	return sum
}

// planeCount returns the number of planes in which both hosts have a port. Flows to a service use
// only the first plane, which has the service's address.
func (f *Flow) planeCount() int {
	if f.Service != nil {
		return 1
	}
	return max(1, min(len(f.Src.ports), len(f.Dst.ports)))
}

// SetBlocked sets a function that reports which pairs of ports senders avoid; nil: none.
func (n *Network) SetBlocked(blocked func(from, to *Host) bool) { n.blocked = blocked }

// livePlane returns the given plane, or the next usable one.
func (f *Flow) livePlane(from, to *Host, plane uint8) uint8 {
	count := f.planeCount()
	if count == 1 {
		return 0
	}
	for i := range count {
		k := (int(plane) + i) % count
		if a, b := from.ports[k], to.ports[k]; !a.nic.down && (f.net.blocked == nil || !f.net.blocked(a, b)) {
			return uint8(k)
		}
	}
	return plane
}

// sendOver sends a packet of the flow in the given plane.
func (f *Flow) sendOver(p *Packet, plane uint8) {
	if plane > 0 {
		p.plane = plane
		p.Src, p.Dst = p.Src.ports[plane], p.Dst.ports[plane]
		p.dstIndex = int32(p.Dst.place)
	}
	p.Src.Send(p)
}

// Leaf returns the switch that the port is connected to.
func (h *Host) Leaf() *Switch { return h.nic.peer.sw }
