package dataplane

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/dataplane/num"
)

func (s *Switch) withRegister(name string, f func(*registerArray) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.registers[name]
	if r == nil {
		return fmt.Errorf("unknown register %q", name)
	}
	return f(r)
}

func (r *registerArray) check(from, to int) error {
	if from < 0 || to > r.size || from > to {
		return fmt.Errorf("register %s: cells %d to %d are outside 0..%d", r.name, from, to-1, r.size-1)
	}
	return nil
}

// RegisterRead returns a cell.
func (s *Switch) RegisterRead(name string, index int) (v *big.Int, err error) {
	err = s.withRegister(name, func(r *registerArray) error {
		if err := r.check(index, index+1); err != nil {
			return err
		}
		v = r.cell(index)
		return nil
	})
	return v, err
}

func (r *registerArray) cell(i int) *big.Int {
	b := make([]byte, 8*r.words)
	num.PutBytes(b, r.cells[i*r.words:][:r.words])
	return new(big.Int).SetBytes(b)
}

// RegisterReadAll returns all cells, those of one moment.
func (s *Switch) RegisterReadAll(name string) (list []*big.Int, err error) {
	err = s.withRegister(name, func(r *registerArray) error {
		list = make([]*big.Int, r.size)
		for i := range list {
			list[i] = r.cell(i)
		}
		return nil
	})
	return list, err
}

// RegisterCells returns the cells of a register of at most 64 bits: the cheap
// way to watch a large one. They are appended to dst.
func (s *Switch) RegisterCells(name string, dst []uint64) (list []uint64, err error) {
	err = s.withRegister(name, func(r *registerArray) error {
		if r.words > 1 {
			return fmt.Errorf("register %s has %d bits, more than 64", name, r.width)
		}
		list = append(dst, r.cells...)
		return nil
	})
	return list, err
}

// RegisterRange appends the cells from ≤ i < to of any register, each in as many
// words as it takes, the least significant first.
func (s *Switch) RegisterRange(name string, from, to int, dst []uint64) (list []uint64, err error) {
	list = dst
	err = s.withRegister(name, func(r *registerArray) error {
		switch {
		case from < 0 || from > to || to > r.size:
			return fmt.Errorf("register %s: cells %d to %d are outside 0..%d", name, from, to-1, r.size-1)
		}
		list = append(dst, r.cells[from*r.words:to*r.words]...)
		return nil
	})
	return list, err
}

// RegisterWrite sets a cell; v is cut to the register's width.
func (s *Switch) RegisterWrite(name string, index int, v *big.Int) error {
	return s.RegisterWriteRange(name, index, index+1, v)
}

// RegisterWriteRange sets the cells from ≤ i < to.
func (s *Switch) RegisterWriteRange(name string, from, to int, v *big.Int) error {
	return s.withRegister(name, func(r *registerArray) error {
		if err := r.check(from, to); err != nil {
			return err
		}
		limbs := num.OfBig(new(big.Int).And(v, num.Most(r.width)), r.words)
		for i := from; i < to; i++ {
			copy(r.cells[i*r.words:], limbs)
		}
		return nil
	})
}

// RegisterReset sets all cells to zero, or to what the program starts with.
func (s *Switch) RegisterReset(name string) error {
	return s.withRegister(name, func(r *registerArray) error {
		r.reset()
		return nil
	})
}

// RegisterInfo returns the number of cells of a register and their width.
func (s *Switch) RegisterInfo(name string) (size, width int, err error) {
	err = s.withRegister(name, func(r *registerArray) error {
		size, width = r.size, r.width
		return nil
	})
	return size, width, err
}

// A Count is what a counter has counted.
type Count struct {
	Packets, Bytes uint64
}

// withCounter finds a counter: a cell of an array, or the entry with the
// handle index of the table that a direct counter belongs to.
func (s *Switch) withCounter(name string, index int, f func(*counter)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.counters[name]
	if a == nil {
		return fmt.Errorf("unknown counter %q", name)
	}
	if a.table != "" {
		return s.entryCounter(a.table, Handle(index), f)
	}
	if index < 0 || index >= len(a.cells) {
		return fmt.Errorf("counter %s: cell %d is outside 0..%d", name, index, len(a.cells)-1)
	}
	f(&a.cells[index])
	return nil
}

func (s *Switch) entryCounter(name string, h Handle, f func(*counter)) error {
	t, err := s.table(name)
	if err != nil {
		return err
	}
	switch {
	case !t.counters:
		return fmt.Errorf("table %s: counters: %w", name, ErrNotSupported)
	case h == DefaultEntry:
		f(&t.missed)
		return nil
	}
	e, err := t.entry(h)
	if err != nil {
		return fmt.Errorf("table %s: %w", name, err)
	}
	f(&e.counter)
	return nil
}

