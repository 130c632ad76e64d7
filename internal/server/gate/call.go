package gate

import (
	"context"
	"math"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// An endable context belongs to a call that the server can end. Canceling it
// also wakes a handler blocked on the client's flow-control window. Err returns
// DeadlineExceeded after endLate, so the client receives that status.
type endable struct {
	context.Context
	cancel context.CancelFunc
	late   atomic.Bool
	size   atomic.Int64 // size of the request on the wire
}

type endableKey struct{}

func newEndable(ctx context.Context) *endable {
	c := &endable{}
	c.Context, c.cancel = context.WithCancel(ctx)
	return c
}

// Err returns the reason why the call has ended.
func (c *endable) Err() error {
	err := c.Context.Err()
	if err != nil && c.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// Value returns the endable context itself for endableKey, also through
// contexts derived from it.
func (c *endable) Value(key any) any {
	if key == (endableKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// endLate ends a call if the client reads too slowly.
func endLate(ctx context.Context) {
	if c, ok := ctx.Value(endableKey{}).(*endable); ok {
		c.late.Store(true)
		c.cancel()
	}
}

// RequestSize returns the size of a call's request on the wire.
func RequestSize(ctx context.Context) int {
	if c, ok := ctx.Value(endableKey{}).(*endable); ok {
		return int(c.size.Load())
	}
	return math.MaxInt
}

// requestSizes is a stats handler that records the size of each request.
type requestSizes struct{}

func (requestSizes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (requestSizes) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if in, ok := e.(*stats.InPayload); ok {
		if c, ok := ctx.Value(endableKey{}).(*endable); ok {
			c.size.Store(int64(in.Length))
		}
	}
}

func (requestSizes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (requestSizes) HandleConn(context.Context, stats.ConnStats) {}
