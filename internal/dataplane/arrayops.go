package dataplane

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
)

func (s *Switch) withRegister(name string, f func(*cell.Register) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.prog.Registers[name]
	if r == nil {
		return fmt.Errorf("unknown register %q", name)
	}
	return f(r)
}

// Registers reads and writes registers.
type Registers struct{ s *Switch }

// Registers returns the registers of the switch.
func (s *Switch) Registers() Registers { return Registers{s} }

// Read returns a cell.
func (rs Registers) Read(name string, index int) (v *big.Int, err error) {
	err = rs.s.withRegister(name, func(r *cell.Register) error {
		if err := r.Check(index, index+1); err != nil {
			return err
		}
		v = r.Big(index)
		return nil
	})
	return v, err
}

// ReadAll returns a snapshot of all cells.
func (rs Registers) ReadAll(name string) (list []*big.Int, err error) {
	err = rs.s.withRegister(name, always(func(r *cell.Register) {
		list = make([]*big.Int, r.Size)
		for i := range list {
			list[i] = r.Big(i)
		}
	}))
	return list, err
}

// Cells appends the cells of a register of at most 64 bits to dst. It
// is the fastest way to read a large register.
func (rs Registers) Cells(name string, dst []uint64) (list []uint64, err error) {
	err = rs.s.withRegister(name, func(r *cell.Register) error {
		if r.Words > 1 {
			return fmt.Errorf("register %s has %d bits, more than 64", name, r.Width)
		}
		list = append(dst, r.Cells...)
		return nil
	})
	return list, err
}

// Now returns the cells of a register. It is for Trace, which is called while
// a packet is processed. The slice belongs to the switch. It is nil if there is no
// such register.
func (rs Registers) Now(name string) (cells []uint64, words int) {
	if r := rs.s.prog.Registers[name]; r != nil {
		return r.Cells, r.Words
	}
	return nil, 0
}

// Readings returns the headers and metadata of a packet. It is for Trace.
func (s *Switch) Readings(e Event) []Reading { return s.prog.Read(e) }

// Range appends the cells from ≤ i < to of a register to dst. Each cell
// takes the words of its width, the least significant word first.
func (rs Registers) Range(name string, from, to int, dst []uint64) (list []uint64, err error) {
	list = dst
	err = rs.s.withRegister(name, func(r *cell.Register) error {
		switch {
		case from < 0 || from > to || to > r.Size:
			return fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, r.Size-1)
		}
		list = append(dst, r.Cells[from*r.Words:to*r.Words]...)
		return nil
	})
	return list, err
}

// Write sets a cell. It truncates v to the register's width.
func (rs Registers) Write(name string, index int, v *big.Int) error {
	return rs.WriteRange(name, index, index+1, v)
}

// WriteRange sets the cells from ≤ i < to.
func (rs Registers) WriteRange(name string, from, to int, v *big.Int) error {
	return rs.s.withRegister(name, func(r *cell.Register) error {
		if err := r.Check(from, to); err != nil {
			return err
		}
		limbs := num.OfBig(new(big.Int).And(v, num.Most(r.Width)), r.Words)
		for i := from; i < to; i++ {
			copy(r.Cells[i*r.Words:], limbs)
		}
		return nil
	})
}

// Reset sets all cells to the initial value in the program, which is
// zero by default.
func (rs Registers) Reset(name string) error {
	return rs.s.withRegister(name, always(func(r *cell.Register) { r.Reset() }))
}

// Info returns the number of cells of a register and their width.
func (rs Registers) Info(name string) (size, width int, err error) {
	err = rs.s.withRegister(name, always(func(r *cell.Register) { size, width = r.Size, r.Width }))
	return size, width, err
}

// withCounter calls f with a counter: a cell of an array, or for a direct
// counter the counter of the table entry with the handle index.
func (s *Switch) withCounter(name string, index int, f func(*Count)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.prog.Counters[name]
	if a == nil {
		return fmt.Errorf("unknown counter %q", name)
	}
	if a.Table != "" {
		return s.entryCounter(a.Table, Handle(index), f)
	}
	if index < 0 || index >= len(a.Cells) {
		return fmt.Errorf("counter %s: cell %d is outside 0..%d", name, index, len(a.Cells)-1)
	}
	f(&a.Cells[index])
	return nil
}

