package thrift

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// The codes of exceptions about multicast.
const (
	multicastFull exception = 1
	invalidMgid   exception = 2
	invalidMgrp   exception = 3
	invalidNode   exception = 4
	mcError       exception = 5
)

// The limits of simple_switch's replication engine.
const (
	maxGroups = 4096
	maxNodes  = 4096
	maxLAG    = 256
)

func multicastCalls() map[string]call {
	return map[string]call{
		"bm_mc_mgrp_create":        replicating(createMgrp),
		"bm_mc_mgrp_destroy":       replicating(destroyMgrp),
		"bm_mc_node_create":        replicating(createNode),
		"bm_mc_node_update":        replicating(updateNode),
		"bm_mc_node_destroy":       replicating(destroyNode),
		"bm_mc_node_associate":     replicating(joinMgrp),
		"bm_mc_node_dissociate":    replicating(leaveMgrp),
		"bm_mc_set_lag_membership": replicating(setLAG),
		"bm_mc_get_entries":        replicating(multicastEntries),
	}
}

// replicating turns f into a call that fails while there is no program.
func replicating(f func(sw *dataplane.Switch, in record) (any, exception)) call {
	return func(t Target, in record) (any, exception) {
		if sw := t.Switch(); sw != nil {
			return f(sw, in)
		}
		return nil, mcError
	}
}

// bitmap parses a string of 0 and 1, with number 0 at its end.
func bitmap(text string) (set []uint32, ok bool) {
	for i := range len(text) {
		switch text[len(text)-1-i] {
		case '1':
			set = append(set, uint32(i))
		case '0':
		default:
			return nil, false
		}
	}
	return set, len(text) <= maxPort+1
}

// maxPort is the largest port number.
const maxPort = 511

func createMgrp(sw *dataplane.Switch, in record) (any, exception) {
	id := in.int32At(2)
	switch {
	case id < 0 || id > math.MaxUint16:
		return nil, invalidMgid
	case len(sw.Replication().Groups()) >= maxGroups:
		return nil, multicastFull
	case sw.Replication().CreateGroup(uint32(id)) != nil:
		return nil, invalidMgid
	}
	return id, 0
}

// destroyMgrp ignores a missing group, like simple_switch.
func destroyMgrp(sw *dataplane.Switch, in record) (any, exception) {
	_ = sw.Replication().DeleteGroup(uint32(in.int32At(2)))
	return nil, 0
}

// members parses the ports and the LAGs of a node.
func members(in record) (ports, lags []uint32, ok bool) {
	if ports, ok = bitmap(in.textAt(3)); ok {
		lags, ok = bitmap(in.textAt(4))
	}
	return ports, lags, ok
}

func createNode(sw *dataplane.Switch, in record) (any, exception) {
	ports, lags, ok := members(in)
	if !ok {
		return nil, mcError
	}
	if nodes, _ := sw.Replication().Nodes(); len(nodes) >= maxNodes {
		return nil, multicastFull
	}
	return int32(sw.Replication().CreateNode(uint32(uint16(in.int32At(2))), ports, lags)), 0
}

func updateNode(sw *dataplane.Switch, in record) (any, exception) {
	ports, lags, ok := members(in)
	if !ok {
		return nil, mcError
	}
	return done(sw.Replication().UpdateNode(dataplane.Handle(uint32(in.int32At(2))), ports, lags), invalidNode)
}

func destroyNode(sw *dataplane.Switch, in record) (any, exception) {
	return done(sw.Replication().DeleteNode(dataplane.Handle(uint32(in.int32At(2)))), invalidNode)
}

// aGroupAndNode returns the group and the node of a call, or an exception if
// one does not exist.
func aGroupAndNode(sw *dataplane.Switch, in record) (group uint32, node dataplane.Handle, joined bool, e exception) {
	group, node = uint32(in.int32At(2)), dataplane.Handle(uint32(in.int32At(3)))
	nodes, groups := sw.Replication().Nodes()
	list, ok := groups[group]
	switch {
	case !slices.ContainsFunc(nodes, func(n dataplane.MulticastNode) bool { return n.Handle == node }):
		return 0, 0, false, invalidNode
	case !ok:
		return 0, 0, false, invalidMgrp
	}
	return group, node, slices.Contains(list, node), 0
}

func joinMgrp(sw *dataplane.Switch, in record) (any, exception) {
	group, node, _, e := aGroupAndNode(sw, in)
	if e == 0 && sw.Replication().JoinGroup(group, node) != nil {
		e = mcError
	}
	return nil, e
}

func leaveMgrp(sw *dataplane.Switch, in record) (any, exception) {
	_, node, joined, e := aGroupAndNode(sw, in)
	if e == 0 && (!joined || sw.Replication().LeaveGroup(node) != nil) {
		e = mcError
	}
	return nil, e
}

func setLAG(sw *dataplane.Switch, in record) (any, exception) {
	lag, _ := in[2].(int16)
	ports, ok := bitmap(in.textAt(3))
	if !ok || lag < 0 || lag > maxLAG {
		return nil, mcError
	}
	sw.Replication().SetLAG(uint32(lag), ports)
	return nil, 0
}

// multicastEntries returns the complete state as JSON. In simple_switch a node
// consists of two objects, one with its replication id and one with its ports;
// here both have the same handle.
func multicastEntries(sw *dataplane.Switch, _ record) (any, exception) {
	type group struct {
		ID    uint32             `json:"id"`
		Nodes []dataplane.Handle `json:"l1_handles"`
	}
	type upper struct {
		Handle   dataplane.Handle `json:"handle"`
		Instance uint32           `json:"rid"`
		Lower    dataplane.Handle `json:"l2_handle"`
	}
	type lower struct {
		Handle dataplane.Handle `json:"handle"`
		Ports  []uint32         `json:"ports"`
		LAGs   []uint32         `json:"lags"`
	}
	type lagPorts struct {
		ID    uint32   `json:"id"`
		Ports []uint32 `json:"ports"`
	}
	out := struct {
		Groups []group    `json:"mgrps"`
		Upper  []upper    `json:"l1_handles"`
		Lower  []lower    `json:"l2_handles"`
		LAGs   []lagPorts `json:"lags"`
	}{Groups: []group{}, Upper: []upper{}, Lower: []lower{}, LAGs: []lagPorts{}}
	nodes, groups := sw.Replication().Nodes()
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		out.Groups = append(out.Groups, group{id, append([]dataplane.Handle{}, groups[id]...)})
	}
	for _, n := range nodes {
		out.Upper = append(out.Upper, upper{n.Handle, n.Instance, n.Handle})
		out.Lower = append(out.Lower, lower{n.Handle, append([]uint32{}, n.Ports...), append([]uint32{}, n.LAGs...)})
	}
	all := sw.Replication().LAGs()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out.LAGs = append(out.LAGs, lagPorts{id, append([]uint32{}, all[id]...)})
	}
	text, _ := json.MarshalIndent(out, "", "\t") // numbers and lists cannot fail
	return string(text) + "\n", 0
}
