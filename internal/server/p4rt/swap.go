package p4rt

import "github.com/p4lb/p4lb/internal/dataplane"

// LoadConfig loads a program beside the running one. Until SwapConfigs, Control
// returns the loaded program, and packets use the running one. It returns false
// if another program waits already.
func (d *Device) LoadConfig(program []byte) (ok bool, err error) {
	if d.waits() {
		return false, nil
	}
	// Linking a program takes long, so it happens without a lock.
	sw, err := d.Link(program, func(dataplane.Digest) {})
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loaded != nil {
		return false, nil
	}
	d.loaded = &loadedConfig{sw, program}
	return true, nil
}

func (d *Device) waits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loaded != nil
}

// SwapConfigs starts the loaded program with its tables; it returns false if there
// is none. Multicast groups, clone sessions and queues stay as they are. The old
// program finishes the packets in its queues; the new one processes all later
// packets. P4Runtime clients find no program afterwards, because Thrift transfers
// no P4Info.
func (d *Device) SwapConfigs() (ok bool) {
	if d.onSwap != nil {
		return d.onSwap(d.swap)
	}
	return d.swap()
}

func (d *Device) swap() (ok bool) {
	sw := d.startLoaded()
	if sw != nil && d.opts.Simulator != nil {
		d.opts.Simulator.Run(sw)
	}
	return sw != nil
}

// startLoaded sends packets through the loaded program and returns it, or nil if
// there is none.
func (d *Device) startLoaded() *dataplane.Switch {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, old, finishing := d.loaded, d.engine, d.finishing
	if next == nil {
		return nil
	}
	d.install(dataplane.NewEngine(next.sw), next.json, nil)
	if old != nil {
		next.sw.InheritTarget(old.Switch())
		d.finishing = append(finishing, old)
	}
	return next.sw
}
