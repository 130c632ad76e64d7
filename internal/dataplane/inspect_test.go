package dataplane

import (
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/cell"
)

// filterValue returns the last result of a filter.
func (s *Switch) filterValue(name string, index int) (v uint64, err error) {
	err = s.withFilter(name, index, false, func(f *cell.Filters, k *cell.Filter) { v = f.Result(k) })
	return v, err
}

// wredSpec returns the specification of a random early detection; ok is false
// if it has none.
func (s *Switch) wredSpec(name string, index int) (spec WredSpec, ok bool, err error) {
	err = s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) { spec, ok = k.Wred, k.Set })
	return spec, ok, err
}

// receiveHead is Receive for a packet of which only the first bytes are
// present.
func (s *Switch) receiveHead(port uint32, head []byte, extra int, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, head, extra, now)
}
