package dataplane

import "slices"

// A Tree is a multicast group of Tofino's replication engine: the branches that
// it copies to. Packets may exclude branches and ports.
type Tree struct {
	Branches []Branch
}

// A Branch is a node of a group, or several slots, one of which a packet's
// first hash selects.
type Branch struct {
	// Excludes makes packets with the exclusion XID skip the branch.
	Excludes bool
	XID      uint16
	Nodes    []TreeNode
}

// A TreeNode makes a copy for each of its ports, and for one port of each of
// its aggregations, selected by a packet's second hash.
type TreeNode struct {
	Empty bool // the slot has no node
	RID   uint16
	Ports []uint32
	Lags  []Lag
}

// A Lag is an aggregation of ports. It may also include ports of other chips,
// before and after its own ports.
type Lag struct {
	Ports          []uint32
	Before, Behind uint64
}

// Trees are the groups of a pipe.
type Trees struct {
	Groups map[uint32]Tree
	// Prune lists the ports that a packet's second exclusion removes from nodes
	// with its own RID, or from all nodes if that RID is Global.
	Prune  map[uint16][]uint32
	Global uint16
	// Down lists ports that forward nothing. Their copies go to the port's
	// Backup.
	Down   map[uint32]bool
	Backup map[uint32]uint32
	// WithRID adds a node's RID to the hash for its aggregations.
	WithRID bool
}

// SetTrees replaces all trees. A tree takes precedence over a group of
// CreateGroup or SetGroup with the same number.
func (rp Replication) SetTrees(t Trees) {
	rp.s.mu.Lock()
	defer rp.s.mu.Unlock()
	if rp.s.tofino != nil {
		rp.s.tofino.trees = t
	}
}

// A cut holds the hashes and exclusions of a packet for its copies.
type cut struct {
	hash1, hash2 uint64
	xid1, xid2   uint16
	rid          uint16
}

// copies lists the copies that a group makes of a packet.
func (t *Trees) copies(pre *replication, group uint32, c cut) []Replica {
	tree, ok := t.Groups[group]
	if !ok {
		return pre.copies(group)
	}
	var list []Replica
	for _, b := range tree.Branches {
		if len(b.Nodes) == 0 || b.Excludes && b.XID == c.xid1 {
			continue
		}
		i := chosen(len(b.Nodes), c.hash1%uint64(len(b.Nodes)), c.hash1, func(i int) bool { return !b.Nodes[i].Empty })
		n := &b.Nodes[i]
		var pruned []uint32
		if n.RID == c.rid || c.rid == t.Global {
			pruned = t.Prune[c.xid2]
		}
		add := func(port uint32) {
			if slices.Contains(pruned, port) {
				return
			}
			if b, ok := t.Backup[port]; ok && t.Down[port] {
				port = b
			}
			list = append(list, Replica{uint32(n.RID), port})
		}
		for _, port := range n.Ports {
			add(port)
		}
		for _, lag := range n.Lags {
			if port, ok := t.of(&lag, n, c.hash2); ok {
				add(port)
			}
		}
	}
	return list
}

// of returns the port of an aggregation that a hash selects. ok is false if the port belongs to
// another chip.
func (t *Trees) of(lag *Lag, n *TreeNode, hash uint64) (port uint32, ok bool) {
	const bits = 13 // bits of the hash, and of the number of members
	if t.WithRID {
		hash = (hash ^ uint64(n.RID)) & (1<<bits - 1)
	}
	own := uint64(len(lag.Ports))
	at := uint64(0)
	if all := (lag.Before + own + lag.Behind) & (1<<bits - 1); all > 0 {
		at = hash % all
	}
	if at < lag.Before || at >= lag.Before+own {
		return 0, false
	}
	return lag.Ports[chosen(len(lag.Ports), at-lag.Before, hash, func(i int) bool { return !t.Down[lag.Ports[i]] })], true
}

// chosen returns the slot that a hash selects among n slots. It returns first if
// first is alive. Otherwise it returns one of the live slots, or first if none is
// alive.
func chosen(n int, first, hash uint64, lives func(int) bool) int {
	if lives(int(first)) {
		return int(first)
	}
	var living []int
	for i := range n {
		if lives(i) {
			living = append(living, i)
		}
	}
	if len(living) == 0 {
		return int(first)
	}
	return living[hash%uint64(len(living))]
}
