package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2/thrift"
)

var _ Meter = (*Thrift)(nil)

// Sent is what a port has sent, by the counter of a Thrift server that has one
// for it. BMv2's has none: there the interfaces are asked, if the switch runs on
// this machine.
func (t *Thrift) Sent(ctx context.Context, port int) (bytes uint64, err error) {
	err = t.call(ctx, func(c *thrift.Client) error {
		_, bytes, err = c.CounterRead(ctx, SentCounter, port)
		return err
	})
	var answer *thrift.Error
	if !errors.As(err, &answer) {
		return bytes, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.interfaces == nil {
		if t.interfaces, err = newInterfaceMeter(t.address); err != nil {
			return 0, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	return t.interfaces.sent(port)
}