func (s *Switch) entryCounter(name string, h Handle, f func(*Count)) error {
	t, err := s.table(name)
	if err != nil {
		return err
	}
	switch {
	case !t.Counters:
		return fmt.Errorf("table %s: counters: %w", name, ErrNotSupported)
	case h == DefaultEntry:
		f(&t.Missed)
		return nil
	}
	e, err := t.Entry(h)
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	f(&e.Counter)
	return nil
}

// Counters reads and writes indirect counters. Direct counters belong to entries of Tables.
type Counters struct{ s *Switch }

// Counters returns the indirect counters of the switch.
func (s *Switch) Counters() Counters { return Counters{s} }

// Read returns a counter: a cell of an array, or for a direct counter
// the counter of the entry with the handle index.
func (cs Counters) Read(name string, index int) (v Count, err error) {
	err = cs.s.withCounter(name, index, func(c *Count) { v = *c })
	return v, err
}

// Write sets a counter.
func (cs Counters) Write(name string, index int, v Count) error {
	return cs.s.withCounter(name, index, func(c *Count) { *c = v })
}

// ReadAll returns all cells of an array that is not direct.
func (cs Counters) ReadAll(name string) ([]Count, error) {
	cs.s.mu.Lock()
	defer cs.s.mu.Unlock()
	a := cs.s.prog.Counters[name]
	if a == nil || a.Table != "" {
		return nil, fmt.Errorf("unknown counter array %q", name)
	}
	return append([]Count{}, a.Cells...), nil
}

// Range appends a snapshot of the cells from ≤ i < to of an array that
// is not direct.
func (cs Counters) Range(name string, from, to int, dst []Count) ([]Count, error) {
	cs.s.mu.Lock()
	defer cs.s.mu.Unlock()
	a := cs.s.prog.Counters[name]
	switch {
	case a == nil || a.Table != "":
		return dst, fmt.Errorf("unknown counter array %q", name)
	case from < 0 || to > len(a.Cells) || from > to:
		return dst, fmt.Errorf("counter %s: cells %d to %d are outside 0..%d", name, from, to-1, len(a.Cells)-1)
	}
	return append(dst, a.Cells[from:to]...), nil
}

// Counter returns the direct counter of a table entry.
func (ts Tables) Counter(table string, h Handle) (v Count, err error) {
	ts.s.mu.Lock()
	defer ts.s.mu.Unlock()
	err = ts.s.entryCounter(table, h, func(c *Count) { v = *c })
	return v, err
}

// SetCounter sets the direct counter of a table entry.
func (ts Tables) SetCounter(table string, h Handle, v Count) error {
	ts.s.mu.Lock()
	defer ts.s.mu.Unlock()
	return ts.s.entryCounter(table, h, func(c *Count) { *c = v })
}

// withMeter calls f with a meter: a cell of an array, or the meter of an entry
// for a direct meter.
func (s *Switch) withMeter(name string, index int, f func(*cell.Meter) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.prog.Meters[name]
	if m == nil {
		return fmt.Errorf("unknown meter %q", name)
	}
	at, err := s.meterAt(m, index)
	if err == nil {
		err = f(at)
	}
	if err != nil {
		return fmt.Errorf("meter %s: %w", name, err)
	}
	return nil
}

func (s *Switch) meterAt(m *cell.Meters, index int) (*cell.Meter, error) {
	if m.Direct {
		if int64(index) == int64(DefaultEntry) {
			return &m.Missed, nil
		}
		if s.prog.Tables[m.Table] == nil {
			return nil, ErrBadHandle
		}
		if _, err := s.prog.Tables[m.Table].Entry(Handle(index)); err != nil {
			return nil, err
		}
		index = Handle(index).Slot()
	}
	if index < 0 || index >= len(m.Cells) {
		return nil, fmt.Errorf("cell %d is outside 0..%d", index, len(m.Cells)-1)
	}
	return &m.Cells[index], nil
}

