package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// Tables are the entries that a controller has written to a switch. A switch with a model reads
// them under the names that programs give to tables, actions and arguments, without the names of
// the enclosing controls. Both engines are thus configured by the same plan.
type Tables struct {
	Entries   []Entry
	Sessions  map[int]int   // port of each clone session
	Multicast map[int][]int // ports of each multicast group
}

// An Entry is an entry of a table, or without a Key its default action.
type Entry struct {
	Table  string
	Key    []Key
	Action string
	Args   map[string]uint64
}

// A Key matches one field of an entry.
type Key struct {
	Value uint64
	Bits  int     // length of the prefix, for longest-prefix matches
	Width int     // width of the field in bits; 0: the whole field is matched
	Mask  *uint64 // mask of a ternary match; nil: all bits count
}

// whole reports whether the key matches a single value.
func (k *Key) whole() bool { return k.Bits >= k.Width }

// A way is where packets to a host are sent: to a port, or to a group if group is not 0. Packets
// without a route have port -1.
type way struct{ port, group int32 }

// nowhere is the way of a host without an entry.
var nowhere = way{port: -1}

// lookups are the tables of a model in the form that it uses.
type lookups struct {
	routes   []prefix // entries of ipv4_route; group 0: no group
	leaves   []prefix // entries of leaf_of
	toHost   []way    // by host, found in routes on first use
	leafHost []int    // by host, found in leaves; -1: no entry
	groups   map[int][]int
	weights  map[int][]uint32
	toLeaf   map[int]int // port of a probe, by leaf
	toLeaves []masked    // ports of probes to other leaves, by leaf
	home     int         // this switch's number as a leaf
	number   int         // this switch's number, from table self
	service  map[int]uint32
	capacity map[int]int
	pattern  []int64
	sizes    map[int]int // size of each group, if routes define it

	sessions  map[int]int   // Tables.Sessions
	multicast map[int][]int // Tables.Multicast
}

type prefix struct {
	addr, mask uint32
	bits       int
	to         way
}

// A masked is the port of probes to the leaves with a given value of their numbers under a mask.
type masked struct {
	mask, value int
	port        int
}

// portTo returns the port of probes to a leaf; ok is false if no entry matches.
func (l *lookups) portTo(leaf int) (port int, ok bool) {
	if port, ok := l.toLeaf[leaf]; ok {
		return port, true
	}
	for _, m := range l.toLeaves {
		if leaf&m.mask == m.value {
			return m.port, leaf != l.home
		}
	}
	return 0, false
}

// newLookups reads tables.
func newLookups(t Tables) (*lookups, error) {
	l := &lookups{
		sessions: t.Sessions, multicast: t.Multicast, groups: map[int][]int{}, weights: map[int][]uint32{}, toLeaf: map[int]int{}, home: -1,
		service: map[int]uint32{}, capacity: map[int]int{},
		sizes: map[int]int{},
	}
	shared := make([][]*Entry, 32) // entries for prefixes of group ids, by prefix length
	for i := range t.Entries {
		e := &t.Entries[i]
		if byGroup[base(e.Table)] && !e.Key[0].whole() {
			shared[e.Key[0].Bits] = append(shared[e.Key[0].Bits], e)
			continue
		}
		if base(e.Table) == "index" || base(e.Table) == "upstream" || base(e.Table) == "grids" && len(e.Key) > 1 {
			continue // the model implements these tables, or has sessions instead
		}
		read := entryReaders[base(e.Table)]
		if read == nil {
			return nil, fmt.Errorf("no model has a table %s", e.Table)
		}
		if err := read(l, e); err != nil {
			return nil, fmt.Errorf("table %s: %w", e.Table, err)
		}
	}
	for _, list := range slices.Backward(shared) { // longest prefix first
		for _, e := range list {
			if err := l.addShared(e); err != nil {
				return nil, fmt.Errorf("table %s: %w", e.Table, err)
			}
		}
	}
	return l, nil
}

// byGroup lists the tables with a group as first key.
var byGroup = map[string]bool{"member": true, "candidates": true}

