package plan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A place is the context in which an expression of a manifest is evaluated: a switch,
// and the current element of each repetition.
type place struct {
	b     *planner
	facts map[manifest.Fact]int64
	way   *way
}

// A way describes how the switch reaches a destination.
type way struct {
	to      string // name of the host or leaf; "": neither
	hops    []fabric.Hop
	weights []uint64
	group   int          // 0: there is only one next hop
	first   int          // number of the group's first member, counted over all groups
	base    int          // total number of next hops of earlier groups
	prefix  netip.Prefix // prefix of a route
	nth     int          // index in the repetition
}

// Each calls do for every repetition.
func (b *planner) each(r *manifest.Repeat, do func(*place) error) error {
	if len(r.Switches) > 0 && !slices.Contains(r.Switches, b.sw.Name) || len(r.Roles) > 0 && !slices.Contains(r.Roles, string(b.sw.Role)) {
		return nil
	}
	return b.here().nest(r.Each.Words(), func(p *place) error {
		if ok, err := p.holds(r.Where); err != nil || !ok {
			return err
		}
		return do(p)
	})
}

// holds reports whether a condition is true. An empty condition is true.
func (p *place) holds(where manifest.Expr) (bool, error) {
	if where.IsZero() {
		return true, nil
	}
	v, err := where.Eval(p.fact)
	return v != 0, err
}

// here returns the place of the switch itself.
func (b *planner) here() *place {
	hosts := 0
	for _, p := range b.ports {
		if p.PeerTier == 0 {
			hosts++
		}
	}
	return &place{b: b, facts: map[manifest.Fact]int64{
		manifest.NodeNumber: int64(b.number), manifest.Home: int64(b.sw.Leaf), manifest.Tier: int64(b.sw.Role.Tier()),
		manifest.PortTotal: int64(len(b.ports)), manifest.HostTotal: int64(hosts), manifest.CPU: int64(b.out.CPUPort),
	}}
}

// with returns the place with additional facts, which override existing ones.
func (p *place) with(more map[manifest.Fact]int64) *place {
	for name, v := range p.facts {
		if _, ok := more[name]; !ok {
			more[name] = v
		}
	}
	return &place{b: p.b, facts: more, way: p.way}
}

// nest calls do for all combinations of the words' elements. The last word changes fastest.
func (p *place) nest(words []string, do func(*place) error) error {
	if len(words) == 0 {
		return do(p)
	}
	inner := func(q *place) error { return q.nest(words[1:], do) }
	if from, to, ok := manifest.Range(words[0]); ok {
		for i := from; i <= to; i++ {
			if err := inner(p.with(map[manifest.Fact]int64{manifest.RangeNumber: int64(i)})); err != nil {
				return err
			}
		}
		return nil
	}
	switch words[0] {
	case "port", "neighbour":
		return p.eachPort(words[0] == "neighbour", inner)
	case "path":
		return p.eachPath(inner)
	case "group":
		return p.eachGroup(inner)
	case "route":
		return p.eachRoute(inner)
	case "leaf":
		return p.eachLeaf(inner)
	case "source":
		return p.eachSource(inner)
	case "sender":
		return p.eachSender(inner)
	case "host":
		return p.eachHost(nil, inner)
	case "service":
		return p.eachService(inner)
	case "server":
		return p.eachHost(p.b.serverPools()[p.facts[manifest.ServiceNumber]-1], inner)
	}
	return fmt.Errorf("nothing is known about each %s", words[0])
}

