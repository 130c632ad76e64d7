//go:build !js

package lab

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// pipePorts is the number of ports of a pipe.
const pipePorts = 72

// checkBfRt reports a row whose switches BfRt cannot control. All ports of a
// simulated chip share one pipe.
func (o *Serve) checkBfRt(j *Job) error {
	for _, p := range j.setup.byRole {
		if p.Manifest.Arch == manifest.V1Model {
			return fmt.Errorf("serving BfRt: %s is for %s: want a scheme for Tofino, such as ecmp@tna", o.row, manifest.V1Model)
		}
	}
	for _, s := range j.setup.topo.Switches {
		for _, p := range j.setup.topo.Ports(s.Name) {
			if p.Number >= pipePorts {
				return fmt.Errorf("serving BfRt: switch %s has port %d: want ports below %d, because a simulated chip has one pipe", s.Name, p.Number, pipePorts)
			}
		}
	}
	return nil
}

// describe stores the programs of the plan. For BfRt, it copies the pipelines of
// the plan before it changes them, because the runs of a row share them.
func (d *served) describe() error {
	pipelines := map[*plan.Pipeline]*plan.Pipeline{}
	for _, s := range d.r.planned.Switches {
		p, role := s.Pipeline, string(s.Role)
		if !d.o.BfRt {
			d.programs[role] = servedProgram{config: p.Config}
			continue
		}
		if pipelines[p] == nil {
			a, err := tofino.Embedded(p)
			if err != nil {
				return err
			}
			copied := &plan.Pipeline{Manifest: p.Manifest, P4Info: p.P4Info, Schema: p.Schema}
			if copied.Config, err = a.Encode(); err != nil {
				return err
			}
			pipelines[p] = copied
			d.programs[role] = servedProgram{p.Config, a.Schema, a.ProgramName()}
		}
		s.Pipeline = pipelines[p]
	}
	return nil
}
