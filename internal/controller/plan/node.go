package plan

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Node describes a switch for tasks and inspectors: its position in the network and
// its program.
type Node struct {
	Name     string
	Role     fabric.Role
	Leaf     int // number of a switch with hosts; 0: it has no hosts
	Manifest *manifest.Manifest
	Ports    []fabric.Port  // ports with a link, by number
	Groups   []fabric.Group // groups of next hops
	ByLeaf   bool           // the id of a group is the number of its destination leaf

	// Weights are the planned weights of the paths of each group, by group id, if
	// the program takes weights from the controller.
	Weights map[int][]uint64
}

// Nodes lists the switches of the plan with their programs.
func (p *Plan) Nodes() []*Node {
	return lists.Map(p.Switches, func(s *Switch) *Node { return p.node(p.Topology.Switch(s.Name), &s.Pipeline.Manifest) })
}

// node returns a switch that runs the program of a manifest.
func (p *Plan) node(s *fabric.Switch, m *manifest.Manifest) *Node {
	by := p.groupingAt(s.Name, m)
	table, _ := p.Routes.Table(s.Name, by)
	n := &Node{
		Name: s.Name, Role: s.Role, Leaf: s.Leaf, Manifest: m,
		Ports: p.Topology.Ports(s.Name), Groups: table.Groups, ByLeaf: by >= fabric.ByLeaf,
	}
	if m.Weights != nil && m.Weights.From == manifest.FromController {
		n.Weights = map[int][]uint64{}
		for _, g := range n.Groups {
			n.Weights[g.ID] = (&planner{plan: p, sw: s, grouping: by}).weights(g)
		}
	}
	return n
}

// NewNodes lists the switches of a fabric with the programs of their roles.
func NewNodes(t *fabric.Topology, manifests map[fabric.Role]*manifest.Manifest, by fabric.Grouping) ([]*Node, error) {
	p := &Plan{Topology: t, Routes: t.Routes(), Grouping: by}
	var list []*Node
	for i := range t.Switches {
		s := &t.Switches[i]
		m := manifests[s.Role]
		if m == nil {
			return nil, fmt.Errorf("switch %s: there is no program for the role %s", s.Name, s.Role)
		}
		list = append(list, p.node(s, m))
	}
	return list, nil
}

// GroupingOf returns the meaning of group ids in a fabric. The requirement of one
// program applies to all.
func GroupingOf(manifests map[fabric.Role]*manifest.Manifest) (by fabric.Grouping) {
	for _, m := range manifests {
		by = max(by, groupingOf(m))
	}
	return by
}

// Port returns the port with a number.
func (n *Node) Port(number int) (fabric.Port, bool) {
	i := slices.IndexFunc(n.Ports, func(p fabric.Port) bool { return p.Number == number })
	if i < 0 {
		return fabric.Port{}, false
	}
	return n.Ports[i], true
}

// PortCells returns how many cells of a register by port are in use.
func PortCells(n *Node) int {
	if len(n.Ports) == 0 {
		return 0
	}
	return n.Ports[len(n.Ports)-1].Number + 1
}
