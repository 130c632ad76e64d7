package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// deviceRegisters accesses the registers of a device in this process without a
// connection.
type deviceRegisters struct{ dev *p4rt.Device }

// Read appends cells to dst.
func (r deviceRegisters) Read(_ context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	return r.dev.AppendRegister(dst, name, from, to)
}

// Write sets cells.
func (r deviceRegisters) Write(_ context.Context, name string, from, to int, value uint64) error {
	if err := r.dev.WriteRegister(name, from, to, value); err != nil {
		return fmt.Errorf("writing register %s: %w", name, err)
	}
	return nil
}

// Clock returns the time since the device started, on which its timestamps are based.
func (r deviceRegisters) Clock(context.Context) (time.Duration, error) { return r.dev.Elapsed(), nil }

// PortCounts returns the packets that the ports of the device received, sent and
// dropped.
func (r deviceRegisters) PortCounts(context.Context) ([]bmv2.PortCounts, error) {
	return r.dev.PortCounts(), nil
}

var _ registers.Meter = deviceRegisters{}

// Inject makes a frame arrive at a port.
func (r deviceRegisters) Inject(_ context.Context, port int, frame []byte) error {
	return r.dev.Inject(port, frame)
}

// QueuesEmpty reports whether no packet waits in the switch.
func (r deviceRegisters) QueuesEmpty(context.Context) (bool, error) { return r.dev.Idle(), nil }

// filters accesses the low-pass filters of a device in this process.
type filters struct{ dev *p4rt.Device }

// List returns the filters of the running program.
func (f filters) List(context.Context) ([]plan.Filter, error) {
	names, err := f.dev.Filters()
	var list []plan.Filter
	for _, name := range names {
		spec, err := f.dev.FilterSpec(name)
		if err != nil {
			return nil, err
		}
		list = append(list, plan.Filter{Name: name, Sample: !spec.Rate, Time: spec.Gain, Shift: spec.Shift})
	}
	return list, err
}

// SetFilter sets all cells of a filter.
func (f filters) SetFilter(_ context.Context, set plan.Filter) error {
	return f.dev.SetFilter(set.Name, dataplane.FilterSpec{Rate: !set.Sample, Gain: set.Time, Decay: set.Time, Shift: set.Shift})
}

// queues accesses the queues of a device in this process.
type queues struct{ dev *p4rt.Device }

// Queue returns the configured queue.
func (q queues) Queue(_ context.Context, port int) (plan.Queue, bool, error) {
	rate, depth, ok := q.dev.Queue(port)
	return plan.Queue{Port: port, Rate: rate, Depth: depth}, ok, nil
}

// SetQueue sets the rate and the depth of all priorities.
func (q queues) SetQueue(_ context.Context, set plan.Queue) error {
	if err := q.dev.SetQueueDepth(set.Port, -1, set.Depth); err != nil {
		return err
	}
	return q.dev.SetQueueRate(set.Port, -1, set.Rate)
}
