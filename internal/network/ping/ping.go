// Package ping sends echo requests between the hosts of a topology and reports
// which pairs of hosts reach each other, how fast, and over which switches.
package ping

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A Pair is a sender and a receiver.
type Pair struct{ From, To *fabric.Host }

// A Result counts the packets from one host to another.
type Result struct {
	From     string        `json:"from"`
	To       string        `json:"to"`
	Sent     int           `json:"sent"`
	Received int           `json:"received"`
	RTT      time.Duration `json:"rtt_ns,omitempty"` // mean of the replies; 0 if it is not measured
	// Path lists the switches on the way of the last packet that arrived, or that
	// was lost if none arrived. It is empty if the target does not trace packets.
	Path []string `json:"path,omitempty"`
}

// Loss returns the share of packets that were lost.
func (r *Result) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return 1 - float64(r.Received)/float64(r.Sent)
}

// A Trace starts to record the paths of packets that end in the marker and a
// number. stop ends it and returns the ports that sent each packet.
type Trace func(marker []byte) (stop func() map[uint32][]fabric.End, err error)

// Options configure a test of pairs.
type Options struct {
	Count int           // packets per pair; 0: 1
	Wait  time.Duration // time to wait for the last replies; 0: a second
	// Until: send more packets, up to Count, only to pairs without a reply so far.
	Until bool
	Trace Trace // nil: paths are not known
}

func (o Options) complete() Options {
	o.Count, o.Wait = cmp.Or(o.Count, 1), cmp.Or(o.Wait, time.Second)
	return o
}

// A Prober sends packets between hosts.
type Prober interface {
	Probe(ctx context.Context, pairs []Pair, o Options) ([]Result, error)
}

// AllPairs returns all ordered pairs of hosts with the same version of IP. Senders alternate, so that packets
// in flight have many receivers.
func AllPairs(t *fabric.Topology) []Pair {
	n := len(t.Hosts)
	var list []Pair
	for step := 1; step < n; step++ {
		for i := range n {
			if p := (Pair{&t.Hosts[i], &t.Hosts[(i+step)%n]}); p.sameIP() {
				list = append(list, p)
			}
		}
	}
	return list
}

// LeafPairs returns pairs of hosts of different switches for every ordered pair
// of switches with hosts that the links connect: up to each for a pair of
// switches, and at most most altogether. More than one host pair tries more
// than one path.
func LeafPairs(t *fabric.Topology, each, most int) []Pair {
	hosts := map[string][]*fabric.Host{}
	var leaves []string
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if hosts[h.Switch] == nil {
			leaves = append(leaves, h.Switch)
		}
		if up(t, h) {
			hosts[h.Switch] = append(hosts[h.Switch], h)
		}
	}
	part := parts(t)
	var list []Pair
	for k := range each {
		for step := 1; step < len(leaves); step++ {
			for i, from := range leaves {
				to := leaves[(i+step)%len(leaves)]
				a, b := hosts[from], hosts[to]
				if part[from] != part[to] || k >= max(len(a), len(b)) || len(a) == 0 || len(b) == 0 {
					continue
				}
				p := Pair{a[k%len(a)], b[(k+i)%len(b)]}
				if !p.sameIP() {
					continue
				}
				if list = append(list, p); len(list) == most {
					return list
				}
			}
		}
	}
	return list
}

// sameIP reports whether both hosts have an IPv4 address, or both an IPv6 address.
func (p Pair) sameIP() bool { return p.From.IP.Addr().Is6() == p.To.IP.Addr().Is6() }

// up reports whether the link of a host is up.
func up(t *fabric.Topology, h *fabric.Host) bool {
	return !slices.ContainsFunc(t.Links, func(l fabric.Link) bool { return l.Down && (l.A.Node == h.Name || l.B.Node == h.Name) })
}

// parts maps each node to the number of its connected component of links that are
// up.
func parts(t *fabric.Topology) map[string]int {
	part := map[string]int{}
	for i, s := range t.Switches {
		part[s.Name] = i
	}
	for changed := true; changed; {
		changed = false
		for _, l := range t.Links {
			a, okA := part[l.A.Node]
			b, okB := part[l.B.Node]
			if !l.Down && okA && okB && a != b {
				part[l.A.Node], part[l.B.Node] = min(a, b), min(a, b)
				changed = true
			}
		}
	}
	return part
}

// Failed returns the results of pairs without any reply.
func Failed(list []Result) []Result {
	return slices.DeleteFunc(slices.Clone(list), func(r Result) bool { return r.Received > 0 })
}

// Way derives a path from the ports that sent a packet. It ends at the port of the
// receiver, or where the packet was lost. It excludes the reply.
func Way(to *fabric.Host, sent []fabric.End) (path []string, arrived bool) {
	for _, e := range sent {
		path = append(path, e.Node)
		if e.Node == to.Switch && e.Port == to.Port {
			return path, true
		}
	}
	return path, false
}

// markerSize is the length of the random bytes before the number of a packet.
const markerSize = 12

// payload returns the payload of a packet: padding, the marker, the number.
func payload(marker []byte, number uint32) []byte {
	p := make([]byte, 24, 24+markerSize+4)
	p = append(p, marker...)
	return binary.BigEndian.AppendUint32(p, number)
}

// checksum returns the Internet checksum of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// Frame returns an echo request of a pair over Ethernet to a MAC address. It uses
// IPv6 if the receiver has an IPv6 address.
func Frame(p Pair, to fabric.MAC, marker []byte, number uint32) []byte {
	if p.To.IP.Addr().Is6() {
		return frame6(p, to, marker, number)
	}
	message := echo(false, number, payload(marker, number))
	f := append(slices.Concat(to[:], p.From.MAC[:]), 0x08, 0x00)
	head := []byte{0x45, 0, 0, 0, byte(number >> 8), byte(number), 0, 0, 64, 1, 0, 0}
	binary.BigEndian.PutUint16(head[2:], uint16(20+len(message)))
	from, dst := p.From.IP.Addr().As4(), p.To.IP.Addr().As4()
	head = append(append(head, from[:]...), dst[:]...)
	binary.BigEndian.PutUint16(head[10:], checksum(head))
	return append(append(f, head...), message...)
}

// frame6 returns an ICMPv6 echo request. The checksum includes the pseudo-header of
// RFC 8200, section 8.1.
func frame6(p Pair, to fabric.MAC, marker []byte, number uint32) []byte {
	const icmpv6 = 58
	message := echo(true, number, payload(marker, number))
	from, dst := p.From.IP.Addr().As16(), p.To.IP.Addr().As16()
	pseudo := binary.BigEndian.AppendUint32(slices.Concat(from[:], dst[:]), uint32(len(message)))
	binary.BigEndian.PutUint16(message[2:], checksum(slices.Concat(pseudo, []byte{0, 0, 0, icmpv6}, message)))
	f := append(slices.Concat(to[:], p.From.MAC[:]), 0x86, 0xdd, 0x60, 0, 0, 0)
	f = binary.BigEndian.AppendUint16(f, uint16(len(message)))
	f = append(f, icmpv6, 64)
	return slices.Concat(f, from[:], dst[:], message)
}

// echo returns an ICMP echo request. The kernel computes the checksum of ICMPv6.
func echo(v6 bool, number uint32, data []byte) []byte {
	p := []byte{8, 0, 0, 0, 0x50, 0x34, byte(number >> 8), byte(number)}
	if v6 {
		p[0] = 128
	}
	p = append(p, data...)
	if !v6 {
		binary.BigEndian.PutUint16(p[2:], checksum(p))
	}
	return p
}
