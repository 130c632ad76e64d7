package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing/fstest"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/p4"
)

// A program is what one role of a scheme runs.
type program struct {
	arch     string
	manifest codegen.Manifest
	text     []byte
	digest   string // of the text

	compile sync.Once
	info    *configv1.P4Info
	config  []byte
	err     error
}

// programs are those of an experiment, each compiled once. Runs share them.
type programs struct {
	mu   sync.Mutex
	list map[string]*program // by digest and manifest
	read Reader
}

func newPrograms(read Reader) *programs { return &programs{list: map[string]*program{}, read: read} }

// A setup is the programs of one row in one case.
type setup struct {
	scheme  *Scheme
	params  map[string]string
	poly    *fitting.Poly
	byRole  map[fabric.Role]*program
	topo    *fabric.Topology // with the ports that the row's switches have
	named   *fabric.Topology // with those that the experiment speaks of
	lengths int              // of the largest group
}

// setUp generates the programs of a row, one for each role in the network.
func (p *programs) setUp(s *Scheme, c *Case, t *fabric.Topology) (*setup, error) {
	u := &setup{
		scheme: s, params: s.set(c), byRole: map[fabric.Role]*program{},
		topo: controller.DevicePorts(t, s.Arch), named: t, lengths: max(2, widestGroup(t, s.grouping())),
	}
	if s.Coeffs != "" {
		text, err := p.read(s.Coeffs)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Coeffs, err)
		}
		poly, err := fitting.DecodePoly(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Coeffs, err)
		}
		u.poly = &poly
	}
	for i := range t.Switches {
		role := t.Switches[i].Role
		if u.byRole[role] != nil {
			continue
		}
		one, err := p.generate(u, role)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Label, err)
		}
		u.byRole[role] = one
	}
	return u, nil
}

// generate generates the program of a role, or finds it.
func (p *programs) generate(u *setup, role fabric.Role) (*program, error) {
	made, err := codegen.Generate(u.scheme.row, codegen.Params{
		Arch: u.scheme.Arch, Ports: u.lengths, MaxPort: highestPort(u.topo), Set: u.params, StatePath: u.scheme.StatePath,
		Role: string(role), Printed: u.scheme.Errata == "printed", Coeffs: u.poly,
	})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(made.P4))
	digest := hex.EncodeToString(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	key := digest + beside(&made.Manifest)
	if p.list[key] == nil {
		p.list[key] = &program{arch: u.scheme.Arch, manifest: made.Manifest, digest: digest, text: []byte(made.P4)}
	}
	return p.list[key], nil
}

// beside is what a manifest has that is not in the text of the program: tasks,
// and for hardware the contents of tables.
func beside(m *codegen.Manifest) string {
	text := fmt.Sprintf(" %+v", m.Tasks)
	if m.Hardware != nil {
		text += fmt.Sprintf(" %+v", m.Hardware.Baked)
	}
	return text
}

// pipeline is the compiled program.
func (g *program) pipeline() (*controller.Pipeline, error) {
	g.compile.Do(func() {
		const name = "program.p4"
		made, err := p4.Compile(fstest.MapFS{name: {Data: g.text}}, name, p4.Options{Arch: g.arch})
		if err != nil {
			g.err = fmt.Errorf("the program of %s does not compile: %w", g.manifest.Scheme, err)
			return
		}
		g.info, g.config = made.P4Info, made.JSON()
	})
	if g.err != nil {
		return nil, g.err
	}
	return &controller.Pipeline{Manifest: g.manifest, P4Info: g.info, Config: g.config}, nil
}

// digests are those of the programs by role.
func (u *setup) digests() map[string]string {
	d := map[string]string{}
	for role, p := range u.byRole {
		d[string(role)] = p.digest
	}
	return d
}

// spread reports whether the candidates are paths, and not as many with each
// port.
func (u *setup) spread() bool {
	if u.scheme.Candidates != ByPaths {
		return false
	}
	routes := u.topo.Routes()
	return slices.ContainsFunc(u.topo.Switches, func(s fabric.Switch) bool {
		byPath, _ := routes.Table(s.Name, fabric.ByPath)
		byLeaf, _ := routes.Table(s.Name, fabric.ByLeaf)
		return !slices.EqualFunc(byPath.Groups, byLeaf.Groups, func(a, b fabric.Group) bool { return len(a.Hops) == len(b.Hops) })
	})
}

// identity tells rows apart that would run the same: engine, programs and what
// the controller does beside them.
func (u *setup) identity() string {
	id := u.scheme.Engine
	if u.spread() {
		id += " among " + ByPaths
	}
	for _, role := range slices.Sorted(maps.Keys(u.byRole)) {
		p := u.byRole[role]
		id += fmt.Sprintf("\n%s %s", role, p.digest) + beside(&p.manifest)
	}
	return id
}
