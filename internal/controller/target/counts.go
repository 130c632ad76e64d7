package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

var _ registers.Meter = (*Thrift)(nil)

// PortCounts returns the kernel's counters for a BMv2 on this machine, or the counters of p4lb's
// Thrift server. It does not use BMv2's Thrift server, which has none.
func (t *Thrift) PortCounts(ctx context.Context) (list []bmv2.PortCounts, err error) {
	m, missing := t.meter()
	if m != nil {
		return m.counts()
	}
	err = t.call(ctx, func(c *thrift.Client) error {
		list, err = c.PortCounts(ctx)
		return err
	})
	if _, ok := errors.AsType[*thrift.Error](err); ok {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, missing)
	}
	return list, err
}

// meter finds the interfaces of the switch, once per connection.
func (t *Thrift) meter() (*interfaceMeter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.looked {
		t.interfaces, t.missing = newInterfaceMeter(t.address)
		t.looked = true
	}
	return t.interfaces, t.missing
}
