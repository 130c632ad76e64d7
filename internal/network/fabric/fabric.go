// Package fabric describes a network of switches and hosts and computes the
// data that its switches need: addresses, shortest and k-shortest paths, groups
// of next hops, and routes.
package fabric

// # From a file to tables
//
// A file, a generator (LeafSpine, FatTree), a preset or an import results in a
// draft, which may be mostly empty. finish completes and checks the draft and
// returns a Topology, which needs no further checks. A Topology is immutable;
// Fail and Restore return another one.
//
// Missing values are derived from the others and their order in the file, never
// from random numbers or the clock: ports from the order of the links,
// addresses from the leaf and the host's number at it, MACs from the address or
// from switch and port. A failed link keeps its ports, so nothing is
// renumbered.
//
// Routes minimize the number of hops, as in all the papers. Each link that
// brings a packet nearer to its destination is a next hop; parallel links are
// separate next hops. A switch routes by the leaf of a destination, so paths
// are computed to leaves instead of hosts.

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Role is the function of a switch. It determines its row in a drawing and
// which switches are above and below it.
type Role string

// The roles in networks of two and of three tiers, as in p4lb gen --role.
const (
	Leaf  Role = "leaf"
	Spine Role = "spine"

	roleToR  Role = "tor" // top of rack, also called edge
	roleAgg  Role = "agg"
	roleCore Role = "core"
)

var roles = []Role{Leaf, Spine, roleToR, roleAgg, roleCore}

// Tier returns the height of the role above the hosts: 1 for leaf and tor, 2
// for spine and agg, 3 for core. Hosts have tier 0.
func (r Role) Tier() int {
	switch r {
	case Leaf, roleToR:
		return 1
	case Spine, roleAgg:
		return 2
	}
	return 3
}

// A Topology is a complete and valid network. It must not be changed.
type Topology struct {
	Name     string
	About    string
	Switches []Switch
	Hosts    []Host
	Links    []Link
	Services []Service

	nodes  map[string]int // switches from 0 in their order, then hosts
	ports  [][]Port       // by switch, in the order of port numbers
	byPort []map[int]int  // by switch: index in ports, by port number
	leaves []int          // the switches with hosts

	destinations []Destination
	routes       func() *Routes // computes the routes once
}

// A Switch is a switch with the addresses of its control interfaces.
type Switch struct {
	Name   string
	Role   Role
	ID     uint64 // P4Runtime's device_id
	GRPC   string // host:port of its P4Runtime server
	Thrift string // host:port of its Thrift server
	Buffer Size   // shared by its ports; 0: unknown
	Front  Front  // the names of its ports; nil: unknown

	// Leaf is the number of a switch with hosts, counted from 1 in their order;
	// 0 for other switches.
	Leaf int
}

// A Host is a host. It has one link.
type Host struct {
	Name string
	IP   netip.Prefix // the address with the prefix length of its subnet
	MAC  MAC

	Switch string // the switch that it is connected to
	Port   int    // the port of that switch

	NIC string // the host of which this is an additional port; "" for its first port
}

// A Service is an address that several hosts serve. The program of the switches forwards
// its packets to one of them.
type Service struct {
	Name    string
	Address netip.Addr // an address that no host has
	Port    int        // port of TCP or UDP; 0: all ports
	Servers []string   // names of hosts
	// Direct: the servers accept packets to Address, and answer from it. The program
	// changes only the destination MAC of packets to a server.
	Direct bool
	// Drained are the servers outside the pool: the program sends them no new connections.
	Drained []string
}

// A Link connects two switches, or a host and a switch. Both directions have
// the same properties.
type Link struct {
	A, B  End
	Rate  Rate
	Delay time.Duration // one way
	Queue int           // capacity of a port's queue in packets; 0: unknown
	Down  bool
	Signal
}

// A Signal is the electrical configuration of the ports at both ends of a link, for
// Tofino. Empty values are the defaults of the SDE.
type Signal struct {
	FEC     string `json:"fec,omitempty"`     // none, fc or rs
	AutoNeg string `json:"autoneg,omitempty"` // on or off
	Lanes   int    `json:"lanes,omitempty"`   // number of lanes for the port's speed
}

