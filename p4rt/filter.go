package p4rt

import (
	"fmt"

	"github.com/p4lb/p4lb/dataplane"
)

// Tofino's filters have no object in P4Runtime; this is what BfRt's tables of
// them offer.

// Filters are the names of the filters of the program that packets go through.
func (d *Device) Filters() ([]string, error) {
	sw, err := d.running()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range sw.Config().FilterArrays {
		names = append(names, f.Name)
	}
	return names, nil
}

// FilterSpec is how the cells of a filter are set. Those that are not all alike
// are an error.
func (d *Device) FilterSpec(name string) (spec dataplane.FilterSpec, err error) {
	sw, err := d.running()
	if err != nil {
		return spec, err
	}
	cells, _, err := sw.FilterInfo(name)
	for i := range cells {
		s, _, err := sw.FilterSpec(name, i)
		switch {
		case err != nil:
			return spec, err
		case i > 0 && s != spec:
			return spec, fmt.Errorf("filter %s: cells 0 and %d are set differently", name, i)
		}
		spec = s
	}
	return spec, err
}

// SetFilter sets all cells of a filter.
func (d *Device) SetFilter(name string, spec dataplane.FilterSpec) error {
	sw, err := d.running()
	if err != nil {
		return err
	}
	cells, _, err := sw.FilterInfo(name)
	for i := 0; i < cells && err == nil; i++ {
		err = sw.FilterSet(name, i, spec)
	}
	return err
}