// Meters sets and reads meters.
type Meters struct{ s *Switch }

// Meters returns the meters of the switch.
func (s *Switch) Meters() Meters { return Meters{s} }

// Set sets the rates of a meter, smallest first: committed, peak. The
// index is the number of a cell, or the handle of an entry for a direct meter.
func (ms Meters) Set(name string, index int, rates []MeterRate) error {
	return ms.s.withMeter(name, index, func(m *cell.Meter) error { return m.Configure(rates) })
}

// Reset removes the rates; without rates the meter marks everything green.
func (ms Meters) Reset(name string, index int) error {
	return ms.s.withMeter(name, index, always(func(m *cell.Meter) { m.Configured = false }))
}

// Rates returns the rates of a meter, or nil if it has none.
func (ms Meters) Rates(name string, index int) (rates []MeterRate, err error) {
	err = ms.s.withMeter(name, index, always(func(m *cell.Meter) { rates = m.Get() }))
	return rates, err
}

// Adjust sets a number of bytes that all meters of an array add to the
// length of each packet. The number may be negative.
func (ms Meters) Adjust(name string, bytes int) error {
	ms.s.mu.Lock()
	defer ms.s.mu.Unlock()
	m := ms.s.prog.Meters[name]
	if m == nil {
		return fmt.Errorf("unknown meter %q", name)
	}
	m.Adjust = bytes
	return nil
}

// Counts returns the packets and bytes that a meter has marked green,
// yellow and red.
func (ms Meters) Counts(name string, index int) (v [3]Count, err error) {
	err = ms.s.withMeter(name, index, always(func(m *cell.Meter) { v = m.Seen }))
	return v, err
}

// SetCounts sets the counts that Counts returns.
func (ms Meters) SetCounts(name string, index int, v [3]Count) error {
	return ms.s.withMeter(name, index, always(func(m *cell.Meter) { m.Seen = v }))
}

// SetAll sets the rates of all cells of a meter array.
func (ms Meters) SetAll(name string, rates []MeterRate) error {
	ms.s.mu.Lock()
	defer ms.s.mu.Unlock()
	m := ms.s.prog.Meters[name]
	if m == nil {
		return fmt.Errorf("unknown meter %q", name)
	}
	for i := range m.Cells {
		if err := m.Cells[i].Configure(rates); err != nil {
			return fmt.Errorf("meter %s: %w", name, err)
		}
	}
	return nil
}

// SetCRC changes the parameters of a calculation with one of the algorithms
// crc8_custom, crc16_custom, crc32_custom and crc64_custom.
func (hs Hashes) SetCRC(calculation string, c hash.CRC) error {
	hs.s.mu.Lock()
	defer hs.s.mu.Unlock()
	k := hs.s.prog.Calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.Algo.(*hash.Table)
	if !ok || t.Width != c.Width || k.AlgoID == "crcCCITT" {
		return fmt.Errorf("calculation %s is not a custom CRC of %d bits", calculation, c.Width)
	}
	k.Algo = hash.NewCRC(c)
	return nil
}

// SetToeplitzKey changes the key of a calculation with the algorithm toeplitz: 4
// bytes or a multiple.
func (hs Hashes) SetToeplitzKey(calculation string, key []byte) error {
	hs.s.mu.Lock()
	defer hs.s.mu.Unlock()
	k := hs.s.prog.Calcs[calculation]
	if k == nil {
		return fmt.Errorf("unknown calculation %q", calculation)
	}
	t, ok := k.Algo.(*hash.Toeplitz)
	switch {
	case !ok:
		return fmt.Errorf("calculation %s is not a Toeplitz hash", calculation)
	case len(key) == 0 || len(key)%4 != 0:
		return fmt.Errorf("calculation %s: a key of %d bytes, want a multiple of 4", calculation, len(key))
	}
	t.Key = nil
	for ; len(key) > 0; key = key[4:] {
		t.Key = append(t.Key, binary.BigEndian.Uint32(key))
	}
	return nil
}