func (p *place) eachPort(switches bool, do func(*place) error) error {
	for i := range p.b.ports {
		port := &p.b.ports[i]
		if switches && port.PeerTier == 0 {
			continue
		}
		facts := p.b.portFacts(port)
		facts[manifest.IngressPort], facts[manifest.FloodTo] = int64(port.Number), int64(p.b.onward(*port))
		if session, ok := p.b.sessionTo(*port); ok {
			facts[manifest.CloneTo] = int64(session)
		}
		t := p.b.plan.Topology
		if s := t.Switch(port.Peer); s != nil {
			facts[manifest.LeafNumber] = int64(s.Leaf)
		}
		facts[manifest.HostNumber], facts[manifest.HostAddress], facts[manifest.HostMAC], facts[manifest.IPv6] = 0, 0, 0, 0
		if h := t.Host(port.Peer); h != nil {
			facts[manifest.IPv6] = truth(h.IP.Addr().Is6())
			facts[manifest.HostNumber], facts[manifest.HostAddress], facts[manifest.HostMAC] = p.b.numberOf(h.Name), addressNumber(h.IP.Addr()), int64(macNumber(h.MAC))
		}
		if err := do(p.with(facts)); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) eachPath(do func(*place) error) error {
	for slot := range p.way.hops {
		if err := do(p.with(p.b.hopFacts(p.way, slot))); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) eachGroup(do func(*place) error) error {
	base := 0
	for i, g := range p.b.out.Routes.Groups {
		w := way{hops: g.Hops, weights: p.b.weights(g), group: g.ID, first: base, base: base, nth: i}
		if err := p.reached(w, map[manifest.Fact]int64{}, do); err != nil {
			return err
		}
		base += len(g.Hops)
	}
	return nil
}

func (p *place) eachRoute(do func(*place) error) error {
	base := 0
	for i, r := range p.b.out.Routes.Routes {
		w := p.b.wayOf(r)
		w.base, w.nth, w.prefix = base, i, r.Prefix
		facts := map[manifest.Fact]int64{
			manifest.Destination: addressNumber(r.Prefix.Addr()), manifest.PrefixLength: int64(r.Prefix.Bits()), manifest.IPv6: truth(r.Prefix.Addr().Is6()),
		}
		if err := p.reached(w, facts, do); err != nil {
			return err
		}
		base += len(w.hops)
	}
	return nil
}

func (p *place) eachLeaf(do func(*place) error) error {
	t, base := p.b.plan.Topology, 0
	for i, leaf := range t.Leaves() {
		h := slices.IndexFunc(t.Hosts, func(h fabric.Host) bool { return h.Switch == leaf.Name })
		w, ok := p.b.wayTo(t.Hosts[h].IP.Addr())
		if !ok || leaf.Name == p.b.sw.Name {
			continue
		}
		w.to, w.base, w.nth = leaf.Name, base, i
		if err := p.reached(w, map[manifest.Fact]int64{manifest.LeafNumber: int64(leaf.Leaf)}, do); err != nil {
			return err
		}
		base += len(w.hops)
	}
	return nil
}

// eachSource calls do for each leaf other than the place's destination.
func (p *place) eachSource(do func(*place) error) error {
	for _, leaf := range p.b.plan.Topology.Leaves() {
		if int64(leaf.Leaf) == p.facts[manifest.LeafNumber] {
			continue
		}
		if err := do(p.with(map[manifest.Fact]int64{manifest.SourceLeaf: int64(leaf.Leaf)})); err != nil {
			return err
		}
	}
	return nil
}

// eachSender calls do for each host other than the place's destination.
func (p *place) eachSender(do func(*place) error) error {
	t := p.b.plan.Topology
	for i, h := range t.Hosts {
		if int64(i+1) == p.facts[manifest.HostNumber] {
			continue
		}
		if err := do(p.with(map[manifest.Fact]int64{
			manifest.SenderNumber: int64(i + 1), manifest.SenderAddress: addressNumber(h.IP.Addr()), manifest.SenderLeaf: int64(t.Switch(h.Switch).Leaf),
		})); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) eachService(do func(*place) error) error {
	t := p.b.plan.Topology
	if len(t.Services) == 0 {
		return fmt.Errorf("each service: topology %s has no services: want services: {web: {address: …, servers: […]}}", t.Name)
	}
	for i := range t.Services {
		s := &t.Services[i]
		pool := p.b.serverPools()[i]
		if len(pool) == 0 {
			continue
		}
		if err := do(p.with(map[manifest.Fact]int64{
			manifest.ServiceNumber: int64(i + 1), manifest.ServiceAddress: addressNumber(s.Address), manifest.IPv6: truth(s.Address.Is6()),
			manifest.ServicePort: int64(s.Port), manifest.ServerTotal: int64(len(pool)), manifest.Serving: 0,
		})); err != nil {
			return err
		}
	}
	return nil
}

// serverPools returns the servers in the pool of each service: reachable ones that are not drained.
// A route for a prefix does not show that the link of a host is down.
func (b *planner) serverPools() [][]string {
	if b.pools != nil {
		return b.pools
	}
	t := b.plan.Topology
	b.pools = make([][]string, len(t.Services))
	for i := range t.Services {
		s := &t.Services[i]
		b.pools[i] = lists.Filter(s.Servers, func(name string) bool {
			h := t.Host(name)
			_, ok := b.wayTo(h.IP.Addr())
			return ok && !t.PortOf(h).Down && !slices.Contains(s.Drained, name)
		})
	}
	return b.pools
}

// eachHost calls do for each host, or for each server of a pool.
func (p *place) eachHost(pool []string, do func(*place) error) error {
	t, base, places := p.b.plan.Topology, 0, map[string]int{}
	for i, h := range t.Hosts {
		at := places[h.Switch]
		places[h.Switch]++
		index := -1
		if pool != nil {
			if index = slices.Index(pool, h.Name); index < 0 {
				continue
			}
		}
		w, ok := p.b.wayTo(h.IP.Addr())
		if !ok {
			continue
		}
		w.to, w.base, w.nth = h.Name, base, i
		facts := map[manifest.Fact]int64{
			manifest.HostNumber: int64(i + 1), manifest.HostPlace: int64(at),
			manifest.HostAddress: addressNumber(h.IP.Addr()), manifest.HostMAC: int64(macNumber(h.MAC)), manifest.IPv6: truth(h.IP.Addr().Is6()),
			manifest.LeafNumber: int64(t.Switch(h.Switch).Leaf), manifest.Here: truth(h.Switch == p.b.sw.Name),
		}
		if pool != nil {
			facts[manifest.ServerIndex] = int64(index)
		}
		if n := p.facts[manifest.ServiceNumber]; n > 0 {
			facts[manifest.Serving] = truth(slices.Contains(t.Services[n-1].Servers, h.Name))
		}
		if err := p.reached(w, facts, do); err != nil {
			return err
		}
		base += len(w.hops)
	}
	return nil
}

// reached calls do with the place extended by the destination of a way. If the way
// has several next hops but no table selects among them, the facts always name the
// same one.
func (p *place) reached(w way, facts map[manifest.Fact]int64, do func(*place) error) error {
	maps.Copy(facts, p.b.hopFacts(&w, w.nth%len(w.hops)))
	q := p.with(facts)
	q.way = &w
	return do(q)
}

// wayTo returns the way to an address, or false if it is unreachable.
func (b *planner) wayTo(ip netip.Addr) (way, bool) {
	for _, r := range b.out.Routes.Routes {
		if r.Prefix.Contains(ip) {
			return b.wayOf(r), true
		}
	}
	return way{}, false
}

func (b *planner) wayOf(r fabric.Route) way {
	first := 0
	for _, g := range b.out.Routes.Groups {
		if g.ID == r.Group {
			return way{hops: g.Hops, weights: b.weights(g), group: g.ID, first: first}
		}
		first += len(g.Hops)
	}
	return way{hops: []fabric.Hop{r.Hop}, weights: []uint64{1}}
}

// hopFacts returns the facts about one path of a way: its slot, port and addresses.
func (b *planner) hopFacts(w *way, slot int) map[manifest.Fact]int64 {
	port := b.port(w.hops[slot].Port)
	facts := b.portFacts(&port)
	facts[manifest.GroupID], facts[manifest.PathCount] = int64(w.group), int64(len(w.hops))
	facts[manifest.FirstMember], facts[manifest.MemberIndex] = int64(w.first), int64(w.first+slot)
	facts[manifest.FirstPath], facts[manifest.PathNumber] = int64(w.base), int64(w.base+slot)
	facts[manifest.NextPort] = 0
	if hops, err := b.plan.Routes.NextHops(port.Peer, w.to); err == nil && len(hops) > 0 && port.PeerTier > 0 {
		facts[manifest.NextPort] = int64(hops[0].Number)
	}
	facts[manifest.SlotNumber], facts[manifest.PathWeight] = int64(slot), int64(w.weights[slot])
	return facts
}

// portFacts returns the facts about a port with a link. It includes more than tables for ports
// need.
func (b *planner) portFacts(p *fabric.Port) map[manifest.Fact]int64 {
	facts := map[manifest.Fact]int64{
		manifest.FarPort: int64(p.PeerPort), manifest.LinkSpeed: int64(p.Rate / fabric.Mbps), manifest.LinkDelay: p.Delay.Microseconds(),
		manifest.LinkUp: truth(!p.Down), manifest.LeadsAbove: truth(p.PeerTier > b.sw.Role.Tier()), manifest.LeadsBelow: truth(p.PeerTier < b.sw.Role.Tier()),
		manifest.Neighbouring: 0,
	}
	if p.PeerTier > 0 {
		facts[manifest.Neighbouring] = b.numberOf(p.Peer)
	}
	about := b.aboutPort(*p)
	for _, f := range []manifest.Fact{
		manifest.EgressPort, manifest.OwnMAC, manifest.NextMAC, manifest.QueueNumber, manifest.ServiceTime,
		manifest.Capacity, manifest.Reciprocal, manifest.LinkRate,
	} {
		v, _ := about(f, 0)
		facts[f] = int64(v)
	}
	return facts
}

// numberOf returns the number of a switch or a host, counted from 1.
func (b *planner) numberOf(node string) int64 {
	t := b.plan.Topology
	if i := slices.IndexFunc(t.Switches, func(s fabric.Switch) bool { return s.Name == node }); i >= 0 {
		return int64(i + 1)
	}
	return int64(slices.IndexFunc(t.Hosts, func(h fabric.Host) bool { return h.Name == node }) + 1)
}

// fact returns the value of a fact. node is the node for facts about a node.
func (p *place) fact(f manifest.Fact, node string) (int64, error) {
	if a, ok := p.address(f, node); ok && a.Is6() {
		return 0, fmt.Errorf("$%s is %v, which has 128 bits: want it alone, as the value of a field of 128 bits, or where: \"!$ipv6\"", f, a)
	}
	if node != "" {
		return p.b.nodeFact(f, node)
	}
	v, ok := p.facts[f]
	if !ok {
		return 0, fmt.Errorf("there is no $%s here", f)
	}
	return v, nil
}

// nodeFact returns a fact about a named switch or host, or about the way to it.
func (b *planner) nodeFact(f manifest.Fact, node string) (int64, error) {
	t := b.plan.Topology
	sw, host := t.Switch(node), t.Host(node)
	switch {
	case sw == nil && host == nil:
		return 0, fmt.Errorf("topology %s has no %s", t.Name, node)
	case f == manifest.NodeNumber || f == manifest.HostNumber:
		return b.numberOf(node), nil
	case f == manifest.LeafNumber && host != nil:
		return int64(t.Switch(host.Switch).Leaf), nil
	case f == manifest.LeafNumber:
		return int64(sw.Leaf), nil
	case (f == manifest.HostAddress || f == manifest.HostMAC) && host == nil:
		return 0, fmt.Errorf("%s is a switch: $%s is one of hosts", node, f)
	case f == manifest.HostAddress:
		return addressNumber(host.IP.Addr()), nil
	case f == manifest.HostMAC:
		return int64(macNumber(host.MAC)), nil
	}
	w, err := b.wayToNode(node)
	if err != nil {
		return 0, fmt.Errorf("$%s(%s): %w", f, node, err)
	}
	return b.hopFacts(&w, 0)[f], nil
}

// wayToNode returns the way to a neighbour, a host or a leaf.
func (b *planner) wayToNode(node string) (way, error) {
	for _, p := range b.ports {
		if p.Peer == node {
			return way{hops: []fabric.Hop{{Port: p.Number, Dst: p.PeerMAC, Src: p.MAC}}, weights: []uint64{1}}, nil
		}
	}
	t := b.plan.Topology
	for _, h := range t.Hosts {
		if h.Name == node || h.Switch == node {
			if w, ok := b.wayTo(h.IP.Addr()); ok {
				return w, nil
			}
		}
	}
	return way{}, errors.New("there is no way from " + b.sw.Name)
}

// addressNumber returns the number of an IPv4 address. IPv6 addresses do not fit; expressions
// contain them as a whole.
func addressNumber(ip netip.Addr) int64 {
	if ip.Is6() {
		return 0
	}
	b := ip.As4()
	return int64(binary.BigEndian.Uint32(b[:]))
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
