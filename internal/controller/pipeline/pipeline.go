// Package pipeline builds the pipelines of a scheme: one for each role in a topology.
package pipeline

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// For makes the programs of a scheme for a topology in parallel, one for each role of its
// switches.
func For(ctx context.Context, s scheme.Scheme, params codegen.Params, t *fabric.Topology) (map[fabric.Role]*plan.Pipeline, error) {
	params.Ports, params.MaxPort = plan.Sizes(t)
	roles := map[fabric.Role]bool{}
	for _, s := range t.Switches {
		roles[s.Role] = true
	}
	names := slices.Sorted(maps.Keys(roles))
	made, errs := make([]*plan.Pipeline, len(names)), make([]error, len(names))
	var wait sync.WaitGroup
	for i, role := range names {
		p := params
		p.Role = string(role)
		wait.Go(func() {
			if errs[i] = ctx.Err(); errs[i] == nil {
				made[i], errs[i] = Of(s, p)
			}
		})
	}
	wait.Wait()
	all := map[fabric.Role]*plan.Pipeline{}
	for i, role := range names {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all[role] = made[i]
	}
	return all, nil
}

// Of makes the program of a scheme as a pipeline.
func Of(s scheme.Scheme, params codegen.Params) (*plan.Pipeline, error) {
	p, err := s.Build(params)
	if err != nil {
		return nil, err
	}
	return Compiled(p)
}

// Compiled converts a program to a pipeline of the controller.
func Compiled(p *scheme.Program) (*plan.Pipeline, error) {
	compiled, err := p.Compiled()
	if err != nil {
		return nil, err
	}
	made := &plan.Pipeline{Manifest: p.Manifest, P4Info: compiled.P4Info, Config: compiled.JSON()}
	if p.Manifest.Arch != manifest.V1Model {
		made.Schema = sync.OnceValues(func() ([]byte, error) {
			if err := compiled.DescribeBfRt(); err != nil {
				return nil, err
			}
			return compiled.Schema.JSON(), nil
		})
	}
	return made, nil
}
