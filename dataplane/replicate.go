package dataplane

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// replication is the packet replication engine: groups have nodes, a node has
// a replication id and ports. The copies of a group go by node, in the order
// in which they joined, then by port.
type replication struct {
	groups map[uint32]*mcGroup
	nodes  []mcNode
	hn     handles
}

type mcGroup struct {
	nodes  []Handle
	copies []Replica
}

type mcNode struct {
	used  bool
	rid   uint32
	ports []uint32
	group uint32
	bound bool
}

func (r *replication) copies(group uint32) []Replica {
	if g := r.groups[group]; g != nil {
		return g.copies
	}
	return nil
}

// renew computes the copies of a group.
func (r *replication) renew(g *mcGroup) {
	g.copies = nil
	for _, h := range g.nodes {
		for _, port := range r.nodes[h].ports {
			g.copies = append(g.copies, Replica{r.nodes[h].rid, port})
		}
	}
}

func (r *replication) node(h Handle) *mcNode {
	if int(h) < len(r.nodes) && r.nodes[h].used {
		return &r.nodes[h]
	}
	return nil
}

// create makes an empty group.
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

var errGroupZero = errors.New("multicast group 0 stands for none")

func (r *replication) createNode(rid uint32, ports []uint32) Handle {
	h := r.hn.take()
	for int(h) >= len(r.nodes) {
		r.nodes = append(r.nodes, mcNode{})
	}
	set := slices.Clone(ports)
	slices.Sort(set)
	r.nodes[h] = mcNode{used: true, rid: rid, ports: slices.Compact(set)}
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

// leave takes a node out of its group.
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
	r.hn.release(h)
	return nil
}

// CreateGroup makes an empty multicast group, unless it is there. Group 0
// stands for no multicast and cannot be used.
func (s *Switch) CreateGroup(group uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pre.create(group)
}

// DeleteGroup removes a multicast group; its nodes stay, without group.
func (s *Switch) DeleteGroup(group uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.pre.groups[group]
	if g == nil {
		return fmt.Errorf("unknown multicast group %d", group)
	}
	for _, h := range g.nodes {
		s.pre.nodes[h].bound = false
	}
	delete(s.pre.groups, group)
	return nil
}

// CreateNode makes a node with a replication id and ports. A port counts once.
func (s *Switch) CreateNode(rid uint32, ports []uint32) Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pre.createNode(rid, ports)
}

// UpdateNode changes the ports of a node.
func (s *Switch) UpdateNode(h Handle, ports []uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.pre.node(h)
	if n == nil {
		return ErrBadHandle
	}
	set := slices.Clone(ports)
	slices.Sort(set)
	n.ports = slices.Compact(set)
	if n.bound {
		s.pre.renew(s.pre.groups[n.group])
	}
	return nil
}

// JoinGroup adds a node to a group. A node is in one group at most.
func (s *Switch) JoinGroup(group uint32, h Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pre.join(group, h)
}

// LeaveGroup takes a node out of its group.
func (s *Switch) LeaveGroup(h Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pre.node(h) == nil {
		return ErrBadHandle
	}
	s.pre.leave(h)
	return nil
}

// DeleteNode removes a node, from its group too.
func (s *Switch) DeleteNode(h Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pre.deleteNode(h)
}

// A Replica is one copy that a multicast group makes.
type Replica struct {
	Instance uint32 // the egress_rid of the copy
	Port     uint32
}

// Groups lists the multicast groups.
func (s *Switch) Groups() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pre.groups))
}

// GroupReplicas returns the copies that a group makes.
func (s *Switch) GroupReplicas(group uint32) ([]Replica, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.pre.groups[group]
	if g == nil {
		return nil, fmt.Errorf("unknown multicast group %d", group)
	}
	return slices.Clone(g.copies), nil
}

// SetGroup makes a group that makes exactly these copies, whatever it was
// before: a whole P4Runtime group at once.
func (s *Switch) SetGroup(group uint32, list []Replica) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.pre.create(group); err != nil {
		return err
	}
	for _, h := range slices.Clone(s.pre.groups[group].nodes) {
		if err := s.pre.deleteNode(h); err != nil {
			return err
		}
	}
	for _, r := range list {
		if err := s.pre.join(group, s.pre.createNode(r.Instance, []uint32{r.Port})); err != nil {
			return err
		}
	}
	return nil
}
