package advice

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A Network contains the facts that parameters depend on.
type Network struct {
	Rate    float64       // rate of a link between switches in bit/s
	Delay   time.Duration // one-way delay of a link between switches
	RTT     time.Duration // round-trip time of the fastest path without queueing; 0: two links in both directions
	SlowRTT time.Duration // round-trip time of the slowest path; 0: RTT
	Paths   int           // number of paths between two leaves
	Hops    int           // number of queues on a path; 0: 2
	Leaves  int
	Hosts   int // number per leaf
	Buffer  int // packets that a port can queue
	MTU     int // size of an IP packet; 0: 1500

	ECN      int           // marking threshold in packets; 0: a quarter of the buffer
	PFC      float64       // pause threshold of an ingress port in bytes; 0: 256 KiB
	Incast   int           // number of senders to one receiver; 0: the hosts of a leaf
	FlowSize float64       // size of a long flow in bytes; 0: 1.6 MB, the mean of web search
	Flows    int           // number of flows that share the paths of a pair; 0: 1
	Recirc   time.Duration // delay of a recirculation; 0: the transmission time of a packet
}

func (n Network) withDefaults() Network {
	n.Hops = cmp.Or(n.Hops, 2)
	n.MTU = cmp.Or(n.MTU, 1500)
	n.ECN = cmp.Or(n.ECN, max(1, n.Buffer/4))
	n.Incast = cmp.Or(n.Incast, max(1, n.Hosts))
	n.Flows = cmp.Or(n.Flows, 1)
	n.RTT = cmp.Or(n.RTT, 4*n.Delay)
	n.SlowRTT = cmp.Or(n.SlowRTT, n.RTT)
	n.PFC = cmp.Or(n.PFC, 256<<10)
	n.FlowSize = cmp.Or(n.FlowSize, 1.6e6)
	if n.Recirc == 0 && n.Rate > 0 {
		n.Recirc = n.serve(1)
	}
	return n
}

// A need is a fact about the network that a scheme's formulas require. All formulas require the
// rate, the round-trip time and the MTU.
type need uint8

const (
	needPaths  need = 1 << iota // number of paths between two leaves
	needBuffer                  // capacity of a queue, and its marking threshold
	needHosts                   // number of leaves, and of hosts per leaf
)

// check returns an error for missing or impossible facts. Defaults must be filled in.
func (n Network) check(needs need) error {
	switch {
	case !(n.Rate > 0) || math.IsInf(n.Rate, 1):
		return fmt.Errorf("the rate of a link is %g bit/s: want one above 0", n.Rate)
	case n.RTT <= 0:
		return errors.New("neither the RTT nor the delay of a link is given")
	case n.SlowRTT < n.RTT:
		return fmt.Errorf("the slowest path has an RTT of %v, below the RTT of the fastest path, %v", n.SlowRTT, n.RTT)
	case n.MTU < 64 || n.MTU > 65535:
		return fmt.Errorf("an MTU of %d bytes: want 64 to 65535", n.MTU)
	case !(n.PFC > 0) || !(n.FlowSize >= float64(n.MTU)) || n.Recirc < 0:
		return fmt.Errorf("a PFC threshold of %g bytes and flows of %g: want at least an MTU", n.PFC, n.FlowSize)
	case n.Hops < 1 || n.Flows < 1:
		return fmt.Errorf("%d queues on a path and %d flows: want at least 1 of each", n.Hops, n.Flows)
	case needs&needPaths != 0 && (n.Paths < 1 || n.Paths > 64):
		return fmt.Errorf("%d paths between two leaves: want 1 to 64", n.Paths)
	case needs&needHosts != 0 && (n.Leaves < 1 || n.Hosts < 1 || n.Incast < 1):
		return fmt.Errorf("%d leaves of %d hosts: want at least 1 of each", n.Leaves, n.Hosts)
	case needs&needBuffer != 0 && n.Buffer < 4:
		return fmt.Errorf("a queue of %d packets: want at least 4", n.Buffer)
	case n.Buffer > 0 && (n.ECN < 1 || n.ECN > n.Buffer):
		return fmt.Errorf("marking from %d packets on in a queue of %d", n.ECN, n.Buffer)
	}
	return nil
}

// serve returns the transmission time of packets.
func (n Network) serve(packets int) time.Duration {
	return time.Duration(float64(packets*n.MTU*8) / n.Rate * 1e9)
}

// pps returns the rate in packets/s.
func (n Network) pps() float64 { return n.Rate / 8 / float64(n.MTU) }

// Of describes a topology. It considers the paths between the first leaf and the leaf farthest
// from it.
func Of(t *fabric.Topology) (n Network, err error) {
	leaves := t.Leaves()
	n.Leaves = len(leaves)
	perLeaf := map[string]int{}
	for _, h := range t.Hosts {
		perLeaf[h.Switch]++
		n.Hosts = max(n.Hosts, perLeaf[h.Switch])
	}
	routes := t.Routes()
	far, links := "", 0
	for _, other := range leaves[1:] {
		if span, ok := routes.Span(leaves[0].Name, other.Name); ok && span.Links > links {
			far, links = other.Name, span.Links
		}
	}
	if far == "" {
		return n, errors.New("there is no path between two leaves")
	}
	paths, err := routes.Paths(leaves[0].Name, far)
	if err != nil {
		return n, err
	}
	n.Paths, n.Hops = len(paths), len(paths[0].Nodes)-1
	n.follow(t, paths)
	if n.Buffer == 0 {
		// The ports share the buffer, so each counts an equal part, in packets of
		// 1500 bytes.
		n.Buffer = int(leaves[0].Buffer) / len(t.Ports(leaves[0].Name)) / 1500
	}
	return n, nil
}

