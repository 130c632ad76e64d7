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

// FilterSet sets the specification of a filter and restarts it.
func (s *Switch) FilterSet(name string, index int, spec FilterSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{Spec: spec, Set: true} })
}

// FilterSpec returns the specification of a filter; ok is false if it has none.
func (s *Switch) FilterSpec(name string, index int) (spec FilterSpec, ok bool, err error) {
	err = s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { spec, ok = k.Spec, k.Set })
	return spec, ok, err
}

// FilterInfo returns the number of filters of an array and the width of their
// results.
func (s *Switch) FilterInfo(name string) (size, width int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.prog.Filters[name]
	if f == nil {
		return 0, 0, fmt.Errorf("unknown filter array %q", name)
	}
	return len(f.Cells), f.Width, nil
}

// FilterReset removes the specification of a filter, which then returns 0.
func (s *Switch) FilterReset(name string, index int) error {
	return s.withFilter(name, index, false, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{} })
}

// WredSet sets the specification of a random early detection and restarts it.
// Without a specification it drops nothing.
func (s *Switch) WredSet(name string, index int, spec WredSpec) error {
	if err := spec.Validate(); err != nil {
		return fmt.Errorf("filter array %s: %w", name, err)
	}
	return s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) {
		*k = cell.Filter{Spec: FilterSpec{Gain: spec.Time, Decay: spec.Time}, Set: true, Wred: spec}
	})
}

// WredReset removes the specification of a random early detection, which then
// drops nothing.
func (s *Switch) WredReset(name string, index int) error {
	return s.withFilter(name, index, true, func(_ *cell.Filters, k *cell.Filter) { *k = cell.Filter{} })
}
