package task

import (
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Hops returns how often all switches together process a probe in one period of a task,
// considering only links that are up.
func Hops(t *fabric.Topology, kind manifest.TaskKind) int {
	switch kind {
	case manifest.PathProbe:
		return pathHops(t)
	case manifest.ProbeFlood:
		return floodHops(t)
	}
	return 0
}

// pathHops counts the hops of probes that travel from each leaf, over each of its next hops, to
// each other leaf and back.
func pathHops(t *fabric.Topology) (hops int) {
	routes, leaves := t.Routes(), t.Leaves()
	for _, a := range leaves {
		for _, b := range leaves {
			next, err := routes.NextHops(a.Name, b.Name)
			span, ok := routes.Span(a.Name, b.Name)
			if err == nil && ok && a != b {
				hops += len(next) * (2*span.Links + 1)
			}
		}
	}
	return hops
}

// floodHops counts the hops of one flooded probe from each leaf. A switch forwards a probe from
// below to all its other neighbours, and a probe from above only downwards.
func floodHops(t *fabric.Topology) (hops int) {
	down, up := map[string]int{}, map[string]int{}
	var below func(s *fabric.Switch) int
	below = func(s *fabric.Switch) int { // hops of a probe that comes from above
		if n, ok := down[s.Name]; ok {
			return n
		}
		n := 1
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier > 0 && p.PeerTier < s.Role.Tier() {
				n += below(t.Switch(p.Peer))
			}
		}
		down[s.Name] = n
		return n
	}
	var around func(s *fabric.Switch) int
	around = func(s *fabric.Switch) int { // hops of a probe that starts at s
		if n, ok := up[s.Name]; ok {
			return n
		}
		n := below(s)
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier > s.Role.Tier() {
				n += around(t.Switch(p.Peer)) - below(s) // the probe does not return to s
			}
		}
		up[s.Name] = n
		return n
	}
	for _, s := range t.Leaves() {
		hops += around(s)
	}
	return hops
}