// CounterRead returns a counter: a cell of an array, or for a direct counter
// the one of the entry with the handle index.
func (s *Switch) CounterRead(name string, index int) (v Count, err error) {
	err = s.withCounter(name, index, func(c *counter) { v = Count{c.packets, c.bytes} })
	return v, err
}

// CounterWrite sets a counter.
func (s *Switch) CounterWrite(name string, index int, v Count) error {
	return s.withCounter(name, index, func(c *counter) { *c = counter{v.Packets, v.Bytes} })
}

// CounterReadAll returns all cells of an array that is not direct.
func (s *Switch) CounterReadAll(name string) ([]Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.counters[name]
	if a == nil || a.table != "" {
		return nil, fmt.Errorf("unknown counter array %q", name)
	}
	list := make([]Count, len(a.cells))
	for i, c := range a.cells {
		list[i] = Count{c.packets, c.bytes}
	}
	return list, nil
}

// CounterRange appends the cells from ≤ i < to of an array that is not direct,
// those of one moment.
func (s *Switch) CounterRange(name string, from, to int, dst []Count) ([]Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.counters[name]
	switch {
	case a == nil || a.table != "":
		return dst, fmt.Errorf("unknown counter array %q", name)
	case from < 0 || to > len(a.cells) || from > to:
		return dst, fmt.Errorf("counter %s: cells %d to %d are outside 0..%d", name, from, to-1, len(a.cells)-1)
	}
	for _, c := range a.cells[from:to] {
		dst = append(dst, Count{c.packets, c.bytes})
	}
	return dst, nil
}

// EntryCounter returns the direct counter of a table entry.
func (s *Switch) EntryCounter(table string, h Handle) (v Count, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.entryCounter(table, h, func(c *counter) { v = Count{c.packets, c.bytes} })
	return v, err
}

// SetEntryCounter sets the direct counter of a table entry.
func (s *Switch) SetEntryCounter(table string, h Handle, v Count) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entryCounter(table, h, func(c *counter) { *c = counter{v.Packets, v.Bytes} })
}

// withMeter finds a meter: a cell, or of a direct meter the one of an entry.
func (s *Switch) withMeter(name string, index int, f func(*meter) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meters[name]
	if m == nil {
		return fmt.Errorf("unknown meter %q", name)
	}
	if m.direct && int64(index) == int64(DefaultEntry) {
		return f(&m.missed)
	}
	if m.direct {
		if s.tables[m.table] == nil {
			return fmt.Errorf("meter %s: %w", name, ErrBadHandle)
		}
		if _, err := s.tables[m.table].entry(Handle(index)); err != nil {
			return fmt.Errorf("meter %s: %w", name, err)
		}
		index = Handle(index).Slot()
	}
	if index < 0 || index >= len(m.cells) {
		return fmt.Errorf("meter %s: cell %d is outside 0..%d", name, index, len(m.cells)-1)
	}
	if err := f(&m.cells[index]); err != nil {
		return fmt.Errorf("meter %s: %w", name, err)
	}
	return nil
}

// MeterSet sets the rates of a meter, smallest first: committed, peak. The
// index is that of a cell, or for a direct meter the handle of an entry.
func (s *Switch) MeterSet(name string, index int, rates []MeterRate) error {
	return s.withMeter(name, index, func(m *meter) error { return m.configure(rates) })
}

// MeterReset takes the rates away; the meter marks everything green.
func (s *Switch) MeterReset(name string, index int) error {
	return s.withMeter(name, index, func(m *meter) error {
		m.configured = false
		return nil
	})
}

// MeterRates returns the rates of a meter, or nil if it has none.
func (s *Switch) MeterRates(name string, index int) (rates []MeterRate, err error) {
	err = s.withMeter(name, index, func(m *meter) error {
		rates = m.get()
		return nil
	})
	return rates, err
}

// MeterCounts returns what a meter has marked green, yellow and red.
func (s *Switch) MeterCounts(name string, index int) (v [3]Count, err error) {
	err = s.withMeter(name, index, func(m *meter) error {
		for i, c := range m.seen {
			v[i] = Count{c.packets, c.bytes}
		}
		return nil
	})
	return v, err
}

// SetMeterCounts sets what MeterCounts returns.
func (s *Switch) SetMeterCounts(name string, index int, v [3]Count) error {
	return s.withMeter(name, index, func(m *meter) error {
		for i, c := range v {
			m.seen[i] = counter{c.Packets, c.Bytes}
		}
		return nil
	})
}

// MeterSetAll sets the rates of all cells of a meter array.
func (s *Switch) MeterSetAll(name string, rates []MeterRate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meters[name]
	if m == nil {
		return fmt.Errorf("unknown meter %q", name)
	}
	for i := range m.cells {
		if err := m.cells[i].configure(rates); err != nil {
			return fmt.Errorf("meter %s: %w", name, err)
		}
	}
	return nil
}
