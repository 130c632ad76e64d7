package p4rt

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// What follows is for servers of other protocols than P4Runtime, and for whoever
// has the device in his own process. A device has one server.

// RunPipes sends packets through a switch for each pipe of a chip. What is for
// the CPU leaves by its port.
func (d *Device) RunPipes(pipes []*dataplane.Switch, program []byte) {
	d.replace(dataplane.NewPipes(pipes), program, nil)
}

// Exclusively runs f while no packet is processed.
func (d *Device) Exclusively(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// OnPorts has f hear that a port went up or down, or came.
func (d *Device) OnPorts(f func()) { d.Exclusively(func() { d.changed = f }) }

// A PortState is what a device knows of a port.
type PortState struct {
	Up                             bool
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
}

// PortStates tells of all ports that there are, by number.
func (d *Device) PortStates() map[uint32]PortState {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := map[uint32]PortState{}
	for number, down := range *d.down.Load() {
		list[number] = PortState{Up: !down}
	}
	for number, p := range d.ports {
		s := list[number]
		s.SentPackets, s.SentBytes = p.counts.OutPackets, p.counts.OutBytes
		s.ReceivedPackets, s.ReceivedBytes = p.counts.InPackets, p.counts.InBytes
		list[number] = s
	}
	return list
}

// SetPort lets a port send and receive, or neither.
func (d *Device) SetPort(number uint32, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off == nil {
		d.off = map[uint32]bool{}
	}
	if on {
		delete(d.off, number)
	} else {
		d.off[number] = true
	}
}

// Filters are the names of the filters of the program that packets go through.
func (d *Device) Filters() ([]string, error) {
	sw, err := d.running()
	if err != nil {
		return nil, err
	}
	return lists.Map(sw.Config().FilterArrays, func(f *bmv2.FilterArray) string { return f.Name }), nil
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