// addShared adds an entry for a prefix of group ids to each group that a route uses and that has
// no entry with a longer prefix.
func (l *lookups) addShared(e *Entry) error {
	first := e.Key[0]
	one := *e
	one.Key = slices.Clone(e.Key)
	for gid, n := range l.sizes {
		if shift := first.Width - first.Bits; uint64(gid)>>shift != first.Value>>shift {
			continue
		}
		one.Key[0] = Key{Value: uint64(gid)}
		if base(e.Table) == "member" {
			slot := int(e.Key[1].Value)
			if ports := l.groups[gid]; slot >= n || slot < len(ports) && ports[slot] >= 0 {
				continue
			}
		} else if l.weights[gid] != nil {
			continue
		}
		if err := entryReaders[base(e.Table)](l, &one); err != nil {
			return err
		}
	}
	return nil
}

// base returns a name without the control that encloses it.
func base(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// entryReaders holds the reader of each table's entries, by name.
var entryReaders = map[string]func(*lookups, *Entry) error{
	"ipv4_route": (*lookups).addRoute,
	"ipv6_route": byLast32((*lookups).addRoute),
	"member":     (*lookups).addMember,
	"candidates": (*lookups).addCandidates,
	"path_a":     ignoreEntry,
	"path_b":     ignoreEntry,
	"path_m":     ignoreEntry,
	"port_cfg":   (*lookups).addPort,
	"leaf":       (*lookups).addLeaf,
	"leaf_of":    (*lookups).addLeafOf,

	"leaf_of_ipv6": byLast32((*lookups).addLeafOf),

	"arrival": (*lookups).addArrival,
	"self":    (*lookups).addSelf,
	"pattern": (*lookups).addPattern,
	"grids":   (*lookups).addGrids,
}

// byLast32 reads entries for IPv6 prefixes, of which only the last 32 bits differ.
func byLast32(read func(*lookups, *Entry) error) func(*lookups, *Entry) error {
	return func(l *lookups, e *Entry) error {
		last := *e
		last.Key = slices.Clone(e.Key)
		last.Key[0].Bits = max(0, last.Key[0].Bits-96)
		return read(l, &last)
	}
}

func newPrefix(k Key, to way) prefix {
	mask := uint32(0)
	if k.Bits > 0 {
		mask = ^uint32(0) << (32 - k.Bits)
	}
	return prefix{uint32(k.Value) & mask, mask, k.Bits, to}
}

func (l *lookups) addRoute(e *Entry) error {
	to := nowhere
	switch base(e.Action) {
	case "set_port", "forward":
		to = way{port: int32(e.Args["port"])}
	case "set_group":
		to = way{port: -1, group: int32(e.Args["gid"])}
		l.sizes[int(to.group)] = int(e.Args["n"])
	}
	l.routes = append(l.routes, newPrefix(e.Key[0], to))
	return nil
}

func (l *lookups) addMember(e *Entry) error {
	return l.addPath(int(e.Key[0].Value), int(e.Key[1].Value), int(e.Args["port"]))
}

// ignoreEntry ignores the ports of paths, because members contain them too.
func ignoreEntry(*lookups, *Entry) error { return nil }

func (l *lookups) addPath(group, slot, port int) error {
	if slot >= model.MaxPaths {
		return fmt.Errorf("slot %d is more than a group can have", slot)
	}
	ports := l.groups[group]
	for len(ports) <= slot {
		ports = append(ports, -1)
	}
	ports[slot] = port
	l.groups[group] = ports
	return nil
}

// addCandidates reads the properties of paths, except their ports, which members contain.
func (l *lookups) addCandidates(e *Entry) error {
	group := int(e.Key[0].Value)
	for name, v := range e.Args {
		kind, place, ok := strings.Cut(name, "_")
		slot, err := strconv.Atoi(place)
		if !ok || err != nil || slot >= model.MaxPaths {
			return fmt.Errorf("nothing is known about the argument %s", name)
		}
		switch kind {
		case "weight":
			for len(l.weights[group]) <= slot {
				l.weights[group] = append(l.weights[group], 0)
			}
			l.weights[group][slot] = uint32(v)
		case "svc":
			if port, ok := e.Args["port_"+place]; ok && v != 0 {
				l.service[int(port)] = uint32(v)
			}
		}
	}
	return nil
}

// addGrids computes the weights of a group's paths, in 1/256, from the end points of their grids.
func (l *lookups) addGrids(e *Entry) error {
	var weights []uint32
	before := -1
	for slot := range len(e.Args) {
		end, ok := e.Args[fmt.Sprintf("end_%d", slot)]
		if !ok {
			return fmt.Errorf("the end of path %d is not there", slot)
		}
		weights = append(weights, uint32(int(end)-before))
		before = int(end)
	}
	l.weights[int(e.Key[0].Value)] = append(weights, uint32(255-before))
	return nil
}

// addPort computes the capacity of a queue from its reciprocal, which is 255*2^16/(capacity-1).
func (l *lookups) addPort(e *Entry) error {
	rl := int(e.Args["rl"])
	if rl == 0 {
		return fmt.Errorf("a queue of port %d without capacity", e.Key[0].Value)
	}
	l.capacity[int(e.Key[0].Value)] = 1 + 255<<16/rl
	return nil
}

func (l *lookups) addLeaf(e *Entry) error {
	switch mask := e.Key[0].Mask; {
	case base(e.Action) == "at_home":
		l.home = int(e.Key[0].Value)
	case mask != nil:
		l.toLeaves = append(l.toLeaves, masked{int(*mask), int(e.Key[0].Value), int(e.Args["port"])})
	default:
		l.toLeaf[int(e.Key[0].Value)] = int(e.Args["port"])
	}
	return nil
}

func (l *lookups) addLeafOf(e *Entry) error {
	l.leaves = append(l.leaves, newPrefix(e.Key[0], way{group: int32(e.Args["leaf"])}))
	return nil
}

// addArrival builds a group of the ports that lead to the origin of probes. It also does so for a
// single port, for which packets need no group.
func (l *lookups) addArrival(e *Entry) error {
	return l.addPath(int(e.Key[0].Value), int(e.Args["slot"]), int(e.Key[1].Value))
}

func (l *lookups) addSelf(e *Entry) error {
	l.number = int(e.Args["id"])
	return nil
}

// addPattern reads the coefficients c_i_j of a polynomial, for L^i T^j, into the model's order:
// by degree, then by j.
func (l *lookups) addPattern(e *Entry) error {
	for degree := 0; len(l.pattern) < len(e.Args); degree++ {
		for j := range degree + 1 {
			name := fmt.Sprintf("c_%d_%d", degree-j, j)
			v, ok := e.Args[name]
			if !ok {
				return fmt.Errorf("the coefficient %s is not there", name)
			}
			l.pattern = append(l.pattern, int64(int32(v)))
		}
	}
	return nil
}

// longest returns the way of the longest prefix that matches an address.
func longest(list []prefix, addr uint32) (to way, ok bool) {
	most := -1
	for i := range list {
		if p := &list[i]; addr&p.mask == p.addr && p.bits > most {
			to, most = p.to, p.bits
		}
	}
	return to, most >= 0
}

// resolve finds the ways to all hosts, and their leaves.
func (l *lookups) resolve(hosts []*Host) {
	for _, h := range hosts {
		to, ok := longest(l.routes, h.IP)
		if !ok {
			to = nowhere
		}
		l.toHost = append(l.toHost, to)
		leaf := -1
		if to, ok := longest(l.leaves, h.IP); ok {
			leaf = int(to.group)
		}
		l.leafHost = append(l.leafHost, leaf)
	}
}

// configure sets the groups and ports of a model.
func (l *lookups) configure(m *model.Switch) {
	if l.pattern != nil {
		m.SetPattern(l.pattern)
	}
	for id, ports := range l.groups {
		weights := l.weights[id]
		// The hardware's table has an entry for each slot that a group may have.
		if n := l.sizes[id]; n > 0 && n < len(ports) {
			ports, weights = ports[:n], weights[:min(n, len(weights))]
		}
		m.SetGroup(id, model.Group{Ports: ports, Weights: weights})
	}
	for port, capacity := range l.capacity {
		m.SetPort(port, model.Port{Capacity: capacity, Service: l.service[port]})
	}
	for port, service := range l.service {
		if l.capacity[port] == 0 {
			m.SetPort(port, model.Port{Service: service})
		}
	}
}
