package dataplane

import (
	"encoding/binary"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
)

// The causes of drops in a trace.
const (
	dropAssertion = "assertion"
	dropBuffer    = "recirculation buffer"
	dropEgress    = "egress"
	dropIngress   = "ingress"
	dropParser    = "parser error"
	dropPriority  = "priority"
	dropQueue     = "queue"
	dropResubmit  = "second resubmit"
	dropRounds    = "rounds"
)

// drop ends a packet.
func (s *Switch) drop(p *Packet, why string, out []Outcome) []Outcome {
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventDrop, Name: why})
	}
	if s.opts.Dropped != nil {
		s.opts.Dropped(p.dropped(why))
	}
	s.release(p)
	return out
}

// dropped returns the port that counts a drop, and the reason. The program does not
// state a reason, so dropped derives it from the packet's fields and history.
func (p *Packet) dropped(why string) (port uint32, reason bmv2.DropReason) {
	switch why {
	case dropQueue, dropPriority:
		return p.egressPort, bmv2.DropQueue
	case dropAssertion:
		return p.ingressPort, bmv2.DropAssertion
	case dropParser:
		return p.ingressPort, bmv2.DropParser
	case dropRounds, dropResubmit:
		return p.ingressPort, bmv2.DropRounds
	case dropBuffer:
		return p.ingressPort, bmv2.DropBuffer
	}
	port = p.ingressPort
	if why == dropEgress {
		port = p.egressPort
	}
	switch {
	case p.rounds.copy:
		return port, bmv2.EndCopy
	case why == dropEgress:
		return port, bmv2.DropProgram
	case p.expired():
		return port, bmv2.DropTTL
	case p.st.Entry == lookup.None:
		return port, bmv2.DropNoEntry
	}
	return port, bmv2.DropProgram
}

const (
	etherTypeAt = 12

	etherTypeIPv4, etherTypeIPv6, etherTypeVLAN = 0x0800, 0x86dd, 0x8100

	vlanBytes = 4
	ttlAt     = 14 + 8 // after the Ethernet header

	hopLimitAt = 14 + 7
)

// expired reports whether the packet arrived as IPv4 or IPv6 with a TTL or hop
// limit of at most 1.
func (p *Packet) expired() bool {
	if p.st.Buf == nil || p.st.End-p.st.Start <= ttlAt+vlanBytes {
		return false
	}
	b := p.st.Buf[p.st.Start:p.st.End]
	if binary.BigEndian.Uint16(b[etherTypeAt:]) == etherTypeVLAN {
		b = b[vlanBytes:]
	}
	switch binary.BigEndian.Uint16(b[etherTypeAt:]) {
	case etherTypeIPv4:
		return b[ttlAt] <= 1
	case etherTypeIPv6:
		return b[hopLimitAt] <= 1
	}
	return false
}