// Has reports whether a port has all the values that are set in want.
func (s Signal) Has(want Signal) bool {
	return (want.FEC == "" || want.FEC == s.FEC) && (want.AutoNeg == "" || want.AutoNeg == s.AutoNeg) && (want.Lanes == 0 || want.Lanes == s.Lanes)
}

// Text describes the values that are set, such as "FEC rs, 4 lanes".
func (s Signal) Text() string {
	var list []string
	if s.FEC != "" {
		list = append(list, "FEC "+s.FEC)
	}
	if s.AutoNeg != "" {
		list = append(list, "auto-negotiation "+s.AutoNeg)
	}
	if s.Lanes > 0 {
		list = append(list, fmt.Sprintf("lanes %d", s.Lanes))
	}
	return strings.Join(list, ", ")
}

// String names the link by its ends, such as l1:3-s1:1.
func (l Link) String() string { return l.A.String() + "-" + l.B.String() }

// An End is an end of a link: a port of a switch, or a host with Port 0.
type End struct {
	Node string
	Port int
}

// String formats the end as in a topology file: l1:3, or h1.
func (e End) String() string {
	if e.Port == 0 {
		return e.Node
	}
	return e.Node + ":" + strconv.Itoa(e.Port)
}

// MaxPort is the largest port number: v1model's ports have 9 bits, and 511
// means drop.
const MaxPort = 510

// cpuPort is the port that BMv2 and Tofino usually reserve for the controller.
// It is assigned to a link only on request.
const cpuPort = 255

// A Port is an end of a link at a switch.
type Port struct {
	Number int
	MAC    MAC
	Link   int // index in Topology.Links
	Rate   Rate
	Delay  time.Duration
	Queue  int
	Down   bool
	Signal

	Peer     string // the node at the other end
	PeerPort int
	PeerMAC  MAC
	PeerTier int // 0: the peer is a host
}

// Switch returns the named switch, or nil.
func (t *Topology) Switch(name string) *Switch {
	if i, ok := t.switchIndex(name); ok {
		return &t.Switches[i]
	}
	return nil
}

// Host returns the named host, or nil.
func (t *Topology) Host(name string) *Host {
	if i, ok := t.nodes[name]; ok && i >= len(t.Switches) {
		return &t.Hosts[i-len(t.Switches)]
	}
	return nil
}

// Ports returns the connected ports of the named switch in order of their
// numbers, or nil if there is no such switch.
func (t *Topology) Ports(name string) []Port {
	if i, ok := t.switchIndex(name); ok {
		return t.ports[i]
	}
	return nil
}

// PortOf returns the port of the switch to which a host is connected.
func (t *Topology) PortOf(h *Host) Port {
	i, _ := t.switchIndex(h.Switch)
	return t.ports[i][t.byPort[i][h.Port]]
}

// Leaves returns the switches with hosts; index i has number i+1.
func (t *Topology) Leaves() []*Switch {
	return lists.Map(t.leaves, func(s int) *Switch { return &t.Switches[s] })
}

