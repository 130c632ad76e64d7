package fabric

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A draft is a topology that may be incomplete or invalid. Each item has its
// line, which is 0 if the draft does not come from a file.
type draft struct {
	name, about string
	switches    []draftSwitch
	hosts       []draftHost
	links       []draftLink
	services    []draftService
}

type draftService struct {
	line int
	Service
}

type draftSwitch struct {
	line         int
	name         string
	role         Role    // "": derived from the positions of the hosts
	id           *uint64 // nil: the next free one
	grpc, thrift string  // "": the next free port of this machine
	buffer       Size
	front        Front
}

type draftHost struct {
	line int
	name string
	ip   netip.Prefix // invalid: derived from the number of the leaf and of the host at it
	mac  *MAC         // nil: derived from the address
	nic  string       // the host of which this is an additional port; "" if none
}

type draftLink struct {
	line  int
	a, b  End // port 0: the next free one
	rate  Rate
	delay time.Duration
	queue int
	down  bool
	Signal
}

func (l draftLink) String() string { return Link{A: l.a, B: l.b}.String() }

// maxLinks is far above the capacity of a controller, as is maxNodes.
const maxLinks = 200_000

// finish completes and checks the draft. file is its name in messages.
func (d *draft) finish(file string) (*Topology, error) {
	f := &finisher{draft: d, reporter: reporter{file: file}}
	for _, step := range []func(){f.names, f.nics, f.joints, f.connected, f.portNumbers, f.switchData, f.hostData, f.serviceData} {
		step()
		if err := f.err(); err != nil {
			return nil, err // later steps would only report consequences of these errors
		}
	}
	f.t.index()
	return &f.t, nil
}

// A finisher turns a draft into a topology, step by step.
type finisher struct {
	*draft
	reporter
	t Topology

	nodes map[string]int // like Topology.nodes
	links [][]int        // by node: indices in draft.links

	sameNIC map[int][]int // for nodes that are ports of one NIC: the other ports
}

var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)
})

// names checks the names and creates the nodes.
func (f *finisher) names() {
	f.nodes = map[string]int{}
	f.t.Name, f.t.About = f.name, f.about
	for _, s := range f.switches {
		f.addName(s.line, "switch", s.name)
		f.t.Switches = append(f.t.Switches, Switch{Name: s.name, Role: s.role, GRPC: s.grpc, Thrift: s.thrift, Buffer: s.buffer, Front: s.front})
	}
	for _, h := range f.hosts {
		f.addName(h.line, "host", h.name)
		f.t.Hosts = append(f.t.Hosts, Host{Name: h.name, IP: h.ip, NIC: h.nic})
	}
	if len(f.switches) == 0 {
		f.errorf(0, "no switches: want at least one")
	}
	if n := len(f.switches) + len(f.hosts); n > maxNodes {
		f.errorf(0, "%d nodes: want at most %d", n, maxNodes)
	}
	if n := len(f.draft.links); n > maxLinks {
		f.errorf(0, "%d links: want at most %d", n, maxLinks)
	}
}

func (f *finisher) addName(line int, what, name string) {
	if !namePattern().MatchString(name) {
		f.errorf(line, "%s %q: want a name of up to 63 letters, digits, '.', '_' and '-' that starts with a letter", what, name)
	}
	if _, ok := f.nodes[name]; ok {
		f.errorf(line, "there are two nodes %s: want different names", name)
	}
	f.nodes[name] = len(f.nodes)
}

func (f *finisher) isHost(node string) bool { return f.nodes[node] >= len(f.switches) }

// joints checks that each link connects two nodes that may be connected.
func (f *finisher) joints() {
	f.links = make([][]int, len(f.nodes))
	for i, l := range f.draft.links {
		if !f.known(l, l.a.Node) || !f.known(l, l.b.Node) {
			continue
		}
		for _, e := range []End{l.a, l.b} {
			n := f.nodes[e.Node]
			f.links[n] = append(f.links[n], i)
			if f.isHost(e.Node) && e.Port != 0 {
				f.errorf(l.line, "link %v: %s is a host: want it without a port", l, e.Node)
			}
		}
		switch {
		case l.a.Node == l.b.Node:
			f.errorf(l.line, "link %v joins %s to itself: want two nodes", l, l.a.Node)
		case f.isHost(l.a.Node) && f.isHost(l.b.Node):
			f.errorf(l.line, "link %v joins two hosts: want a switch at one end", l)
		case l.rate <= 0:
			f.errorf(l.line, "link %v has no rate: give it one, as in rate: 1Gbps, or set one under defaults", l)
		}
	}
}

