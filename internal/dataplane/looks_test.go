package dataplane

import (
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/cell"
)

// filterValue is what a filter gave last.
func (s *Switch) filterValue(name string, index int) (v uint64, err error) {
	err = s.withFilter(name, index, false, func(f *cell.Filters, k *cell.Filter) { v = f.Result(k) })
	return v, err
}

// wredSpec is how a random early detection works; ok is false if it has not
// been set.
func (s *Switch) wredSpec(name string, index int) (spec WredSpec, ok bool, err error) {
	err = s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) { spec, ok = k.Wred, k.Set })
	return spec, ok, err
}

// receiveHead is Receive of a packet of which only the first bytes are there.
func (s *Switch) receiveHead(port uint32, head []byte, extra int, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, head, extra, now)
}

// generatorPort is where the packets of Generate come in.
func (s *Switch) generatorPort() uint32 {
	if s.tofino == nil {
		return 0
	}
	return s.tofino.chip.generator
}
