package p4rt

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// The methods below control a device without P4Runtime. They offer the
// operations of BMv2's Thrift interface.

// Program returns the BMv2 JSON of the program that Control returns, or nil.
func (d *Device) Program() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loaded != nil {
		return d.loaded.json
	}
	return d.program
}

// RegisterSize returns the number of cells of a register.
func (d *Device) RegisterSize(name string) (cells int, ok bool) {
	sw, err := d.controlled()
	if err != nil {
		return 0, false
	}
	cells, _, err = sw.Registers().Info(name)
	return cells, err == nil
}

// ReadRegister returns the cells from ≤ i < to, read at one moment. A cell with
// more than 64 significant bits is returned as the largest uint64.
func (d *Device) ReadRegister(name string, from, to int) ([]uint64, error) {
	return d.AppendRegister(nil, name, from, to)
}

// AppendRegister appends the cells to dst like ReadRegister, without allocating
// if dst has room.
func (d *Device) AppendRegister(dst []uint64, name string, from, to int) ([]uint64, error) {
	sw, err := d.controlled()
	if err != nil {
		return dst, err
	}
	cells, width, err := sw.Registers().Info(name)
	switch {
	case err != nil:
		return dst, err
	case from < 0 || to > cells || from > to:
		return dst, fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, cells-1)
	case width <= 64:
		return sw.Registers().Range(name, from, to, dst)
	}
	wide, err := sw.Registers().ReadAll(name)
	if err != nil {
		return dst, err
	}
	for _, v := range wide[from:to] {
		if !v.IsUint64() {
			v.SetUint64(math.MaxUint64)
		}
		dst = append(dst, v.Uint64())
	}
	return dst, nil
}

// WriteRegister sets the cells from ≤ i < to; the value is truncated to their
// width.
func (d *Device) WriteRegister(name string, from, to int, value uint64) error {
	sw, err := d.controlled()
	if err != nil {
		return err
	}
	return sw.Registers().WriteRange(name, from, to, new(big.Int).SetUint64(value))
}

// CounterSize returns the number of cells of an indirect counter.
func (d *Device) CounterSize(name string) (cells int, ok bool) {
	sw, err := d.controlled()
	if err != nil {
		return 0, false
	}
	list, err := sw.Counters().ReadAll(name)
	return len(list), err == nil
}

// ReadCounter returns a cell of a counter.
func (d *Device) ReadCounter(name string, index int) (packets, bytes uint64, err error) {
	sw, err := d.controlled()
	if err != nil {
		return 0, 0, err
	}
	c, err := sw.Counters().Read(name, index)
	return c.Packets, c.Bytes, err
}

// WriteCounter sets the cells from ≤ i < to of a counter.
func (d *Device) WriteCounter(name string, from, to int, packets, bytes uint64) error {
	sw, err := d.controlled()
	if err != nil {
		return err
	}
	d.Exclusively(func() {
		for i := from; i < to && err == nil; i++ {
			err = sw.Counters().Write(name, i, dataplane.Count{Packets: packets, Bytes: bytes})
		}
	})
	return err
}

// Session returns the port and the multicast group of a mirroring session; -1
// stands for none.
func (d *Device) Session(id int) (port, group int, ok bool) {
	sw, err := d.running()
	if err != nil || id < 0 {
		return -1, -1, false
	}
	m, ok := sw.Mirrors().Get(uint32(id))
	port, group = -1, -1
	if m.HasPort {
		port = int(m.Port)
	}
	if m.Group != 0 {
		group = int(m.Group)
	}
	return port, group, ok
}

// SetSession sends the clones of a session to a port, to a multicast group, or
// to both; -1 stands for none.
func (d *Device) SetSession(id, port, group int) error {
	if id < 0 || id > maxSession || port > maxPort || group > math.MaxUint16 {
		return fmt.Errorf("mirroring session %d to port %d and group %d: out of range", id, port, group)
	}
	sw, err := d.running()
	if err != nil {
		return err
	}
	m := dataplane.MirrorSession{HasPort: port >= 0}
	if port >= 0 {
		m.Port = uint32(port)
	}
	if group > 0 {
		m.Group = uint32(group)
	}
	return sw.Mirrors().Set(uint32(id), m)
}

// DeleteSession removes a mirroring session.
func (d *Device) DeleteSession(id int) error {
	sw, err := d.running()
	if err != nil {
		return err
	}
	if id < 0 {
		return fmt.Errorf("mirroring session %d: out of range", id)
	}
	return sw.Mirrors().Delete(uint32(id))
}

// A queueSetting is the depth or the rate of one queue, of all queues of a port
// (priority -1), or of all queues (port -1).
type queueSetting struct {
	port, priority int
	rate           bool
	value          uint64
}

// covers reports whether s makes an older setting o ineffective.
func (s queueSetting) covers(o queueSetting) bool {
	return s.rate == o.rate && (s.port == -1 || s.port == o.port && (s.priority == -1 || s.priority == o.priority))
}

func (s queueSetting) apply(q *dataplane.Queues) error {
	switch {
	case s.port == -1 && s.rate:
		q.SetAllRates(s.value)
	case s.port == -1:
		q.SetAllDepths(int(s.value))
	case s.rate:
		return q.SetRate(uint32(s.port), s.priority, s.value)
	default:
		return q.SetDepth(uint32(s.port), s.priority, int(s.value))
	}
	return nil
}

// SetQueueDepth sets the capacity in packets of one queue, of all queues of a
// port (priority -1), or of all queues (port -1).
func (d *Device) SetQueueDepth(port, priority, packets int) error {
	if packets < 0 {
		return fmt.Errorf("queue depth %d is negative: want a number of packets", packets)
	}
	return d.setQueue(queueSetting{port, priority, false, uint64(packets)})
}

// SetQueueRate sets the rate in packets per second of one queue, of all queues
// of a port (priority -1), or of all queues (port -1); 0 stands for no limit.
func (d *Device) SetQueueRate(port, priority int, packetsPerSecond uint64) error {
	return d.setQueue(queueSetting{port, priority, true, packetsPerSecond})
}

// SetPortRate limits a port to a rate in bits per second, like a link. It
// overrides the packet rates of the port's queues until it is set to 0.
func (d *Device) SetPortRate(port uint32, bits uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bitRates[port] = bits
	if d.engine != nil {
		d.engine.Queues(func(q *dataplane.Queues) { q.SetBitRate(port, bits) })
	}
}

// setQueue applies a setting and remembers it for later programs.
func (d *Device) setQueue(s queueSetting) (err error) {
	if s.port < -1 || s.port > maxPort {
		return fmt.Errorf("port %d is outside 0..%d", s.port, maxPort)
	}
	if limit := max(1, d.opts.Priorities) - 1; s.priority < -1 || s.priority > limit {
		return fmt.Errorf("priority %d is outside 0..%d", s.priority, limit)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine != nil {
		d.engine.Queues(func(q *dataplane.Queues) { err = s.apply(q) })
	}
	if err == nil {
		d.queueing = append(slices.DeleteFunc(d.queueing, s.covers), s)
	}
	return err
}