// known checks that a node exists and reports an error otherwise.
func (f *finisher) known(l draftLink, node string) bool {
	if _, ok := f.nodes[node]; ok {
		return true
	}
	near := ""
	if len(f.found) < maxErrors { // further errors are not shown
		near = plain.Meant(node, slices.Sorted(maps.Keys(f.nodes)))
	}
	f.errorf(l.line, "link %v: there is no node %s%s", l, node, near)
	return false
}

// connected checks that each host has one link and that all nodes are
// connected. Links that are down count, because they can come up.
func (f *finisher) connected() {
	for i, h := range f.hosts {
		switch n := len(f.links[len(f.switches)+i]); {
		case n == 0:
			f.errorf(h.line, "host %s has no link: want one to a switch", h.name)
		case n > 1:
			f.errorf(h.line, "host %s has %d links: want one", h.name, n)
		}
	}
	far := f.distances([]int{0})
	for i, s := range f.switches {
		if far[i] < 0 {
			f.errorf(s.line, "no path from switch %s to %s: want a link between the two parts of the network", s.name, f.switches[0].name)
			return
		}
	}
}

// portNumbers checks the given port numbers and assigns the others in the order
// of the links, each the smallest free number.
func (f *finisher) portNumbers() {
	used := make([]map[int]int, len(f.switches)) // link by port
	for i := range used {
		used[i] = map[int]int{cpuPort: -1}
	}
	for i, l := range f.draft.links {
		for _, e := range []End{l.a, l.b} {
			if e.Port != 0 {
				f.takePort(used[f.nodes[e.Node]], i, e)
			}
		}
	}
	next := make([]int, len(f.switches))
	assign := func(e End) End {
		if n := f.nodes[e.Node]; !f.isHost(e.Node) && e.Port == 0 {
			for {
				next[n]++
				if _, ok := used[n][next[n]]; !ok {
					break
				}
			}
			e.Port = next[n]
		}
		return e
	}
	for _, l := range f.draft.links {
		link := Link{A: assign(l.a), B: assign(l.b), Rate: l.rate, Delay: l.delay, Queue: l.queue, Down: l.down, Signal: l.Signal}
		f.t.Links = append(f.t.Links, link)
		if max(link.A.Port, link.B.Port) > MaxPort {
			f.errorf(l.line, "link %v: no port is left: a switch has %d", link, MaxPort)
			return
		}
	}
}

func (f *finisher) takePort(used map[int]int, link int, e End) {
	l := f.draft.links[link]
	if other, ok := used[e.Port]; ok && other >= 0 {
		f.errorf(l.line, "link %v: port %d of %s is taken by %v: want another", l, e.Port, e.Node, f.draft.links[other])
		return
	}
	used[e.Port] = link
}

// switchData completes the roles, ids and addresses of the switches.
func (f *finisher) switchData() {
	f.assignRoles()
	f.assignIDs()
	// Thrift uses the ports after simple_switch_grpc's usual ones, as in other
	// tools.
	grpc, thrift := 9559, 9090
	if thrift+len(f.switches) > grpc {
		thrift = grpc + len(f.switches)
	}
	f.assignAddresses("grpc", grpc, func(s *Switch) *string { return &s.GRPC })
	f.assignAddresses("thrift", thrift, func(s *Switch) *string { return &s.Thrift })
}

