package controller

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
)

// Fill loads a program into a switch and then applies updates in order. It is primary only for
// this time. at is the index of the update that caused the error, or -1.
func Fill(ctx context.Context, name string, t Target, p *Pipeline, updates []*p4v1.Update, o DeployOptions) (at int, err error) {
	at = -1
	if err := o.complete(); err != nil {
		return at, err
	}
	index, err := p.Index()
	if err != nil {
		return at, err
	}
	c := primary.New(ctx, name, t, o.primary())
	defer c.Close()
	short, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	l, _, err := c.Wait(short)
	if err != nil {
		return at, err
	}
	x := &exchange{c: c, link: l, timeout: o.Timeout, index: index}
	had, err := x.config(ctx, p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY)
	if err == nil {
		err = x.replace(ctx, forwarding(p, index), had != nil)
	}
	if err != nil {
		return at, err
	}
	_, err = x.write(ctx, updates, func(i int) string {
		at = i
		return describe(index, updates[i].GetEntity())
	})
	return at, err
}

// forwarding returns a program as a pipeline config for P4Runtime.
func forwarding(p *plan.Pipeline, x *p4info.Index) *p4v1.ForwardingPipelineConfig {
	return &p4v1.ForwardingPipelineConfig{
		P4Info: p.P4Info, P4DeviceConfig: p.Config, Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: x.Cookie},
	}
}
