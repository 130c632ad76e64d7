package target

import (
	"context"
	"errors"
	"fmt"

	"github.com/p4lb/p4lb/bmv2/thrift"
	"github.com/p4lb/p4lb/controller/registers"
)

var _ registers.Meter = (*Thrift)(nil)

// Sent is what a port has sent, by the counter of a Thrift server that has one
// for it. BMv2's has none: there the interfaces are asked, if the switch runs on
// this machine.
func (t *Thrift) Sent(ctx context.Context, port int) (bytes uint64, err error) {
	t.mu.Lock()
	m := t.interfaces
	t.mu.Unlock()
	if m != nil {
		return m.sent(port)
	}
	err = t.call(ctx, func(c *thrift.Client) error {
		_, bytes, err = c.CounterRead(ctx, SentCounter, port)
		return err
	})
	var answer *thrift.Error
	if !errors.As(err, &answer) {
		return bytes, err
	}
	if m, err = newInterfaceMeter(t.address); err != nil {
		return 0, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	t.mu.Lock()
	t.interfaces = m
	t.mu.Unlock()
	return m.sent(port)
}

// SentCounter is the name of the counter by which Thrift servers that are not
// BMv2's tell what ports have sent. No program can have one of that name.
const SentCounter = "port sent"
