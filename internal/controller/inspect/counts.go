package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Quantities of ports that the switch itself counts for any program.
const (
	InPackets  = "rx packets"
	OutPackets = "tx packets"
	InBytes    = "rx bytes"
	OutBytes   = "tx bytes"
	InRate     = "rx rate"
	OutRate    = "tx rate"
	Load       = "load"
	Queued     = "queued"
	QueueFill  = "queue fill"
	Drops      = "drops"
	Copies     = "copies ended"
	LinkDown   = "link down"
	Carried    = "carried" // carried by a path
)

// Counted reports whether the switch counted the value at its ports. Otherwise the program did.
func (r *Reading) Counted() bool {
	if r.Register != "" || r.Port == 0 && r.Index != portName(0) {
		return false
	}
	switch r.Quantity {
	case Carried:
		return r.Path != 0
	case InPackets, OutPackets, InBytes, OutBytes, InRate, OutRate, Load, Queued, QueueFill, Drops, Copies, LinkDown:
		return true
	}
	return strings.HasPrefix(r.Quantity, Drops+": ")
}

// Idle reports whether ports are counted, no packet has been received, sent or dropped, and no
// register holds a value to show.
func (s *Snapshot) Idle() bool {
	counted := false
	for i := range s.Readings {
		r := &s.Readings[i]
		packets := r.Register == "" && (r.Quantity == InPackets || r.Quantity == OutPackets || r.Quantity == Drops)
		counted = counted || packets
		if packets && r.Value != 0 || r.Register != "" && !r.Minor && r.Raw != 0 {
			return false
		}
	}
	return counted
}

// count reads the port counters of the switch, if it has any.
func (in *Inspector) count(ctx context.Context) error {
	in.ports = nil
	if in.meter == nil || len(in.opts.Registers) > 0 {
		return nil
	}
	list, err := in.meter.PortCounts(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		in.meter = nil
		return nil
	}
	if err != nil {
		return in.explain("the counts of ports", err)
	}
	in.ports = list
	return nil
}

// counts adds the readings of the port counters.
func (r *reader) counts() {
	sent := map[int]float64{} // since the previous snapshot
	for _, p := range r.ports {
		i := slices.IndexFunc(r.in.ports, func(c bmv2.PortCounts) bool { return c.Port == p.Number })
		if i >= 0 {
			sent[p.Number] = r.port(p, &r.in.ports[i])
		}
	}
	// The program may have sent packets to ports without a link. Missing table entries often lead
	// to port 0.
	for i := range r.in.ports {
		c := r.in.ports[i]
		linked := slices.ContainsFunc(r.ports, func(p fabric.Port) bool { return p.Number == c.Port })
		if !linked && c.Drops[bmv2.DropNoPort] > 0 {
			c.Down = true
			r.port(fabric.Port{Number: c.Port}, &c)
		}
	}
	if r.in.before > 0 {
		r.carried(sent)
	}
}

// port adds the readings of one port. It returns the number of bytes sent since the previous
// snapshot.
func (r *reader) port(p fabric.Port, c *bmv2.PortCounts) (sent float64) {
	add := func(name string, value float64, unit, text, meaning string, minor bool) *Reading {
		reading := Reading{
			Cell: p.Number, Index: portName(p.Number), Port: p.Number, Peer: p.Peer, Meaning: meaning, Minor: minor,
		}
		if text == "" {
			text = valueText(value, unit)
		}
		r.quantity(name, text, value, unit, reading)
		return &r.s.Readings[len(r.s.Readings)-1]
	}
	add(InPackets, float64(c.InPackets), "packets", "", "", true)
	in := add(InBytes, float64(c.InBytes), "bytes", "", "received bytes", false).Rate
	add(OutPackets, float64(c.OutPackets), "packets", "", "", true)
	out := add(OutBytes, float64(c.OutBytes), "bytes", "", "sent bytes", false)
	rate := out.Rate
	sent = out.Change
	if r.in.before > 0 {
		add(InRate, 8*in, "bit/s", "", "current receive rate", false)
		add(OutRate, 8*rate, "bit/s", "", "current send rate", false)
		if p.Rate > 0 {
			add(Load, 8*rate/float64(p.Rate), "share", "", "send rate as a share of the link rate", false)
		}
	}
	if c.Room > 0 {
		add(Queued, float64(c.Queued), "packets", plainText(float64(c.Queued)), "packets that wait to leave by the port", false)
		add(QueueFill, float64(c.Queued)/float64(c.Room), "share", "", "of the room in its queues", true)
	}
	add(Drops, float64(c.Dropped()), "packets", dropsText(c), "packets that went no further", false)
	for reason, n := range c.Lost() {
		add(Drops+": "+reason.String(), float64(n), "packets", "", "", true)
	}
	if n := c.Drops[bmv2.EndCopy]; n > 0 {
		add(Copies, float64(n), "packets", "", "copies of packets that the program made and ended", true)
	}
	down, text := 0.0, "up"
	if c.Down {
		down, text = 1, "down"
	}
	add(LinkDown, down, "", text, "1: there is no link at the port", !c.Down)
	return sent
}

// dropsText lists drops by reason, most frequent first.
func dropsText(c *bmv2.PortCounts) string {
	total := c.Dropped()
	if total == 0 {
		return "0"
	}
	var reasons []bmv2.DropReason
	for r := range c.Lost() {
		reasons = append(reasons, r)
	}
	slices.SortStableFunc(reasons, func(a, b bmv2.DropReason) int { return cmp.Compare(c.Drops[b], c.Drops[a]) })
	if len(reasons) == 1 {
		return fmt.Sprintf("%d: %s", total, reasons[0])
	}
	parts := lists.Map(reasons, func(r bmv2.DropReason) string { return fmt.Sprintf("%s %d", r, c.Drops[r]) })
	return fmt.Sprintf("%d: %s", total, strings.Join(parts, ", "))
}

// carried adds the share of each port in its group's traffic. Groups with the same ports have one
// reading.
func (r *reader) carried(sent map[int]float64) {
	seen := map[string]bool{}
	for _, g := range r.groups {
		var ports []int
		total := 0.0
		for _, hop := range g.Hops {
			if _, known := sent[hop.Port]; known && !slices.Contains(ports, hop.Port) {
				ports = append(ports, hop.Port)
				total += sent[hop.Port]
			}
		}
		slices.Sort(ports)
		if key := fmt.Sprint(ports); len(ports) < 2 || seen[key] {
			continue
		} else {
			seen[key] = true
		}
		for slot, hop := range g.Hops {
			reading := r.path(g, slot, hop)
			if !slices.Contains(ports, hop.Port) {
				continue // the port has been shown already, or is not counted
			}
			ports = slices.DeleteFunc(ports, func(port int) bool { return port == hop.Port })
			share := 0.0
			if total > 0 {
				share = sent[hop.Port] / total
			}
			reading.Cell = g.ID<<4 + slot
			reading.Meaning = "share of the port in the traffic of its group"
			r.quantity(Carried, valueText(share, "share"), share, "share", reading)
		}
	}
}
