package gate

import (
	"context"
	"math"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// An endable context belongs to a call which the server may end: what waits for
// the client's window waits for the context as well, and nothing else is told to
// the client than what the context says.
type endable struct {
	context.Context
	cancel context.CancelFunc
	late   atomic.Bool
	size   atomic.Int64 // of the request, as it came
}

type endableKey struct{}

func newEndable(ctx context.Context) *endable {
	c := &endable{}
	c.Context, c.cancel = context.WithCancel(ctx)
	return c
}

// Err says why a call has ended.
func (c *endable) Err() error {
	err := c.Context.Err()
	if err != nil && c.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// Value finds the context itself below others.
func (c *endable) Value(key any) any {
	if key == (endableKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// endLate ends a call whose client has taken too long.
func endLate(ctx context.Context) {
	if c, ok := ctx.Value(endableKey{}).(*endable); ok {
		c.late.Store(true)
		c.cancel()
	}
}

// Notes is the option of a server that wants RequestSize and Line of its calls.
func Notes() grpc.ServerOption { return grpc.StatsHandler(notes{}) }

// notes are how large the requests are that come, and over which connection.
type notes struct{}

func (notes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (notes) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if in, ok := e.(*stats.InPayload); ok {
		if c, ok := ctx.Value(endableKey{}).(*endable); ok {
			c.size.Store(int64(in.Length))
		}
	}
}

type lineKey struct{}

func (notes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, lineKey{}, make(chan struct{}, 1))
}

func (notes) HandleConn(context.Context, stats.ConnStats) {}

// RequestSize is the size of the request of a call, as it came.
func RequestSize(ctx context.Context) int {
	if c, ok := ctx.Value(endableKey{}).(*endable); ok {
		return int(c.size.Load())
	}
	return math.MaxInt
}

// Line has room for one of the calls that came over the same connection.
func Line(ctx context.Context) chan struct{} {
	line, _ := ctx.Value(lineKey{}).(chan struct{})
	return line
}
