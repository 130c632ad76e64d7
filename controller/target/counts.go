package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/bmv2/thrift"
	"github.com/p4lb/p4lb/controller/registers"
)

var _ registers.Meter = (*Thrift)(nil)

// PortCounts are what a Thrift server of p4lb tells. BMv2's tells nothing: there
// the interfaces are asked, if the switch runs on this machine.
func (t *Thrift) PortCounts(ctx context.Context) (list []bmv2.PortCounts, err error) {
	t.mu.Lock()
	m := t.interfaces
	t.mu.Unlock()
	if m != nil {
		return m.counts()
	}
	err = t.call(ctx, func(c *thrift.Client) error {
		list, err = c.PortCounts(ctx)
		return err
	})
	var answer *thrift.Error
	if !errors.As(err, &answer) {
		return list, err
	}
	if m, err = newInterfaceMeter(t.address); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	t.mu.Lock()
	t.interfaces = m
	t.mu.Unlock()
	return m.counts()
}
