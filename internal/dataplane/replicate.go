package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// replication is the packet replication engine. A group has nodes. A node has a
// replication id, ports, and link aggregation groups (LAGs), each of which
// contributes one of its ports. The copies of a group are ordered by node as
// they joined, then by port, then by LAG.
type replication struct {
	groups map[uint32]*mcGroup
	nodes  []mcNode
	hn     program.Handles
	lags   map[uint32][]uint32 // ports by LAG
}

type mcGroup struct {
	nodes  []Handle
	copies []Replica
}

type mcNode struct {
	used  bool
	rid   uint32
	ports []uint32
	lags  []uint32
	group uint32
	bound bool
}

// lagHash is the value that replaces a packet's hash when the port of a LAG is
// selected. simple_switch uses the same value.
const lagHash = 0xff

func (r *replication) copies(group uint32) []Replica {
	if g := r.groups[group]; g != nil {
		return g.copies
	}
	return nil
}

// clone copies the engine. It shares the lists of ports, because they are never
// changed in place.
func (r *replication) clone() replication {
	c := replication{groups: map[uint32]*mcGroup{}, nodes: slices.Clone(r.nodes), hn: r.hn.Clone(), lags: maps.Clone(r.lags)}
	for id, g := range r.groups {
		c.groups[id] = &mcGroup{slices.Clone(g.nodes), g.copies}
	}
	return c
}

// renew recomputes the copies of a group.
func (r *replication) renew(g *mcGroup) {
	g.copies = nil
	for _, h := range g.nodes {
		for _, port := range r.nodes[h].ports {
			g.copies = append(g.copies, Replica{r.nodes[h].rid, port})
		}
		for _, lag := range r.nodes[h].lags {
			if ports := r.lags[lag]; len(ports) > 0 {
				g.copies = append(g.copies, Replica{r.nodes[h].rid, ports[lagHash%len(ports)]})
			}
		}
	}
}

func (r *replication) node(h Handle) *mcNode {
	if int(h) < len(r.nodes) && r.nodes[h].used {
		return &r.nodes[h]
	}
	return nil
}

// create adds an empty group.
func (r *replication) create(group uint32) error {
	if group == 0 {
		return errGroupZero
	}
	if r.groups == nil {
		r.groups = map[uint32]*mcGroup{}
	}
	if r.groups[group] == nil {
		r.groups[group] = &mcGroup{}
	}
	return nil
}

var errGroupZero = errors.New("multicast group 0 is reserved: it means no multicast")

func (r *replication) createNode(rid uint32, ports, lags []uint32) Handle {
	h := r.hn.Take()
	for int(h) >= len(r.nodes) {
		r.nodes = append(r.nodes, mcNode{})
	}
	r.nodes[h] = mcNode{used: true, rid: rid, ports: lists.Set(ports), lags: lists.Set(lags)}
	return h
}

func (r *replication) join(group uint32, h Handle) error {
	g, n := r.groups[group], r.node(h)
	switch {
	case g == nil:
		return fmt.Errorf("unknown multicast group %d", group)
	case n == nil:
		return ErrBadHandle
	case n.bound:
		return fmt.Errorf("node %d is in multicast group %d already", h, n.group)
	}
	n.group, n.bound = group, true
	g.nodes = append(g.nodes, h)
	r.renew(g)
	return nil
}

// leave removes a node from its group.
func (r *replication) leave(h Handle) {
	n := &r.nodes[h]
	if !n.bound {
		return
	}
	g := r.groups[n.group]
	g.nodes = slices.DeleteFunc(g.nodes, func(x Handle) bool { return x == h })
	n.bound = false
	r.renew(g)
}

func (r *replication) deleteNode(h Handle) error {
	if r.node(h) == nil {
		return ErrBadHandle
	}
	r.leave(h)
	r.nodes[h] = mcNode{}
	r.hn.Release(h)
	return nil
}

// Replication sets multicast: groups of nodes, each with ports and link
// aggregations.
type Replication struct{ s *Switch }

// Replication returns the multicast groups of the switch.
func (s *Switch) Replication() Replication { return Replication{s} }

// CreateGroup creates an empty multicast group unless it exists. Group 0 means
// no multicast and is refused.
func (rp Replication) CreateGroup(group uint32) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return rp.s.pre.create(group)
}