// follow sets the rate of the fastest path, the round-trip times of the fastest and the slowest
// path, and the shortest queue.
func (n *Network) follow(t *fabric.Topology, paths []fabric.Path) {
	hosts := 2 * (hostDelay(t, paths[0].Nodes[0]) + hostDelay(t, paths[0].Nodes[len(paths[0].Nodes)-1]))
	for i, p := range paths {
		n.Rate = max(n.Rate, float64(p.Rate))
		rtt := 2*p.Delay + hosts
		if i == 0 || rtt < n.RTT {
			n.RTT = rtt
		}
		n.SlowRTT = max(n.SlowRTT, rtt)
		for _, l := range p.Links {
			link := t.Links[l]
			n.Delay = max(n.Delay, link.Delay)
			if link.Queue > 0 && (n.Buffer == 0 || link.Queue < n.Buffer) {
				n.Buffer = link.Queue
			}
		}
	}
}

// hostDelay returns the delay between a leaf and its first host.
func hostDelay(t *fabric.Topology, leaf string) time.Duration {
	i := slices.IndexFunc(t.Hosts, func(h fabric.Host) bool { return h.Switch == leaf })
	if i < 0 {
		return 0
	}
	name := t.Hosts[i].Name
	for _, l := range t.Links {
		if l.A.Node == name || l.B.Node == name {
			return l.Delay
		}
	}
	return 0
}

// settings are the values that Set accepts, each with an example.
var settings = []struct {
	name, example, about string
	set                  func(n *Network, text string) error
}{
	{"rate", "40G", "rate of a link between switches", func(n *Network, s string) error {
		r, err := fabric.ParseRate(s)
		n.Rate = float64(r)
		return err
	}},
	{"delay", "2us", "one-way delay of a link between switches", delayOf(func(n *Network) *time.Duration { return &n.Delay })},
	{"rtt", "100us", "round-trip time of the fastest path without queueing", delayOf(func(n *Network) *time.Duration { return &n.RTT })},
	{"slow-rtt", "300us", "round-trip time of the slowest path", delayOf(func(n *Network) *time.Duration { return &n.SlowRTT })},
	{"paths", "8", "number of paths between two leaves", countOf(func(n *Network) *int { return &n.Paths })},
	{"hops", "2", "number of queues on a path", countOf(func(n *Network) *int { return &n.Hops })},
	{"leaves", "8", "number of leaves", countOf(func(n *Network) *int { return &n.Leaves })},
	{"hosts", "32", "number of hosts per leaf", countOf(func(n *Network) *int { return &n.Hosts })},
	{"buffer", "256", "queue capacity of a port in packets", countOf(func(n *Network) *int { return &n.Buffer })},
	{"mtu", "1500", "packet size in bytes", countOf(func(n *Network) *int { return &n.MTU })},
	{"ecn", "65", "queue length in packets from which switches mark", countOf(func(n *Network) *int { return &n.ECN })},
	{"pfc", "256KiB", "pause threshold of an ingress port", sizeOf(func(n *Network) *float64 { return &n.PFC })},
	{"incast", "24", "number of simultaneous senders to one receiver", countOf(func(n *Network) *int { return &n.Incast })},
	{"flow-size", "1600KB", "size of a long flow", sizeOf(func(n *Network) *float64 { return &n.FlowSize })},
	{"flows", "10", "number of long flows that share the paths of two leaves", countOf(func(n *Network) *int { return &n.Flows })},
	{"recirc", "1us", "delay of a recirculation", delayOf(func(n *Network) *time.Duration { return &n.Recirc })},
}

// Settings describes the values that Set accepts, a line each, for help texts.
func Settings() string {
	var b strings.Builder
	for _, v := range settings {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-18s %s", v.name+"="+v.example, v.about), " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Set changes one value of the network, given as NAME=VALUE.
func (n *Network) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want NAME=VALUE")
	}
	var names []string
	for _, v := range settings {
		if v.name == name {
			return v.set(n, value)
		}
		names = append(names, v.name)
	}
	return fmt.Errorf("a network has no %s: want one of %s", name, strings.Join(names, ", "))
}

func countOf(field func(*Network) *int) func(*Network, string) error {
	return func(n *Network, s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return fmt.Errorf("%q: want a whole number above 0", s)
		}
		*field(n) = v
		return nil
	}
}

func sizeOf(field func(*Network) *float64) func(*Network, string) error {
	return func(n *Network, s string) error {
		v, err := fabric.ParseSize(s)
		*field(n) = float64(v)
		return err
	}
}

func delayOf(field func(*Network) *time.Duration) func(*Network, string) error {
	return func(n *Network, s string) (err error) {
		*field(n), err = fabric.ParseDelay(s)
		return err
	}
}
