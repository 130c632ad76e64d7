package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The planner fills tables according to their purpose in the manifest, and to the facts of their
// key fields and parameters. It does not depend on table names.

// groupingOf returns what group ids mean in a network. They are leaf numbers if a
// table of any role requires it, or if paths have weights, because weights depend
// on the destination. The same meaning then applies to all roles, except those
// whose manifest groups by hops.
func groupingOf(m *manifest.Manifest) fabric.Grouping {
	if m.GroupBy == manifest.GroupByLeaf {
		return fabric.ByLeaf
	}
	byLeaf := []manifest.Purpose{manifest.Leaf, manifest.LeafOf, manifest.Arrival}
	for i := range m.Tables {
		t := &m.Tables[i]
		weighted := t.Purpose == manifest.Group || t.Purpose == manifest.Member
		if slices.Contains(byLeaf, t.Purpose) || weighted && t.Action(manifest.PathWeight, manifest.WeightEnd, manifest.LeafNumber) != nil {
			return fabric.ByLeaf
		}
	}
	return fabric.ByHops
}

// fillers contains a function for each purpose that adds the entries of a table.
var fillers = map[manifest.Purpose]func(b *planner, t *manifest.Table){
	manifest.Route:      (*planner).fillRoutes,
	manifest.Member:     (*planner).fillMembers,
	manifest.Group:      (*planner).fillGroups,
	manifest.PortConfig: (*planner).fillPorts,
	manifest.Neighbour:  (*planner).fillPorts,
	manifest.Upstream:   (*planner).fillPorts,
	manifest.Leaf:       (*planner).fillLeaves,
	manifest.LeafOf:     (*planner).fillLeafOf,
	manifest.Arrival:    (*planner).fillArrivals,
	manifest.Identity:   (*planner).fillIdentity,
	manifest.Polynomial: (*planner).fillPolynomial,
	manifest.BakedTable: (*planner).fillBaked,
}

// A lookup returns the value of a fact for the current entry. In tables by group it depends on
// the slot. The second result is false for unknown facts.
type lookup func(f manifest.Fact, slot int) (uint64, bool)

// with returns a lookup with additional facts.
func (l lookup) with(more map[manifest.Fact]uint64) lookup {
	return func(f manifest.Fact, slot int) (uint64, bool) {
		if v, ok := more[f]; ok {
			return v, true
		}
		return l(f, slot)
	}
}

// aboutPort returns the facts about a port.
func (b *planner) aboutPort(p fabric.Port) lookup {
	return func(f manifest.Fact, _ int) (uint64, bool) {
		switch f {
		case manifest.EgressPort, manifest.IngressPort:
			return uint64(p.Number), true
		case manifest.OwnMAC:
			return macNumber(p.MAC), true
		case manifest.NextMAC:
			return macNumber(p.PeerMAC), true
		case manifest.QueueNumber:
			return QueueNumber(p.Number), true
		case manifest.ServiceTime: // in µs/65536
			return min(math.MaxUint32, 65536*1e6/PacketRate(p.Rate, b.plan.Options.MTU)), true
		case manifest.Capacity:
			return uint64(b.capacity(p)), true
		case manifest.Reciprocal:
			return uint64(255 * 65536 / max(1, b.capacity(p)-1)), true
		case manifest.LinkRate:
			return PacketRate(p.Rate, b.plan.Options.MTU), true
		case manifest.NodeNumber:
			return uint64(b.number), true
		case manifest.LeafNumber:
			return uint64(b.sw.Leaf), true
		case manifest.CloneTo:
			return b.sessionTo(p)
		case manifest.FloodTo:
			return b.onward(p), true
		}
		return 0, false
	}
}

func macNumber(m fabric.MAC) uint64 {
	var b [8]byte
	copy(b[2:], m[:])
	return binary.BigEndian.Uint64(b[:])
}

func (b *planner) port(number int) fabric.Port {
	i := slices.IndexFunc(b.ports, func(p fabric.Port) bool { return p.Number == number })
	return b.ports[i]
}

