package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

const (
	defaultMTU   = 1500
	defaultQueue = 64 // as in simple_switch
	defaultCPU   = 255
)

// New computes the configuration of every switch of a topology, with one program for each role.
// The error is of type Errors.
func New(t *fabric.Topology, pipelines map[fabric.Role]*Pipeline, o Options) (*Plan, error) {
	if o.MTU < 0 || o.Queue < 0 {
		return nil, Errors{{Err: fmt.Errorf("MTU %d, queue %d: want positive numbers", o.MTU, o.Queue)}}
	}
	o.MTU, o.Queue = cmp.Or(o.MTU, defaultMTU), cmp.Or(o.Queue, defaultQueue)
	p := &Plan{Topology: t, Routes: t.Routes(), Grouping: o.Grouping, Options: o, byName: map[string]*Switch{}, tooWide: map[string]*widthError{}}
	for _, pipeline := range pipelines {
		p.Grouping = max(p.Grouping, groupingOf(&pipeline.Manifest))
	}
	var errs Errors
	for i := range t.Switches {
		b := &planner{plan: p, sw: &t.Switches[i], number: i + 1}
		s := b.switchPlan(pipelines)
		errs = append(errs, b.errs...)
		if s != nil {
			p.Scheme = cmp.Or(p.Scheme, s.Pipeline.Manifest.Scheme)
			p.Switches = append(p.Switches, s)
			p.byName[s.Name] = s
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if err := p.checkIPv6(); err != nil {
		return nil, Errors{err}
	}
	return p, nil
}

// checkIPv6 returns an error for IPv6 hosts if programs only forward IPv4.
func (p *Plan) checkIPv6() *Error {
	i := slices.IndexFunc(p.Topology.Hosts, func(h fabric.Host) bool { return h.IP.Addr().Is6() })
	if i < 0 {
		return nil
	}
	for _, s := range p.Switches {
		if s.Pipeline.Manifest.ByMAC() {
			return nil
		}
		for _, e := range s.Entries {
			if slices.ContainsFunc(e.Match, func(m Match) bool { return m.Upper != 0 }) {
				return nil
			}
		}
	}
	h := &p.Topology.Hosts[i]
	return &Error{
		Switch: h.Switch, Err: fmt.Errorf("host %s has the address %v, and no table of the program %s matches IPv6 addresses", h.Name, h.IP.Addr(), p.Scheme),
		Hint: "give the hosts IPv4 addresses, or deploy a program of your own for IPv6: see docs/own-program.md",
	}
}

// A planner makes the plan of one switch.
type planner struct {
	plan   *Plan
	sw     *fabric.Switch
	number int // number of the switch, from 1
	m      *manifest.Manifest
	x      *p4info.Index
	ports  []fabric.Port
	out    *Switch
	errs   Errors

	grouping fabric.Grouping    // meaning of group ids on the switch
	groups   []fabric.Group     // nil: not computed yet
	single   map[fabric.Hop]int // ids of groups with one path
	pools    [][]string         // see serverPools; nil: not computed yet
}

func (b *planner) fail(hint, format string, args ...any) {
	b.errs = append(b.errs, &Error{Switch: b.sw.Name, Err: fmt.Errorf(format, args...), Hint: hint})
}

// switchPlan returns the plan of the switch, or nil if it has no program.
func (b *planner) switchPlan(pipelines map[fabric.Role]*Pipeline) *Switch {
	pipeline := pipelines[b.sw.Role]
	if pipeline == nil {
		b.fail("generate one with --role "+string(b.sw.Role), "there is no program for the role %s", b.sw.Role)
		return nil
	}
	var err error
	if b.x, err = pipeline.Index(); err != nil {
		b.fail("generate program and manifest together", "%w", err)
		return nil
	}
	b.m, b.ports = &pipeline.Manifest, b.plan.Topology.Ports(b.sw.Name)
	b.out = &Switch{
		Name: b.sw.Name, Role: b.sw.Role, Device: b.sw.ID, Leaf: b.sw.Leaf, Pipeline: pipeline,
		CPUPort: defaultCPU,
	}
	if b.m.CPUPort != nil {
		b.out.CPUPort = *b.m.CPUPort
	}
	b.grouping = b.plan.groupingAt(b.sw.Name, b.m)
	b.out.Routes, _ = b.plan.Routes.Table(b.sw.Name, b.grouping)
	b.checkPorts()
	b.checkGroups()
	if len(b.errs) > 0 {
		return b.out
	}
	b.addTables()
	b.addSessions()
	b.addMulticasts()
	b.addCells()
	// Every port with a link gets the rate of its link. Virtual ports get none.
	for _, p := range b.ports {
		b.out.Queues = append(b.out.Queues, Queue{Port: p.Number, Rate: PacketRate(p.Rate, b.plan.Options.MTU), Depth: b.capacity(p), Signal: p.Signal})
	}
	b.addFrames()
	b.out.Filters = FiltersOf(b.m)
	return b.out
}

// checkPorts reports links at ports that the program uses itself.
func (b *planner) checkPorts() {
	for _, p := range b.ports {
		if p.Number == b.out.CPUPort {
			b.fail("give the link another port, or the program another one with --set cpu=N", "port %d has a link and is also the controller's port", p.Number)
		}
		for _, taken := range b.out.Around() {
			if p.Number == taken {
				b.fail("give the link another port, or generate the program for the ports in use", "port %d has a link, and is one that no interface may be attached to", p.Number)
			}
		}
	}
}

// checkGroups reports groups that are larger than the program supports.
func (b *planner) checkGroups() {
	worst := fabric.Group{}
	for _, g := range b.out.Routes.Groups {
		if len(g.Hops) > len(worst.Hops) {
			worst = g
		}
	}
	if n := len(worst.Hops); n > b.m.Paths && b.m.Paths > 0 {
		b.fail(fmt.Sprintf("generate it with --ports %d (at most %d)", n, manifest.MaxPaths), "group %d has %d next hops, the program of the role %s is for %d", worst.ID, n, b.sw.Role, b.m.Paths)
	}
}

// add adds an entry to a table: the matches in the order of the key, and the arguments by name.
func (b *planner) add(table, action string, key []Match, args func(name string) (uint64, bool)) {
	info := b.x.ByName[table]
	a := info.Actions[action]
	if a == nil || len(key) != len(info.Fields) && key != nil {
		b.fail("", "table %s has no action %s for %d keys", table, action, len(key))
		return
	}
	e := Entry{Table: table, Action: action, Match: slices.Grow([]Match(nil), len(key)), Args: slices.Grow([]Arg(nil), len(a.Params))}
	for i, m := range key {
		f := info.Fields[i]
		m.Field, m.Width, m.Bits = f.Name, f.Width, min(m.Bits, f.Width)
		b.checkWidth(table, m.Field, m.Value, m.Width)
		e.Match = append(e.Match, m)
		if f.Kind != configv1.MatchField_EXACT && f.Kind != configv1.MatchField_LPM {
			e.Priority = max(1, e.Priority+m.Bits) // longer prefixes have a higher priority
		}
	}
	for _, p := range a.Params {
		v, ok := args(p.Name)
		if !ok {
			b.fail("", "table %s: nothing is known about the argument %s of %s", table, p.Name, action)
			return
		}
		b.checkWidth(table, p.Name, v, p.Width)
		e.Args = append(e.Args, Arg{Name: p.Name, Value: v, Width: p.Width})
	}
	b.out.Entries = append(b.out.Entries, e)
}

func (b *planner) checkWidth(table, name string, v uint64, width int) {
	if width >= 64 || v>>width == 0 {
		return
	}
	place := table + " " + name
	if e := b.plan.tooWide[place]; e != nil {
		e.more++
		return
	}
	e := &widthError{table: table, name: name, value: v, width: width}
	b.plan.tooWide[place] = e
	b.errs = append(b.errs, &Error{Switch: b.sw.Name, Err: e, Hint: "the network is too large for the program"})
}

// exact returns a key of numbers that match exactly.
func exact(values ...int) []Match {
	key := make([]Match, len(values))
	for i, v := range values {
		key[i] = Match{Value: uint64(v), Bits: math.MaxInt}
	}
	return key
}

// addTables fills the tables of the manifest, and checks their sizes.
func (b *planner) addTables() {
	for i := range b.m.Tables {
		t := &b.m.Tables[i]
		info := b.x.ByName[t.Name]
		if info.Fixed {
			continue
		}
		var asked []string // number of entries by source, for messages
		total := 0
		count := func(from int, who string) {
			n := 0
			for _, e := range b.out.Entries[from:] {
				if e.Match != nil { // default actions occupy no entry
					n++
				}
			}
			if total += n; n > 0 {
				asked = append(asked, fmt.Sprintf("%d for %s", n, who))
			}
		}
		if fill := fillers[t.Purpose]; fill != nil {
			before := len(b.out.Entries)
			fill(b, t)
			b.shareByPrefix(t, before)
			count(before, "its purpose "+string(t.Purpose))
		}
		b.addEntries(t, func(before, i int) {
			who := fmt.Sprintf("entry %d", i+1)
			if each := t.Entries[i].Each; each != "" {
				who += fmt.Sprintf(" (each: %s)", each)
			}
			count(before, who)
		})
		if int64(total) > info.Size && len(info.Fields) > 0 {
			b.fail("the network is too large for the program", "table %s would have %d entries, and has room for %d: %s", t.Name, total, info.Size, strings.Join(asked, ", "))
		}
	}
	b.checkProfiles()
}

// checkProfiles checks that the action profiles without a selector have room for the
// different actions of their tables' entries.
func (b *planner) checkProfiles() {
	for _, p := range b.x.Profiles {
		calls := map[string]bool{}
		for i := range b.out.Entries {
			e := &b.out.Entries[i]
			if b.x.ByName[e.Table].Profile == p && e.Match != nil {
				calls[e.call()] = true
			}
		}
		if n := int64(len(calls)); !p.Selector && p.Size > 0 && n > p.Size {
			b.fail("the network is too large for the program", "action profile %s would have %d members, and has room for %d", p.Name, n, p.Size)
		}
	}
}

func (b *planner) addSessions() {
	for i := range b.m.CloneSessions {
		s := &b.m.CloneSessions[i]
		if !s.PerPort {
			b.addSession(s)
			continue
		}
		for _, p := range b.ports {
			if p.PeerTier > 0 {
				b.out.Sessions = append(b.out.Sessions, Session{ID: s.Session + p.Number, Port: p.Number, Bytes: s.Bytes})
			}
		}
	}
}

func (b *planner) addMulticasts() {
	for i := range b.m.MulticastGroups {
		g := &b.m.MulticastGroups[i]
		if !g.PerPort {
			b.addGroup(g)
			continue
		}
		for k := range b.ports {
			b.addMulticast(g.Group+b.ports[k].Number, b.members(g, &b.ports[k]))
		}
	}
}

func (b *planner) addMulticast(id int, ports []int) {
	if len(ports) > 0 {
		slices.Sort(ports)
		b.out.Groups = append(b.out.Groups, Multicast{ID: id, Ports: ports})
	}
}

// addCells adds the non-zero initial values of registers: registers that the
// controller writes without a task, and cells for paths that a group does not have. If
// all cells of a register start with the same value, the program sets it.
func (b *planner) addCells() {
	tasks := map[string]bool{}
	for _, t := range b.m.Tasks {
		for _, label := range t.Registers {
			tasks[label] = true
		}
	}
	for i := range b.m.Registers {
		r := &b.m.Registers[i]
		b.addFills(r)
		for _, c := range r.Initial {
			if c.Index >= 0 {
				b.out.Registers = append(b.out.Registers, Cells{Register: r.Name, From: c.Index, To: c.Index + 1, Value: uint64(c.Value)})
			}
		}
		if r.Writer != manifest.Controller || tasks[r.Called()] || len(r.Initial)+len(r.Cells) > 0 {
			continue
		}
		switch {
		case r.Kind != manifest.Delay:
			b.fail("name it in a task, or give initial values in cells", "register %s: its writer is the controller, but no task writes it and it has no initial values", r.Name)
		case r.Index == manifest.ByPath:
			b.addRoundTrips(r, func(group, slot int) int { return group*manifest.MaxPaths + slot })
		case r.Index == manifest.ByGroup && r.Copy != nil:
			b.addRoundTrips(r, func(group, slot int) int {
				if slot != r.Copy.Slot {
					return -1
				}
				return group
			})
		}
	}
}

// addRoundTrips sets a register to the round-trip times of the paths, computed from
// the link delays. The function at returns the cell for a group and slot.
func (b *planner) addRoundTrips(r *manifest.Register, at func(group, slot int) int) {
	unit := time.Duration(r.Unit.Nanoseconds())
	for _, g := range b.out.Routes.Groups {
		leaf := b.leafOf(g)
		if leaf == nil {
			continue
		}
		for slot, h := range g.Hops {
			port := b.port(h.Port)
			rtt := 2 * port.Delay
			if span, ok := b.plan.Routes.Span(port.Peer, leaf.Name); ok {
				rtt += span.RTT
			}
			if i := at(g.ID, slot); i >= 0 {
				b.out.Registers = append(b.out.Registers, Cells{Register: r.Name, From: i, To: i + 1, Value: uint64((rtt + unit/2) / unit)})
			}
		}
	}
}

// leafOf returns a leaf that a group leads to, or nil.
func (b *planner) leafOf(g fabric.Group) *fabric.Switch {
	leaves := b.plan.Topology.Leaves()
	if b.grouping >= fabric.ByLeaf {
		if g.ID > len(leaves) {
			return nil
		}
		return leaves[g.ID-1]
	}
	i := slices.IndexFunc(leaves, func(leaf *fabric.Switch) bool {
		return slices.EqualFunc(b.hops(leaf), g.Hops, func(p fabric.Port, h fabric.Hop) bool { return p.Number == h.Port })
	})
	if i < 0 {
		return nil
	}
	return leaves[i]
}

// PacketRate returns how many full packets a link carries per second.
func PacketRate(r fabric.Rate, mtu int) uint64 {
	return uint64(max(1, int64(r)/int64(8*mtu)))
}

// capacity returns the queue capacity of a port in packets: the one in the topology, or the
// port's share of the switch's buffer.
func (b *planner) capacity(p fabric.Port) int {
	switch {
	case p.Queue > 0:
		return p.Queue
	case b.sw.Buffer > 0:
		return max(2, int(b.sw.Buffer)/len(b.ports)/b.plan.Options.MTU)
	}
	return b.plan.Options.Queue
}

// Sizes returns the sizes for which the programs of a topology must be generated: the
// largest group of next hops and the highest port number. To allow for any link
// failure, all ports to other switches count as next hops, whether up or down.
func Sizes(t *fabric.Topology) (group, port int) {
	all := make([]int, len(t.Links))
	for i := range all {
		all[i] = i
	}
	healthy := t.Restore(all...).Routes()
	for _, s := range t.Switches {
		ways := 0
		for _, p := range t.Ports(s.Name) {
			port = max(port, p.Number)
			if p.PeerTier > 0 {
				ways++
			}
		}
		group = max(group, min(ways, manifest.MaxPaths))
		table, _ := healthy.Table(s.Name, fabric.ByLeaf)
		for _, g := range table.Groups {
			group = max(group, len(g.Hops))
		}
	}
	return max(group, 2), port
}
