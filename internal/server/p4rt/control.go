package p4rt

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// What follows is the control of a device beside P4Runtime: what the Thrift
// interface of BMv2 offers, on the program that packets go through.

var errNoProgram = errors.New("the switch has no program yet")

// running is the program that packets go through.
func (d *Device) running() (*dataplane.Switch, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return nil, errNoProgram
	}
	return d.engine.Switch(), nil
}

// Program is the BMv2 JSON that runs, empty if none does.
func (d *Device) Program() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.program
}

// RegisterSize is the number of cells of a register.
func (d *Device) RegisterSize(name string) (cells int, ok bool) {
	sw, err := d.running()
	if err != nil {
		return 0, false
	}
	cells, _, err = sw.RegisterInfo(name)
	return cells, err == nil
}

// ReadRegister returns the cells from ≤ i < to as they are at one moment. A
// cell that has more than 64 bits set is the largest number.
func (d *Device) ReadRegister(name string, from, to int) ([]uint64, error) {
	return d.AppendRegister(nil, name, from, to)
}

// AppendRegister appends what ReadRegister returns to dst: who watches large
// registers needs no new memory each time.
func (d *Device) AppendRegister(dst []uint64, name string, from, to int) ([]uint64, error) {
	sw, err := d.running()
	if err != nil {
		return dst, err
	}
	cells, width, err := sw.RegisterInfo(name)
	switch {
	case err != nil:
		return dst, err
	case from < 0 || to > cells || from > to:
		return dst, fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, cells-1)
	case width <= 64:
		return sw.RegisterRange(name, from, to, dst)
	}
	wide, err := sw.RegisterReadAll(name)
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

// WriteRegister sets the cells from ≤ i < to; the value is cut to their width.
func (d *Device) WriteRegister(name string, from, to int, value uint64) error {
	sw, err := d.running()
	if err != nil {
		return err
	}
	return sw.RegisterWriteRange(name, from, to, new(big.Int).SetUint64(value))
}

// CounterSize is the number of cells of a counter that is not direct.
func (d *Device) CounterSize(name string) (cells int, ok bool) {
	sw, err := d.running()
	if err != nil {
		return 0, false
	}
	list, err := sw.CounterReadAll(name)
	return len(list), err == nil
}

// ReadCounter returns a cell of a counter.
func (d *Device) ReadCounter(name string, index int) (packets, bytes uint64, err error) {
	sw, err := d.running()
	if err != nil {
		return 0, 0, err
	}
	c, err := sw.CounterRead(name, index)
	return c.Packets, c.Bytes, err
}

// WriteCounter sets the cells from ≤ i < to of a counter.
func (d *Device) WriteCounter(name string, from, to int, packets, bytes uint64) error {
	sw, err := d.running()
	if err != nil {
		return err
	}
	d.Exclusively(func() {
		for i := from; i < to && err == nil; i++ {
			err = sw.CounterWrite(name, i, dataplane.Count{Packets: packets, Bytes: bytes})
		}
	})
	return err
}

// Session returns a mirroring session: its port and its multicast group, -1 for
// none.
func (d *Device) Session(id int) (port, group int, ok bool) {
	sw, err := d.running()
	if err != nil || id < 0 {
		return -1, -1, false
	}
	m, ok := sw.Mirror(uint32(id))
	port, group = -1, -1
	if m.HasPort {
		port = int(m.Port)
	}
	if m.Group != 0 {
		group = int(m.Group)
	}
	return port, group, ok
}

// SetSession makes the clones of a session go to a port, to a multicast group,
// or both; -1 is none.
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
	return sw.SetMirror(uint32(id), m)
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
	return sw.DeleteMirror(uint32(id))
}

// A queueSetting is a depth or a rate of queues: of one, of all of a port
// (priority -1), of all there are (port -1).
type queueSetting struct {
	port, priority int
	rate           bool
	value          uint64
}

// covers reports whether s makes an older setting o idle.
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

// SetQueueDepth sets the capacity of queues in packets: of one, of all of a
// port (priority -1), or of all there are (port -1).
func (d *Device) SetQueueDepth(port, priority, packets int) error {
	if packets < 0 {
		return fmt.Errorf("a queue cannot have %d packets", packets)
	}
	return d.setQueue(queueSetting{port, priority, false, uint64(packets)})
}

// SetQueueRate sets the rate of queues in packets per second: of one, of all of a
// port (priority -1), or of all there are (port -1); 0 is no limit.
func (d *Device) SetQueueRate(port, priority int, packetsPerSecond uint64) error {
	return d.setQueue(queueSetting{port, priority, true, packetsPerSecond})
}

// SetPortRate makes a port send in bits per second, as its link does. Rates of
// its queues in packets are kept, and count again once it is 0.
func (d *Device) SetPortRate(port uint32, bits uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bitRates[port] = bits
	if d.engine != nil {
		d.engine.Queues(func(q *dataplane.Queues) { q.SetBitRate(port, bits) })
	}
}

// setQueue applies a setting and remembers it for programs to come.
func (d *Device) setQueue(s queueSetting) (err error) {
	if s.port < -1 || s.port > maxPort {
		return fmt.Errorf("port %d is outside 0..%d", s.port, maxPort)
	}
	if most := max(1, d.opts.Priorities) - 1; s.priority < -1 || s.priority > most {
		return fmt.Errorf("priority %d is outside 0..%d", s.priority, most)
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
