package p4rt

import (
	"maps"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane"
)

// A lossy port knows of packets that it has lost, which the device never sees or
// takes for sent.
type lossy interface {
	// Lost is how many packets were lost before they came in, and on their way
	// out.
	Lost() (in, out uint64)
}

// countsOf are the counts of a port, which begin with the first packet that has
// to do with it. The caller holds d.mu.
func (d *Device) countsOf(port uint32) *bmv2.PortCounts {
	c := d.counts[port]
	if c == nil {
		c = &bmv2.PortCounts{Port: int(port)}
		d.counts[port] = c
	}
	return c
}

// PortCounts are what the ports have taken in, sent and lost since the device
// was made, by number: those that are there, and those that packets were for.
// Programs may come and go meanwhile.
func (d *Device) PortCounts() []bmv2.PortCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	down := *d.down.Load()
	list := make([]bmv2.PortCounts, 0, len(d.counts))
	for _, number := range slices.Sorted(maps.Keys(d.counts)) {
		c := *d.counts[number]
		c.Down = down[number]
		if a := d.ports[number]; a != nil {
			if l, ok := a.Port.(lossy); ok {
				in, out := l.Lost()
				c.Drops[bmv2.DropUnread] += in
				c.Drops[bmv2.DropLink] += out
			}
		}
		list = append(list, c)
	}
	if d.engine != nil {
		d.engine.Queues(func(q *dataplane.Queues) {
			for i := range list {
				waiting, room := q.Waiting(uint32(list[i].Port))
				list[i].Queued, list[i].Room = uint64(waiting), uint64(room)
			}
		})
	}
	return list
}
