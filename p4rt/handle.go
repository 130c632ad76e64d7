package p4rt

import "github.com/p4lb/p4lb/dataplane"

// Switch is the data plane of the program that packets go through, nil before
// the first one. A simulator may send packets of its own through it, as long as
// the device has no ports: what the controllers write concerns them at once.
func (d *Device) Switch() *dataplane.Switch {
	sw, err := d.running()
	if err != nil {
		return nil
	}
	return sw
}

// Queue returns the rate and the depth of the queues of a port as they have
// been set for it; false where they have not, both.
func (d *Device) Queue(port int) (packetsPerSecond uint64, depth int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rate, room bool
	for _, s := range d.queueing {
		switch {
		case s.port != port:
		case s.rate:
			packetsPerSecond, rate = s.value, true
		default:
			depth, room = int(s.value), true
		}
	}
	return packetsPerSecond, depth, rate && room
}
