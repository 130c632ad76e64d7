package dataplane

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/dataplane/cell"
)

func (s *Switch) withFilter(name string, index int, wred bool, do func(*cell.Filters, *cell.Filter)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.prog.Filters[name]
	if f == nil || f.Wred != wred {
		return fmt.Errorf("unknown filter array %q", name)
	}
	if index < 0 || index >= len(f.Cells) {
		return fmt.Errorf("filter array %s: cell %d is outside 0..%d", name, index, len(f.Cells)-1)
	}
	do(f, &f.Cells[index])
	return nil
}

// Filters sets Tofino's low-pass filters and WRED.
type Filters struct{ s *Switch }

// Filters returns the filters of a Tofino switch.
func (s *Switch) Filters() Filters { return Filters{s} }

// Set sets the specification of a filter and restarts it.
func (fs Filters) Set(name string, index int, spec FilterSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return fs.s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{Spec: spec, Set: true} })
}

// Spec returns the specification of a filter; ok is false if it has none.
func (fs Filters) Spec(name string, index int) (spec FilterSpec, ok bool, err error) {
	err = fs.s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { spec, ok = k.Spec, k.Set })
	return spec, ok, err
}

// Info returns the number of filters of an array and the width of their
// results.
func (fs Filters) Info(name string) (size, width int, err error) {
	fs.s.mu.Lock()
	defer fs.s.mu.Unlock()
	f := fs.s.prog.Filters[name]
	if f == nil {
		return 0, 0, fmt.Errorf("unknown filter array %q", name)
	}
	return len(f.Cells), f.Width, nil
}

// Reset removes the specification of a filter, which then returns 0.
func (fs Filters) Reset(name string, index int) error {
	return fs.s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{} })
}

// SetWred sets the specification of a random early detection and restarts it.
// Without a specification it drops nothing.
func (fs Filters) SetWred(name string, index int, spec WredSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return fs.s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) {
		*k = cell.Filter{Spec: FilterSpec{Gain: spec.Time, Decay: spec.Time}, Set: true, Wred: spec}
	})
}

// ResetWred removes the specification of a random early detection, which then
// drops nothing.
func (fs Filters) ResetWred(name string, index int) error {
	return fs.s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{} })
}