// FindLinks returns the indexes in Links of the links that text names: one link
// by an end, as in l1:3 or h1, or all links between two nodes, as in l1-s1.
func (t *Topology) FindLinks(text string) ([]int, error) {
	var found []int
	for i, l := range t.Links {
		if text == l.String() || text == l.A.String() || text == l.B.String() ||
			text == l.A.Node+"-"+l.B.Node || text == l.B.Node+"-"+l.A.Node {
			found = append(found, i)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no link %q: want a port, as in l1:3, or two nodes, as in l1-s1", text)
	}
	return found, nil
}

// Fail returns the topology with the given links (indexes in Links) down.
func (t *Topology) Fail(links ...int) *Topology { return t.with(true, links) }

// A Member is a server of a service.
type Member struct{ Service, Server string }

// Drain returns the topology with servers outside the pools of their services.
func (t *Topology) Drain(members ...Member) *Topology {
	u := t.clone()
	u.Services = slices.Clone(t.Services)
	for i := range u.Services {
		s := &u.Services[i]
		s.Drained = slices.Clone(s.Drained)
		for _, m := range members {
			if m.Service == s.Name {
				s.Drained = lists.Add(s.Drained, m.Server)
			}
		}
	}
	return u
}

// Restore returns the topology with the given links (indexes in Links) up.
func (t *Topology) Restore(links ...int) *Topology { return t.with(false, links) }

// mostQueued is the maximum capacity of a port's queue in packets.
const mostQueued = 1 << 20

// WithLinks returns the topology with other rates, delays, queues and states of
// its links. links must have the same ends in the same order.
func (t *Topology) WithLinks(links []Link) (*Topology, error) {
	for _, l := range links {
		switch {
		case l.Delay < 0 || l.Delay > maxDelay:
			return nil, fmt.Errorf("link %v: delay %v: want a time of up to %v", l, l.Delay, maxDelay)
		case l.Queue < 0 || l.Queue > mostQueued:
			return nil, fmt.Errorf("link %v: queue %d: want a number from 1 to %d", l, l.Queue, mostQueued)
		}
	}
	u := t.clone()
	u.Switches, u.Links = slices.Clone(t.Switches), links
	u.index()
	return u, nil
}

// clone returns a shallow copy, for a change of its lists. It computes its own routes.
func (t *Topology) clone() *Topology {
	u := *t
	u.routes = sync.OnceValue(u.findRoutes)
	return &u
}

func (t *Topology) with(down bool, links []int) *Topology {
	u := t.clone()
	u.Links, u.ports = slices.Clone(t.Links), slices.Clone(t.ports)
	for _, i := range links {
		u.Links[i].Down = down
		for _, e := range []End{u.Links[i].A, u.Links[i].B} {
			if s, ok := u.switchIndex(e.Node); ok {
				u.ports[s] = slices.Clone(u.ports[s])
				u.ports[s][u.byPort[s][e.Port]].Down = down
			}
		}
	}
	return u
}

// failed reports whether any link is down.
func (t *Topology) failed() bool {
	return slices.ContainsFunc(t.Links, func(l Link) bool { return l.Down })
}

func (t *Topology) switchIndex(name string) (int, bool) {
	i, ok := t.nodes[name]
	return i, ok && i < len(t.Switches)
}

// leafOf returns the switch that the named node is connected to, or the node
// itself if it is a switch.
func (t *Topology) leafOf(name string) (int, error) {
	if h := t.Host(name); h != nil {
		name = h.Switch
	}
	i, ok := t.switchIndex(name)
	if !ok {
		return 0, fmt.Errorf("there is no switch or host %q", name)
	}
	return i, nil
}

// index computes the unexported fields.
func (t *Topology) index() {
	t.nodes = make(map[string]int, len(t.Switches)+len(t.Hosts))
	for i := range t.Switches {
		t.nodes[t.Switches[i].Name] = i
	}
	for i := range t.Hosts {
		t.nodes[t.Hosts[i].Name] = len(t.Switches) + i
	}
	t.ports = make([][]Port, len(t.Switches))
	for i, l := range t.Links {
		t.addPort(i, l, l.A, l.B)
		t.addPort(i, l, l.B, l.A)
	}
	t.byPort = make([]map[int]int, len(t.Switches))
	for i, list := range t.ports {
		slices.SortFunc(list, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
		t.byPort[i] = make(map[int]int, len(list))
		for k, p := range list {
			t.byPort[i][p.Number] = k
		}
	}
	t.leaves = nil
	for i, list := range t.ports {
		if slices.ContainsFunc(list, func(p Port) bool { return p.PeerTier == 0 }) {
			t.leaves = append(t.leaves, i)
			t.Switches[i].Leaf = len(t.leaves)
		}
	}
	t.destinations = t.findDestinations()
	t.routes = sync.OnceValue(t.findRoutes)
}

func (t *Topology) addPort(i int, l Link, here, there End) {
	s, ok := t.switchIndex(here.Node)
	if !ok {
		return
	}
	p := Port{
		Number: here.Port, MAC: portMAC(s, here.Port), Link: i,
		Rate: l.Rate, Delay: l.Delay, Queue: l.Queue, Down: l.Down, Signal: l.Signal,
		Peer: there.Node, PeerPort: there.Port,
	}
	if k, ok := t.switchIndex(there.Node); ok {
		p.PeerMAC, p.PeerTier = portMAC(k, there.Port), t.Switches[k].Role.Tier()
	} else {
		p.PeerMAC = t.Host(there.Node).MAC
	}
	t.ports[s] = append(t.ports[s], p)
}