// DeleteGroup removes a multicast group. Its nodes stay, without a group.
func (rp Replication) DeleteGroup(group uint32) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	g := rp.s.pre.groups[group]
	if g == nil {
		return fmt.Errorf("unknown multicast group %d", group)
	}
	for _, h := range g.nodes {
		rp.s.pre.nodes[h].bound = false
	}
	delete(rp.s.pre.groups, group)
	return nil
}

// CreateNode creates a node with a replication id, ports and LAGs. Duplicates
// are ignored.
func (rp Replication) CreateNode(rid uint32, ports, lags []uint32) Handle {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return rp.s.pre.createNode(rid, ports, lags)
}

// UpdateNode changes the ports and the LAGs of a node.
func (rp Replication) UpdateNode(h Handle, ports, lags []uint32) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	n := rp.s.pre.node(h)
	if n == nil {
		return ErrBadHandle
	}
	n.ports, n.lags = lists.Set(ports), lists.Set(lags)
	if n.bound {
		rp.s.pre.renew(rp.s.pre.groups[n.group])
	}
	return nil
}

// JoinGroup adds a node to a group. A node belongs to at most one group.
func (rp Replication) JoinGroup(group uint32, h Handle) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return rp.s.pre.join(group, h)
}

// LeaveGroup removes a node from its group.
func (rp Replication) LeaveGroup(h Handle) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	if rp.s.pre.node(h) == nil {
		return ErrBadHandle
	}
	rp.s.pre.leave(h)
	return nil
}

// DeleteNode removes a node, also from its group.
func (rp Replication) DeleteNode(h Handle) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return rp.s.pre.deleteNode(h)
}

// SetLAG sets the ports of a link aggregation group.
func (rp Replication) SetLAG(lag uint32, ports []uint32) {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	if rp.s.pre.lags == nil {
		rp.s.pre.lags = map[uint32][]uint32{}
	}
	rp.s.pre.lags[lag] = lists.Set(ports)
	for _, g := range rp.s.pre.groups {
		rp.s.pre.renew(g)
	}
}

// LAGs returns the ports of the link aggregation groups.
func (rp Replication) LAGs() map[uint32][]uint32 {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return maps.Clone(rp.s.pre.lags)
}

// A MulticastNode is a node of the replication engine.
type MulticastNode struct {
	Handle   Handle
	Instance uint32 // egress_rid of its copies
	Ports    []uint32
	LAGs     []uint32
}

// Nodes returns the nodes by handle, and for each group its nodes in the
// order in which they joined.
func (rp Replication) Nodes() (nodes []MulticastNode, groups map[uint32][]Handle) {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	for h, n := range rp.s.pre.nodes {
		if n.used {
			nodes = append(nodes, MulticastNode{Handle(h), n.rid, n.ports, n.lags})
		}
	}
	groups = map[uint32][]Handle{}
	for id, g := range rp.s.pre.groups {
		groups[id] = slices.Clone(g.nodes)
	}
	return nodes, groups
}

// A Replica is one copy that a multicast group makes.
type Replica struct {
	Instance uint32 // egress_rid of the copy
	Port     uint32
}

// Groups lists the multicast groups.
func (rp Replication) Groups() []uint32 {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	return slices.Sorted(maps.Keys(rp.s.pre.groups))
}

// Replicas returns the copies that a group makes.
func (rp Replication) Replicas(group uint32) ([]Replica, error) {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	g := rp.s.pre.groups[group]
	if g == nil {
		return nil, fmt.Errorf("unknown multicast group %d", group)
	}
	return slices.Clone(g.copies), nil
}

// SetGroup replaces a group by one with exactly these copies, as P4Runtime does.
func (rp Replication) SetGroup(group uint32, list []Replica) error {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	if err := rp.s.pre.create(group); err != nil {
		return err
	}
	for _, h := range slices.Clone(rp.s.pre.groups[group].nodes) {
		if err := rp.s.pre.deleteNode(h); err != nil {
			return err
		}
	}
	for _, r := range list {
		if err := rp.s.pre.join(group, rp.s.pre.createNode(r.Instance, []uint32{r.Port}, nil)); err != nil {
			return err
		}
	}
	return nil
}
