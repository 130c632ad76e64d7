package p4rt

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The methods below serve other protocols than P4Runtime and programs that
// embed the device. A device has only one server.

// RunPipes runs one switch per pipe of a chip, in a simulation the first one alone.
// Packets to the CPU leave through the CPU port.
func (d *Device) RunPipes(pipes []*dataplane.Switch, program []byte) {
	d.replace(dataplane.NewPipes(pipes), program, nil)
	if d.opts.Simulator != nil {
		d.opts.Simulator.Run(pipes[0])
	}
}

// Generate processes packets of the packet generator.
func (d *Device) Generate(list []dataplane.Generated) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return
	}
	for _, g := range list {
		d.emit(d.engine.Generate(g, d.now()))
	}
	d.settle()
}

// Exclusively calls f while no packet is processed.
func (d *Device) Exclusively(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// OnPorts registers f, which is called when a port is added, removed, or
// changes its link state.
func (d *Device) OnPorts(f func()) { d.Exclusively(func() { d.changed = f }) }

// A PortState is the state and the traffic of a port.
type PortState struct {
	Up                             bool
	SentPackets, SentBytes         uint64
	ReceivedPackets, ReceivedBytes uint64
}

// PortStates returns the state of all connected ports by number.
func (d *Device) PortStates() map[uint32]PortState {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := map[uint32]PortState{}
	for number, down := range *d.down.Load() {
		list[number] = PortState{Up: !down}
	}
	count := func(c *bmv2.PortCounts) {
		s, there := list[uint32(c.Port)]
		if !there {
			return
		}
		s.SentPackets, s.SentBytes = c.OutPackets, c.OutBytes
		s.ReceivedPackets, s.ReceivedBytes = c.InPackets, c.InBytes
		list[uint32(c.Port)] = s
	}
	if d.opts.Simulator != nil {
		for _, c := range d.opts.Simulator.PortCounts() {
			count(&c)
		}
		return list
	}
	for _, p := range d.ports {
		count(p.counts)
	}
	return list
}

// SetPort enables or disables sending and receiving on a port.
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

// Filters returns the names of the running program's filters.
func (d *Device) Filters() ([]string, error) {
	sw, err := d.running()
	if err != nil {
		return nil, err
	}
	return lists.Map(sw.Config().FilterArrays, func(f *bmv2.FilterArray) string { return f.Name }), nil
}

// FilterSpec returns the settings of a filter. It fails if its cells differ.
func (d *Device) FilterSpec(name string) (spec dataplane.FilterSpec, err error) {
	sw, err := d.running()
	if err != nil {
		return spec, err
	}
	cells, _, err := sw.Filters().Info(name)
	for i := range cells {
		s, _, err := sw.Filters().Spec(name, i)
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

// SetFilter configures all cells of a filter.
func (d *Device) SetFilter(name string, spec dataplane.FilterSpec) error {
	sw, err := d.running()
	if err != nil {
		return err
	}
	cells, _, err := sw.Filters().Info(name)
	for i := 0; i < cells && err == nil; i++ {
		err = sw.Filters().Set(name, i, spec)
	}
	return err
}
