package dataplane

import (
	"slices"
	"testing"
)

// The copies of a group of Tofino's replication engine depend on free slots,
// aggregations with ports of other chips, ports that are down, and the
// exclusions of the packet.
func TestTrees(t *testing.T) {
	node := func(rid uint16, ports ...uint32) TreeNode { return TreeNode{RID: rid, Ports: ports} }
	slots := make([]TreeNode, 32)
	for i := range slots {
		slots[i].Empty = true
	}
	slots[3], slots[7], slots[8] = node(3, 30), node(7, 70), node(8, 80)
	lag := func(before, behind uint64, ports ...uint32) Branch {
		return Branch{Nodes: []TreeNode{{RID: 5, Lags: []Lag{{ports, before, behind}}}}}
	}
	trees := Trees{
		Groups: map[uint32]Tree{
			1: {[]Branch{{Nodes: []TreeNode{node(1, 10, 11)}}, {Excludes: true, XID: 9, Nodes: []TreeNode{node(2, 20)}}}},
			2: {[]Branch{{Nodes: slots}}},
			3: {[]Branch{lag(2, 1, 40, 41, 42)}},
			4: {[]Branch{lag(0, 0, 10, 11, 12)}},
		},
		Prune:  map[uint16][]uint32{6: {10, 20}},
		Global: 0x4322,
	}
	down := trees
	down.Down, down.Backup = map[uint32]bool{10: true, 42: true}, map[uint32]uint32{10: 99, 11: 98}
	second := trees
	second.WithRID = true
	for name, c := range map[string]struct {
		trees *Trees
		group uint32
		cut   cut
		want  []Replica
	}{
		"all":                               {&trees, 1, cut{rid: 77}, []Replica{{1, 10}, {1, 11}, {2, 20}}},
		"an exclusion of a branch":          {&trees, 1, cut{rid: 77, xid1: 9}, []Replica{{1, 10}, {1, 11}}},
		"an exclusion of other nodes":       {&trees, 1, cut{rid: 77, xid2: 6}, []Replica{{1, 10}, {1, 11}, {2, 20}}},
		"an exclusion of a node's ports":    {&trees, 1, cut{rid: 1, xid2: 6}, []Replica{{1, 11}, {2, 20}}},
		"an exclusion for all nodes":        {&trees, 1, cut{rid: 0x4322, xid2: 6}, []Replica{{1, 11}}},
		"a slot that is used":               {&trees, 2, cut{rid: 77, hash1: 32 + 7}, []Replica{{7, 70}}},
		"a slot that is free":               {&trees, 2, cut{rid: 77, hash1: 32 + 9}, []Replica{{8, 80}}}, // 41 % 3 = 2
		"a port of the aggregation":         {&trees, 3, cut{rid: 77, hash2: 6 + 3}, []Replica{{5, 41}}},
		"a port before it, of another chip": {&trees, 3, cut{rid: 77, hash2: 6 + 1}, nil},
		"a port behind it, of another chip": {&trees, 3, cut{rid: 77, hash2: 6 + 5}, nil},
		"the second chip adds the RID":      {&second, 3, cut{rid: 77, hash2: (6 + 3) ^ 5}, []Replica{{5, 41}}},
		"a port that is down":               {&down, 1, cut{rid: 77}, []Replica{{1, 99}, {1, 11}, {2, 20}}},
		"a member that is down":             {&down, 3, cut{rid: 77, hash2: 4}, []Replica{{5, 40}}}, // the third; 4 % 2 = 0 of the members that are up
		"a member of many that is down":     {&down, 4, cut{rid: 77, hash2: 3}, []Replica{{5, 12}}}, // 3 % 2 = 1 of the members that are up
	} {
		if got := c.trees.copies(&replication{}, c.group, c.cut); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