// sessionTo returns the clone session that leads to a port.
func (b *planner) sessionTo(p fabric.Port) (uint64, bool) {
	i := slices.IndexFunc(b.m.CloneSessions, func(s manifest.Session) bool { return s.PerPort })
	if i < 0 || p.PeerTier == 0 {
		return 0, false
	}
	return uint64(b.m.CloneSessions[i].Session + p.Number), true
}

// paths returns the groups of the switch. A program that can only send to groups gets
// additional groups of one path.
func (b *planner) paths() []fabric.Group {
	if b.groups != nil {
		return b.groups
	}
	b.groups = slices.Clone(b.out.Routes.Groups)
	b.single = map[fabric.Hop]int{}
	i := slices.IndexFunc(b.m.Tables, func(t manifest.Table) bool { return t.Purpose == manifest.Route })
	if i < 0 || b.m.Tables[i].Action(manifest.EgressPort) != nil {
		return b.groups
	}
	id := 0
	for _, g := range b.groups {
		id = max(id, g.ID)
	}
	for _, r := range b.out.Routes.Routes {
		if r.Group == 0 && b.single[r.Hop] == 0 {
			id++
			b.single[r.Hop] = id
			b.groups = append(b.groups, fabric.Group{ID: id, Hops: []fabric.Hop{r.Hop}})
		}
	}
	return b.groups
}

// soleGroup returns the id of the switch's largest group if the tables of the
// program find members by slot alone. Such a program can have only one group. For
// other programs it returns 0.
func (b *planner) soleGroup() int {
	for i := range b.m.Tables {
		t := &b.m.Tables[i]
		if t.Purpose != manifest.Member || t.Key(manifest.GroupID) != nil || t.Key(manifest.MemberIndex) != nil {
			continue
		}
		if groups := b.paths(); len(groups) > 0 {
			return slices.MaxFunc(groups, func(g, h fabric.Group) int { return cmp.Compare(len(g.Hops), len(h.Hops)) }).ID
		}
	}
	return 0
}

// aboutGroup returns the facts about a group and its paths.
func (b *planner) aboutGroup(g fabric.Group) lookup {
	first := 0
	for _, other := range b.paths() {
		if other.ID == g.ID {
			break
		}
		first += len(other.Hops)
	}
	var weights []uint64
	return func(f manifest.Fact, slot int) (uint64, bool) {
		switch f {
		case manifest.GroupID:
			return uint64(g.ID), true
		case manifest.PathCount:
			return uint64(len(g.Hops)), true
		case manifest.FirstMember:
			return uint64(first), true
		case manifest.MemberIndex:
			return uint64(first + slot), true
		case manifest.SlotNumber:
			return uint64(slot), true
		case manifest.LeafNumber:
			return uint64(g.ID), b.grouping >= fabric.ByLeaf
		case manifest.PathWeight, manifest.WeightEnd:
			if weights == nil {
				weights = b.weights(g)
			}
			if f == manifest.WeightEnd {
				// The paths divide 256 shares in proportion to their weights. This
				// is the number of the path's last share.
				const total = 256
				var all, so uint64
				for i, w := range weights {
					all += w
					if i <= slot {
						so += w
					}
				}
				return max(so*total/max(1, all), 1) - 1, true
			}
		}
		switch {
		case slot >= len(g.Hops):
			return b.absent(f), true
		case f == manifest.PathWeight:
			return weights[slot], true
		}
		return b.aboutPort(b.port(g.Hops[slot].Port))(f, slot)
	}
}

// absent returns a fact for a slot that a group does not have. On hardware the fact
// is port 511, or its last queue, which have no link.
func (b *planner) absent(f manifest.Fact) uint64 {
	switch {
	case !b.m.Arch.Hardware():
	case f == manifest.EgressPort:
		return fabric.MaxPort + 1
	case f == manifest.QueueNumber:
		return QueueNumber(fabric.MaxPort+1) + portQueues - 1
	}
	return 0
}

