package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A Thrift accesses the registers and queues of a simple_switch through its Thrift server, which
// is the only way to them. It connects on first use, and again after losing the connection.
type Thrift struct {
	address string

	mu     sync.Mutex
	client *thrift.Client
	queues map[int]plan.Queue // queues as configured, because the switch does not report them

	looked     bool // interfaces have been looked for on this connection
	interfaces *interfaceMeter
	missing    error // reason for having no interface counters
}

var (
	_ registers.Access = (*Thrift)(nil)
	_ Queues           = (*Thrift)(nil)
)

// NewThrift returns a Thrift for the server at an address such as 127.0.0.1:9090.
func NewThrift(address string) *Thrift {
	return &Thrift{address: address, queues: map[int]plan.Queue{}}
}

// few is the largest number of cells that are read one by one. More cells are read with the whole
// register, because Thrift cannot read ranges. Reading this many cells separately takes about as
// long as reading a register of 16,384 cells.
const few = 64

// Read appends the cells from ≤ i < to of a register to dst. More than few cells are read
// atomically.
func (t *Thrift) Read(ctx context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	var cells []uint64
	first := from
	err := t.call(ctx, func(c *thrift.Client) (err error) {
		if to-from > few {
			cells, err = c.RegisterReadAll(ctx, name)
			first = 0
		} else {
			cells, err = c.RegisterReadRange(ctx, name, from, to)
		}
		return err
	})
	switch {
	case err != nil:
		return dst, err
	case from < first || to-first > len(cells):
		return dst, fmt.Errorf("cells %d to %d of %s, which has %d", from, to-1, name, len(cells))
	}
	return append(dst, cells[from-first:to-first]...), nil
}

// Write sets the cells from ≤ i < to of a register.
func (t *Thrift) Write(ctx context.Context, name string, from, to int, value uint64) error {
	return t.call(ctx, func(c *thrift.Client) error {
		return c.RegisterWriteRange(ctx, name, from, to, value)
	})
}

// Clock returns the data plane's current time, on which its timestamps are based.
func (t *Thrift) Clock(ctx context.Context) (now time.Duration, err error) {
	err = t.call(ctx, func(c *thrift.Client) error {
		now, err = c.Elapsed(ctx)
		return err
	})
	return now, err
}

// Queue returns the configuration set by SetQueue, or false before.
func (t *Thrift) Queue(_ context.Context, port int) (plan.Queue, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q, ok := t.queues[port]
	return q, ok, nil
}

// SetQueue sets the rate and the depth of a port's queues.
func (t *Thrift) SetQueue(ctx context.Context, q plan.Queue) error {
	return t.call(ctx, func(c *thrift.Client) error {
		if err := c.SetQueueDepth(ctx, q.Port, -1, q.Depth); err != nil {
			return err
		}
		if err := c.SetQueueRate(ctx, q.Port, -1, q.Rate); err != nil {
			return err
		}
		t.queues[q.Port] = q
		return nil
	})
}

// KnownQueues lists the queues that were set through t, by port. BMv2 cannot report
// the configuration of a queue.
func (t *Thrift) KnownQueues() []plan.Queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.queues), func(a, b plan.Queue) int { return a.Port - b.Port })
}

// Assume records queues as already configured.
func (t *Thrift) Assume(list []plan.Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range list {
		t.queues[q.Port] = q
	}
}

// Forget resets the state for a new switch process: queues have their defaults, and existing
// connections are broken.
func (t *Thrift) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.queues)
	t.hangUp()
}

// Close closes the connection, if there is one.
func (t *Thrift) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hangUp()
	return nil
}

func (t *Thrift) hangUp() {
	t.looked = false
	if t.client != nil {
		t.client.Close()
		t.client = nil
	}
}

// starting is how long a starting switch may listen without accepting calls.
const starting = 2 * time.Second

// call runs f with a client, and once more if an existing connection turns out to be
// broken. Answers of the switch are final, with one exception: a starting BMv2 listens
// before it knows its calls and reports them as unknown.
func (t *Thrift) call(ctx context.Context, f func(*thrift.Client) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for begun := time.Now(); ; {
		old := t.client != nil
		if !old {
			c, err := thrift.Dial(ctx, t.address)
			if err != nil {
				return t.unreachable(err)
			}
			t.client = c
		}
		err := f(t.client)
		var answer *thrift.Error
		if errors.As(err, &answer) && strings.Contains(answer.Msg, "Unknown service") && time.Since(begun) < starting {
			t.hangUp()
			select {
			case <-time.After(starting / 20):
				continue
			case <-ctx.Done():
			}
		}
		if err == nil || answer != nil {
			return err
		}
		t.hangUp()
		if !old || ctx.Err() != nil {
			return t.unreachable(err)
		}
	}
}

// unreachable returns the error about a lost connection, with only the system's reason if
// there is one: the other parts repeat the address.
func (t *Thrift) unreachable(err error) error {
	if reason, ok := errors.AsType[syscall.Errno](err); ok {
		err = reason
	}
	return fmt.Errorf("%w over Thrift at %s: %w", ErrUnreachable, t.address, err)
}
