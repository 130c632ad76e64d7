package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// programs holds the programs of all rows. Each is compiled once and shared by all
// runs.
type programs struct {
	mu   sync.Mutex
	list map[string]*scheme.Program // by digest and manifest
	read spec.Reader
}

// A setup holds the programs of one row in one case.
type setup struct {
	scheme  *spec.Scheme
	params  map[string]string
	poly    *fitting.Poly
	byRole  map[fabric.Role]*scheme.Program
	topo    *fabric.Topology // with the ports of the row's switches
	named   *fabric.Topology // topology with the names in the experiment
	lengths int              // size of the largest group

	once     sync.Once
	contents string // part of the key: see Job.contents

	linked func() (map[fabric.Role]*plan.Pipeline, error) // returns the programs in the controller's form
}

// pipelines converts the programs for the controller, once for all runs of the row.
func (u *setup) pipelines() (map[fabric.Role]*plan.Pipeline, error) {
	list := map[fabric.Role]*plan.Pipeline{}
	for role, p := range u.byRole {
		var err error
		if list[role], err = pipeline.Compiled(cmp.Or(p.Tables, p)); err != nil {
			return nil, err
		}
		list[role].Manifest = p.Manifest
	}
	return list, nil
}

// setUp makes the programs of a row, one for each role in the network.
func (p *programs) setUp(x *spec.Experiment, s *spec.Scheme, c *spec.Case, t *fabric.Topology) (*setup, error) {
	params, err := x.Parameters(s, c, t)
	if err != nil {
		return nil, err
	}
	phases, err := c.Phases(t)
	if err != nil {
		return nil, err
	}
	u := &setup{
		scheme: s, params: params, byRole: map[fabric.Role]*scheme.Program{},
		topo: plan.DevicePorts(t, s.Arch), named: t, lengths: max(2, spec.WidestGroup(phases, s.Grouping())),
	}
	u.linked = sync.OnceValues(u.pipelines)
	if s.Coeffs != "" {
		poly, err := s.Polynomial(p.read)
		if err != nil {
			return nil, err
		}
		u.poly = poly
	}
	for i := range t.Switches {
		role := t.Switches[i].Role
		if u.byRole[role] != nil {
			continue
		}
		one, err := p.build(u, role)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Label, err)
		}
		u.byRole[role] = one
	}
	var virtual []int
	for _, one := range u.byRole {
		virtual = append(virtual, one.Manifest.VirtualNumbers()...)
	}
	u.topo = plan.DevicePorts(t, s.Arch, virtual...)
	return u, nil
}

// build builds the program of a role, or returns an identical one.
func (p *programs) build(u *setup, role fabric.Role) (*scheme.Program, error) {
	made, err := u.scheme.Made().Build(codegen.Params{
		Arch: u.scheme.Arch, Ports: u.lengths, MaxPort: spec.HighestPort(u.topo), Set: u.params, StatePath: u.scheme.StatePath,
		Role: string(role), Printed: u.scheme.Errata == "printed", Coeffs: u.poly, IPv6: u.scheme.ForwardsIPv6(u.topo),
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := made.Digest + outsideText(&made.Manifest)
	p.list[key] = cmp.Or(p.list[key], made)
	return p.list[key], nil
}

// outsideText returns the parts of a manifest that the program's text does not contain: tasks, and for
// hardware the contents of tables.
func outsideText(m *manifest.Manifest) string {
	text := fmt.Sprintf(" %+v", m.Tasks)
	for _, t := range m.Tables {
		if t.Baked != nil {
			text += fmt.Sprintf(" %+v", *t.Baked)
		}
	}
	return text
}

// digests returns the digests of the programs by role.
func (u *setup) digests() map[string]string {
	d := map[string]string{}
	for role, p := range u.byRole {
		d[string(role)] = p.Digest
	}
	return d
}

// spread reports whether the candidates are paths, and several paths start with the
// same port.
func (u *setup) spread() bool {
	if u.scheme.Candidates != spec.ByPaths {
		return false
	}
	routes := u.topo.Routes()
	return slices.ContainsFunc(u.topo.Switches, func(s fabric.Switch) bool {
		byPath, _ := routes.Table(s.Name, fabric.ByPath)
		byLeaf, _ := routes.Table(s.Name, fabric.ByLeaf)
		return !slices.EqualFunc(byPath.Groups, byLeaf.Groups, func(a, b fabric.Group) bool { return len(a.Hops) == len(b.Hops) })
	})
}

// identity returns a string that is equal for rows with the same engine, programs
// and controller tasks.
func (u *setup) identity() string {
	id := u.scheme.Engine
	if u.spread() {
		id += " among " + spec.ByPaths
	}
	for _, role := range slices.Sorted(maps.Keys(u.byRole)) {
		p := u.byRole[role]
		id += fmt.Sprintf("\n%s %s", role, p.Digest) + outsideText(&p.Manifest)
	}
	return id
}
