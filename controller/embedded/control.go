package embedded

import (
	"context"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/p4rt"
)

// registers are those of a device, without a connection in between.
type registers struct{ dev *p4rt.Device }

// Read appends cells to dst.
func (r registers) Read(_ context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	cells, err := r.dev.ReadRegister(name, from, to)
	return append(dst, cells...), err
}

// Write sets cells.
func (r registers) Write(_ context.Context, name string, from, to int, value uint64) error {
	return r.dev.WriteRegister(name, from, to, value)
}

// Clock is that of the device.
func (r registers) Clock(context.Context) (time.Duration, error) { return r.dev.Elapsed(), nil }

// queues are those of a device.
type queues struct{ dev *p4rt.Device }

// Queue returns what has been set.
func (q queues) Queue(_ context.Context, port int) (controller.Queue, bool, error) {
	rate, depth, ok := q.dev.Queue(port)
	return controller.Queue{Port: port, Rate: rate, Depth: depth}, ok, nil
}

// SetQueue sets the rate and the depth of all priorities.
func (q queues) SetQueue(_ context.Context, set controller.Queue) error {
	if err := q.dev.SetQueueDepth(set.Port, -1, set.Depth); err != nil {
		return err
	}
	return q.dev.SetQueueRate(set.Port, -1, set.Rate)
}