// fillRoutes adds the next hop of each destination, or its group.
func (b *planner) fillRoutes(t *manifest.Table) {
	groups := map[int]fabric.Group{}
	for _, g := range b.paths() {
		groups[g.ID] = g
	}
	direct, grouped := widest(t, manifest.EgressPort), widest(t, manifest.GroupID, manifest.FirstMember, manifest.PathCount)
	sole := b.soleGroup()
	for i, r := range b.out.Routes.Routes {
		var about lookup
		action := grouped
		switch id := cmp.Or(r.Group, b.single[r.Hop]); {
		case id != 0 && grouped != nil && (sole == 0 || id == sole || direct == nil):
			about = b.aboutGroup(groups[id])
		case id != 0: // a program with one path per group uses one of them
			hops := groups[id].Hops
			action, about = direct, b.aboutPort(b.port(hops[i%len(hops)].Port))
		default:
			action, about = direct, b.aboutPort(b.port(r.Hop.Port))
		}
		for _, p := range b.destinations(t, r.Prefix) {
			b.addEntry(t, action, &p, about)
		}
	}
}

// destinations returns the prefixes for which a table needs entries to reach a
// prefix of the network. It returns none if the field for the destination has the
// width of the other IP version. A field that matches whole addresses needs an
// entry for each host.
func (b *planner) destinations(t *manifest.Table, p netip.Prefix) []netip.Prefix {
	key := t.Key(manifest.Destination)
	if key == nil {
		return []netip.Prefix{p}
	}
	f := lists.First(b.x.ByName[t.Name].Fields, func(f p4info.Field) bool { return f.Name == key.Name })
	switch {
	case f.Width != p.Addr().BitLen():
		return nil
	case f.Kind != configv1.MatchField_EXACT && f.Kind != configv1.MatchField_OPTIONAL:
		return []netip.Prefix{p}
	}
	var list []netip.Prefix
	for _, h := range b.plan.Topology.Hosts {
		if a := h.IP.Addr(); p.Contains(a) {
			list = append(list, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return list
}

// widest returns the action with the most parameters among the actions that carry one of the
// facts.
func widest(t *manifest.Table, facts ...manifest.Fact) *manifest.Action {
	var found *manifest.Action
	for i := range t.Actions {
		a := &t.Actions[i]
		carries := slices.ContainsFunc(a.Params, func(p manifest.Param) bool { return slices.Contains(facts, p.Carries) })
		if carries && (found == nil || len(a.Params) > len(found.Params)) {
			found = a
		}
	}
	return found
}

// fillMembers adds the paths of each group, slot by slot.
func (b *planner) fillMembers(t *manifest.Table) {
	action := widest(t, manifest.EgressPort, manifest.QueueNumber)
	sole := b.soleGroup()
	for _, g := range b.paths() {
		if sole != 0 && g.ID != sole {
			continue
		}
		about := b.aboutGroup(g)
		add := func(slot, of int) {
			b.addEntry(t, action, nil, lookup(func(f manifest.Fact, _ int) (uint64, bool) { return about(f, of) }).
				with(map[manifest.Fact]uint64{manifest.SlotNumber: uint64(slot)}))
		}
		for slot := range g.Hops {
			add(slot, slot)
		}
		if !b.m.Arch.Hardware() || t.Key(manifest.SlotNumber) == nil {
			continue
		}
		// Hardware does not check remembered slots. If a group has become smaller, the slots
		// beyond it lead to its remaining paths.
		for slot := len(g.Hops); slot < b.m.Paths; slot++ {
			add(slot, slot%len(g.Hops))
		}
	}
}

// fillGroups adds an entry for each path of each group, including slots beyond the last path.
func (b *planner) fillGroups(t *manifest.Table) {
	i := slices.IndexFunc(t.Actions, func(a manifest.Action) bool { return len(a.Params) > 0 })
	for _, g := range b.paths() {
		b.addEntry(t, &t.Actions[i], nil, b.aboutGroup(g))
	}
}

// fillPorts adds an entry for each port, or only for ports to other switches.
func (b *planner) fillPorts(t *manifest.Table) {
	i := slices.IndexFunc(t.Actions, func(a manifest.Action) bool { return len(a.Params) > 0 })
	if i < 0 {
		b.fail("", "table %s: no action has a parameter", t.Name)
		return
	}
	for _, p := range b.ports {
		if p.PeerTier > 0 || t.Purpose == manifest.PortConfig {
			b.addEntry(t, &t.Actions[i], nil, b.aboutPort(p))
		}
	}
}

// fillLeaves adds the way to every leaf; the way to this leaf ends here. If several ways are
// equally short, the low bits of the leaf numbers select one.
//
// If the leaf number is a ternary field, the largest set of equal ways has an entry for each
// value of these bits, instead of one for each leaf.
func (b *planner) fillLeaves(t *manifest.Table) {
	away, home := widest(t, manifest.EgressPort), widest(t, manifest.LeafNumber, manifest.NodeNumber)
	shared := b.sharedWays(t)
	for _, leaf := range b.plan.Topology.Leaves() {
		number := map[manifest.Fact]uint64{manifest.LeafNumber: uint64(leaf.Leaf)}
		hops := b.hops(leaf)
		switch {
		case leaf.Name == b.sw.Name:
			if home != nil {
				b.addEntry(t, home, nil, b.aboutPort(fabric.Port{}).with(number))
			}
		case len(hops) > 0 && !slices.Equal(hops, shared):
			b.addEntry(t, away, nil, b.aboutPort(hops[wayOfLeaf(leaf.Leaf, len(hops))]).with(number))
		}
	}
	if shared == nil {
		return
	}
	mask := lowBits(len(shared))
	for i := range mask + 1 {
		b.addEntry(t, away, nil, b.aboutPort(shared[wayOfLeaf(int(i), len(shared))]).with(map[manifest.Fact]uint64{manifest.LeafNumber: i}))
		e := &b.out.Entries[len(b.out.Entries)-1]
		e.Match[0].Mask, e.Priority = &mask, 1
	}
}

// lowBits returns the mask of the bits of a leaf's number that choose among n ways.
func lowBits(n int) uint64 { return 1<<bits.Len(uint(n-1)) - 1 }

// wayOfLeaf returns the index of a leaf's way among n equally short ones.
func wayOfLeaf(leaf, n int) int { return leaf & int(lowBits(n)) % n }

// sharedWays returns the set of equal ways that entries with masks describe: the
// set that leads to the most leaves. It returns nil if no table of leaves can have
// such entries, or if they are not fewer than the leaves. It also returns nil if a
// leaf is unreachable, because packets to it would loop.
func (b *planner) sharedWays(t *manifest.Table) []fabric.Port {
	f := b.x.ByName[t.Name].Fields
	if len(f) != 1 || f[0].Kind != configv1.MatchField_TERNARY {
		return nil
	}
	count := map[string]int{}
	var best []fabric.Port
	most := 0
	for _, leaf := range b.plan.Topology.Leaves() {
		hops := b.hops(leaf)
		switch {
		case leaf.Name == b.sw.Name:
			continue
		case len(hops) == 0:
			return nil
		case len(hops) == 1:
			continue
		}
		set := fmt.Sprint(lists.Map(hops, func(p fabric.Port) int { return p.Number }))
		if count[set]++; count[set] > most && count[set] > int(lowBits(len(hops)))+1 {
			best, most = hops, count[set]
		}
	}
	return best
}

// hops returns the ports that lead to a leaf, in the order of their slots.
func (b *planner) hops(leaf *fabric.Switch) []fabric.Port {
	hops, _ := b.plan.Routes.NextHops(b.sw.Name, leaf.Name) // both switches exist
	return hops
}

// fillLeafOf adds the leaf of every address that is not below this switch, even if no path leads
// to it.
func (b *planner) fillLeafOf(t *manifest.Table) {
	for _, d := range b.plan.Topology.Destinations() {
		if d.Leaf == b.sw.Leaf {
			continue
		}
		number := map[manifest.Fact]uint64{manifest.LeafNumber: uint64(d.Leaf)}
		for _, p := range b.destinations(t, d.Prefix) {
			b.addEntry(t, t.Action(manifest.LeafNumber), &p, b.aboutPort(fabric.Port{}).with(number))
		}
	}
}

// fillArrivals adds the ports at which probes arrive. A probe describes the path through the port
// at which it arrives.
func (b *planner) fillArrivals(t *manifest.Table) {
	for _, leaf := range b.plan.Topology.Leaves() {
		if leaf.Name == b.sw.Name {
			continue
		}
		for slot, p := range b.hops(leaf) {
			b.addEntry(t, widest(t, manifest.SlotNumber, manifest.FloodTo), nil, b.aboutPort(p).with(map[manifest.Fact]uint64{
				manifest.LeafNumber: uint64(leaf.Leaf), manifest.SlotNumber: uint64(slot),
			}))
		}
	}
}

// onward returns the multicast group for packets from a port, or 0 if they are not
// forwarded.
func (b *planner) onward(p fabric.Port) uint64 {
	for i := range b.m.MulticastGroups {
		g := &b.m.MulticastGroups[i]
		if g.PerPort && len(b.members(g, &p)) > 0 {
			return uint64(g.Group + p.Number)
		}
	}
	return 0
}

// fillIdentity sets the number of the switch, in the default action.
func (b *planner) fillIdentity(t *manifest.Table) {
	b.addEntry(t, widest(t, manifest.NodeNumber, manifest.LeafNumber), nil, b.aboutPort(fabric.Port{}))
}

// fillPolynomial sets the coefficients in two's complement, in the default action.
func (b *planner) fillPolynomial(t *manifest.Table) {
	given := b.plan.Options.Coefficients
	if len(given) == 0 {
		b.noPolynomial()
		return
	}
	action := widest(t, manifest.Coefficient)
	info := b.x.ByName[t.Name].Actions[action.Name]
	b.add(t.Name, action.Name, nil, func(name string) (uint64, bool) {
		i := slices.IndexFunc(info.Params, func(p p4info.Field) bool { return p.Name == name })
		w := info.Params[i].Width
		v, ok := given[name]
		if !ok || w < 64 && (v >= 1<<(w-1) || v < -1<<(w-1)) {
			return 0, false
		}
		return uint64(v) & (1<<w - 1), true
	})
}

// noPolynomial records the error of missing coefficients.
func (b *planner) noPolynomial() {
	degree := "N" // the name of a scheme ends with the degree: qall-poly5
	if _, name, ok := strings.Cut(b.m.Scheme, "poly"); ok {
		degree = name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	}
	b.fail(fmt.Sprintf("p4lb lab --scheme ecmp --load 0.7 --seeds 1 --every 100us --observe obs.csv -o observed && p4lb fit --data obs.csv --degree %s --outliers iqr --scale auto -o model.json; then add --coeffs model.json", degree),
		"the program of %s leaves its polynomial to the controller, and there is none", b.m.Scheme)
}

// fillBaked adds an entry for every key; the first field changes fastest. The entries, up to
// 65,536, are computed once for all switches of the pipeline.
func (b *planner) fillBaked(t *manifest.Table) {
	if len(t.Baked.Values) == 0 && len(t.Baked.Weights) == 0 {
		b.noPolynomial()
		return
	}
	p := b.out.Pipeline
	p.mu.Lock()
	defer p.mu.Unlock()
	if list, done := p.baked[t.Name]; done {
		b.out.Entries = append(b.out.Entries, list...)
		return
	}
	from, faults := len(b.out.Entries), len(b.errs)
	b.bake(t)
	if len(b.errs) > faults {
		return
	}
	list := b.out.Entries[from:]
	for i := range list {
		list[i].Common = true
	}
	if p.baked == nil {
		p.baked = map[string][]Entry{}
	}
	p.baked[t.Name] = slices.Clone(list)
}

// bake adds the entries of a table that is computed in advance.
func (b *planner) bake(t *manifest.Table) {
	baked := t.Baked
	total := 1
	for _, k := range baked.Keys {
		total *= k.Values
	}
	for i := range total {
		key := make([]int, len(baked.Keys))
		rest := i
		for k, field := range baked.Keys {
			key[k], rest = rest%field.Values, rest/field.Values
		}
		var args []int
		if len(baked.Values) > 0 {
			args = baked.Values[i : i+1]
		} else {
			args = baked.Ends(key)
		}
		b.add(t.Name, baked.Action, exact(key...), func(string) (uint64, bool) {
			if len(args) == 0 {
				return 0, false
			}
			v := args[0]
			args = args[1:]
			return uint64(v), true
		})
	}
}

// addEntry adds an entry with the facts of the lookup. prefix is not nil for an entry about a
// prefix.
func (b *planner) addEntry(t *manifest.Table, a *manifest.Action, prefix *netip.Prefix, about lookup) {
	if a == nil {
		b.fail("", "table %s: no action carries the facts of its purpose", t.Name)
		return
	}
	info := b.x.ByName[t.Name]
	var key []Match
	for _, f := range info.Fields {
		m, ok := b.match(t, f, prefix, about)
		if !ok {
			b.fail("", "table %s: nothing is known about the field %s", t.Name, f.Name)
			return
		}
		key = append(key, m)
	}
	b.add(t.Name, manifest.Short(a.Name), key, func(name string) (uint64, bool) {
		i := slices.IndexFunc(a.Params, func(p manifest.Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return 0, false
		case a.Params[i].Value != "":
			x, err := manifest.ParseExpr(a.Params[i].Value)
			v, ok := x.Number()
			return v, ok && err == nil
		}
		return about(a.Params[i].Carries, a.Params[i].Slot)
	})
}

// match returns the match of a key field for an entry.
func (b *planner) match(t *manifest.Table, f p4info.Field, prefix *netip.Prefix, about lookup) (Match, bool) {
	i := slices.IndexFunc(t.Keys, func(k manifest.Key) bool { return k.Name == f.Name })
	switch {
	case i < 0:
		return Match{}, false
	case t.Keys[i].Value != "":
		var given manifest.Match
		if err := given.UnmarshalText([]byte(t.Keys[i].Value)); err != nil {
			return Match{}, false
		}
		m, err := (&place{b: b}).matchOf(f, given) // manifests allow no facts here
		return m, err == nil
	case t.Keys[i].Carries == manifest.Destination:
		return destination(f, *prefix), true
	}
	v, ok := about(t.Keys[i].Carries, 0)
	return Match{Value: v, Bits: f.Width}, ok
}

// destination returns the match of a field for the addresses of a prefix.
func destination(f p4info.Field, p netip.Prefix) Match {
	m := Match{Value: uint64(addressNumber(p.Addr())), Bits: p.Bits()}
	if p.Addr().Is6() {
		m.Upper, m.Value = halves(p.Addr())
	}
	if f.Kind == configv1.MatchField_RANGE {
		high := m.Value | (1<<(f.Width-p.Bits()) - 1)
		m.High = &high
	}
	return m
}

// members returns the ports of a multicast group for packets from a port, or nil.
func (b *planner) members(g *manifest.Multicast, from *fabric.Port) []int {
	here := b.sw.Role.Tier()
	other := func(p fabric.Port) bool { return from == nil || p.Number != from.Number }
	switch g.Members {
	case manifest.MembersUp:
		return b.portsTo(func(p fabric.Port) bool { return p.PeerTier > here })
	case manifest.MembersOnward:
		if from == nil || from.PeerTier == 0 {
			return nil
		}
		below := from.PeerTier < here
		return b.portsTo(func(p fabric.Port) bool { return p.PeerTier > 0 && other(p) && (below || p.PeerTier < here) })
	case manifest.MembersSwitches:
		return b.portsTo(func(p fabric.Port) bool { return p.PeerTier > 0 && other(p) })
	case manifest.MembersHosts:
		return b.portsTo(func(p fabric.Port) bool { return p.PeerTier == 0 && other(p) })
	case manifest.MembersAll:
		return b.portsTo(other)
	}
	return slices.Clone(g.Ports)
}

// portsTo returns the ports that are up and meet a condition.
func (b *planner) portsTo(ok func(fabric.Port) bool) []int {
	var list []int
	for _, p := range b.ports {
		if !p.Down && ok(p) {
			list = append(list, p.Number)
		}
	}
	return list
}
