package dataplane

import "slices"

// A Tree is a multicast group as Tofino's replication engine has it: what it makes
// copies for, from which packets may exclude branches and ports.
type Tree struct {
	Branches []Branch
}

// A Branch is a node of a group, or several of which a packet's first hash chooses
// one.
type Branch struct {
	// Excludes says that packets with the exclusion XID leave the branch out.
	Excludes bool
	XID      uint16
	Nodes    []TreeNode
}

// A TreeNode makes a copy for each of its ports, and for one port of each of its
// aggregations, which a packet's second hash chooses.
type TreeNode struct {
	RID   uint16
	Ports []uint32
	Lags  [][]uint32
}

// trees are the groups of a pipe.
type trees struct {
	groups map[uint32]Tree
	// Ports that a packet's second exclusion leaves out, from nodes of its own RID
	// and of the global one.
	prune  map[uint16][]uint32
	global uint16
}

// SetTrees replaces all trees. A group of CreateGroup or SetGroup is one of
// another kind; where there are both, the tree counts.
func (s *Switch) SetTrees(groups map[uint32]Tree, prune map[uint16][]uint32, global uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tofino != nil {
		s.tofino.trees = trees{groups, prune, global}
	}
}

// A cut is what a packet says of the copies that are made of it.
type cut struct {
	hash1, hash2 uint64
	xid1, xid2   uint16
	rid          uint16
}

// copies are those that a group makes of a packet.
func (t *trees) copies(pre *replication, group uint32, c cut) []Replica {
	tree, ok := t.groups[group]
	if !ok {
		return pre.copies(group)
	}
	var list []Replica
	for _, b := range tree.Branches {
		if len(b.Nodes) == 0 || b.Excludes && b.XID == c.xid1 {
			continue
		}
		n := &b.Nodes[c.hash1%uint64(len(b.Nodes))]
		var gone []uint32
		if n.RID == c.rid || n.RID == t.global && n.RID != 0 {
			gone = t.prune[c.xid2]
		}
		add := func(port uint32) {
			if !slices.Contains(gone, port) {
				list = append(list, Replica{uint32(n.RID), port})
			}
		}
		for _, port := range n.Ports {
			add(port)
		}
		for _, lag := range n.Lags {
			if len(lag) > 0 {
				add(lag[c.hash2%uint64(len(lag))])
			}
		}
	}
	return list
}