// assignIDs gives each switch without an id the smallest free one, from 1.
func (f *finisher) assignIDs() {
	type device struct {
		grpc string
		id   uint64
	}
	used, devices := map[uint64]bool{}, map[device]string{}
	for _, s := range f.switches {
		if s.id == nil {
			continue
		}
		d := device{s.grpc, *s.id}
		if other, ok := devices[d]; ok {
			f.errorf(s.line, "switch %s has the id %d of switch %s: want another, or each its own grpc address", s.name, *s.id, other)
		}
		used[*s.id], devices[d] = true, s.name
	}
	next := uint64(1)
	for i, s := range f.switches {
		if s.id != nil {
			f.t.Switches[i].ID = *s.id
			continue
		}
		for used[next] {
			next++
		}
		f.t.Switches[i].ID = next
		next++
	}
}

// assignAddresses checks one address of each switch, and gives switches without
// one consecutive ports of this machine.
func (f *finisher) assignAddresses(key string, port int, field func(*Switch) *string) {
	used := map[string]string{}
	for i, s := range f.switches {
		addr := *field(&f.t.Switches[i])
		if addr == "" {
			continue
		}
		if err := checkAddress(addr); err != nil {
			f.errorf(s.line, "switch %s: %s %v", s.name, key, err)
		}
		// One P4Runtime server may serve several devices.
		if other, ok := used[addr]; ok && key == "thrift" {
			f.errorf(s.line, "switch %s: %s %s is in use by switch %s: want another", s.name, key, addr, other)
		}
		used[addr] = s.name
	}
	for i := range f.switches {
		addr := field(&f.t.Switches[i])
		for ; *addr == ""; port++ {
			if port > 65535 {
				f.errorf(0, "no %s port is left for switch %s: give the switches addresses", key, f.switches[i].name)
				return
			}
			if free := fmt.Sprintf("127.0.0.1:%d", port); used[free] == "" {
				*addr = free
			}
		}
	}
}

func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, e := strconv.Atoi(port)
	if err != nil || e != nil || host == "" || n < 1 || n > 65535 {
		return fmt.Errorf("%q: want host:port such as 127.0.0.1:9559", addr)
	}
	return nil
}

// assignRoles gives each switch without a role one by its distance from the
// nearest host: leaf and spine in a network of two tiers, tor, agg and core in
// a higher one.
func (f *finisher) assignRoles() {
	far := f.heights()
	names := []Role{Leaf, Spine}
	if len(far) > 0 && slices.Max(far) > 1 {
		names = []Role{roleToR, roleAgg, roleCore}
	}
	for i := range f.switches {
		if f.t.Switches[i].Role == "" {
			f.t.Switches[i].Role = names[min(max(far[i], 0), len(names)-1)]
		}
		if far[i] == 0 && f.t.Switches[i].Role.Tier() > 1 {
			f.errorf(f.switches[i].line, "switch %s has hosts and the role %s: want the role leaf or tor", f.switches[i].name, f.t.Switches[i].Role)
		}
	}
}

// heights returns the number of links from each switch to the nearest switch
// with hosts, or -1 if there are no hosts.
func (f *finisher) heights() []int {
	var leaves []int
	for i := range f.switches {
		if slices.ContainsFunc(f.links[i], func(l int) bool {
			return f.isHost(f.draft.links[l].a.Node) || f.isHost(f.draft.links[l].b.Node)
		}) {
			leaves = append(leaves, i)
		}
	}
	return f.distances(leaves)[:len(f.switches)]
}

// distances returns the number of links from each node to the nearest of the
// given ones, or -1 if there is no path.
func (f *finisher) distances(from []int) []int {
	far := slices.Repeat([]int{-1}, len(f.nodes))
	for _, n := range from {
		far[n] = 0
	}
	for todo := from; len(todo) > 0; todo = todo[1:] {
		for _, n := range f.sameNIC[todo[0]] {
			if far[n] < 0 {
				far[n] = far[todo[0]]
				todo = append(todo, n)
			}
		}
		for _, l := range f.links[todo[0]] {
			for _, e := range []End{f.draft.links[l].a, f.draft.links[l].b} {
				if n := f.nodes[e.Node]; far[n] < 0 {
					far[n] = far[todo[0]] + 1
					todo = append(todo, n)
				}
			}
		}
	}
	return far
}
