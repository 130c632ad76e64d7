package dataplane

import (
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// noPort is the port of packets without a destination: nothing is connected to it.
const noPort = devPorts - 1

// tmFields are the requests of ingress to the traffic manager.
type tmFields struct {
	port, bypass, cos, qid, toCPU, groupA, groupB program.StdField
	hash1, hash2, xid1, xid2, rid                 program.StdField
}

func (f *tmFields) find(l *vector.Layout) {
	f.port.Find(l, "ig_tm_md", "ucast_egress_port")
	f.bypass.Find(l, "ig_tm_md", "bypass_egress")
	f.cos.Find(l, "ig_tm_md", "ingress_cos")
	f.qid.Find(l, "ig_tm_md", "qid")
	f.toCPU.Find(l, "ig_tm_md", "copy_to_cpu")
	f.groupA.Find(l, "ig_tm_md", "mcast_grp_a")
	f.groupB.Find(l, "ig_tm_md", "mcast_grp_b")
	f.hash1.Find(l, "ig_tm_md", "level1_mcast_hash")
	f.hash2.Find(l, "ig_tm_md", "level2_mcast_hash")
	f.xid1.Find(l, "ig_tm_md", "level1_exclusion_id")
	f.xid2.Find(l, "ig_tm_md", "level2_exclusion_id")
	f.rid.Find(l, "ig_tm_md", "rid")
}

// arrive records the arrival of a packet. Counters and meters include the frame check sequence.
func (t *tofino) arrive(p *Packet, now time.Duration) {
	p.st.Now = now
	p.st.IngressLength += vector.FrameCheck
	*p.tm = forTM{}
	if n := t.chip.portData; p.ingressPort < devPorts {
		data := p.st.Buf[p.st.Start-n : p.st.Start]
		clear(data[copy(data, t.portData[p.ingressPort]):])
	}
}

// ingress runs the first half of the pipe and the traffic manager.
func (t *tofino) ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	arrived := p.st.Now
	g := &t.at(p.ingressPort).in
	t.open(p, now)
	t.tm.port.Put(p.st.W, noPort)
	head := t.inHeader.put(p, t.chip.portData, arrived)
	if !t.parse(g, p, head) {
		return t.drop(p, dropParser, out)
	}
	if !t.work(g, p) {
		return t.drop(p, dropAssertion, out)
	}
	dropped := g.drop.Get(p.st.W)
	// A resubmitted packet is sent nowhere else, so its mirror copy is not sent (TNA 5.6). A
	// packet that the program resubmits a second time is dropped (TNA 7.14).
	if t.sw.prog.Asked.Resubmit && dropped&dropPacket == 0 {
		if p.tm.resubmitted {
			return t.drop(p, dropResubmit, out)
		}
		return t.resubmit(p, now, out)
	}
	out = t.schedule(g, p, out)
	mirrors := t.sw.prog.Asked.Mirror && dropped&dropMirror == 0
	late := mirrors && g.mirrorIO.Get(p.st.W) != 0
	if mirrors && !late {
		out = t.mirror(p, p.st.Start, false, out)
	}
	return t.forward(g, p, dropped, late, out)
}

// The bits of drop_ctl.
const (
	dropPacket = 1 << iota
	dropCPU
	dropMirror
)

// forward deparses the packet and puts it and its copies into their queues.
func (t *tofino) forward(g *gress, p *Packet, dropped uint64, mirrorLate bool, out []Outcome) []Outcome {
	port, a, b := t.tm.port.Get(p.st.W), t.tm.groupA.Get(p.st.W), t.tm.groupB.Get(p.st.W)
	if !t.tm.port.OK {
		port = noPort
	}
	if dropped&dropPacket != 0 {
		port, a, b = noPort, 0, 0
	}
	cpu := t.sw.opts.CPU
	if t.tm.toCPU.Get(p.st.W) == 0 || dropped&dropCPU != 0 {
		cpu = nil
	}
	if port == noPort && a|b == 0 && cpu == nil && !mirrorLate {
		return t.drop(p, dropIngress, out)
	}
	p.tm.qid, p.tm.cos = uint8(t.tm.qid.Get(p.st.W)), uint8(t.tm.cos.Get(p.st.W))
	p.tm.bypass = t.tm.bypass.Get(p.st.W) != 0
	why := cut{
		hash1: t.tm.hash1.Get(p.st.W), hash2: t.tm.hash2.Get(p.st.W), rid: uint16(t.tm.rid.Get(p.st.W)),
		xid1: uint16(t.tm.xid1.Get(p.st.W)), xid2: uint16(t.tm.xid2.Get(p.st.W)),
	}
	t.write(g, p)
	if mirrorLate {
		out = t.mirror(p, p.st.Start, false, out)
	}
	t.close(p)
	p.rounds.left /= max(1, btoi(a != 0)+btoi(b != 0)+btoi(cpu != nil)+btoi(port != noPort))
	out = t.multicast(p, uint32(a), why, out)
	out = t.multicast(p, uint32(b), why, out)
	if cpu != nil {
		out = t.toQueue(t.replica(p), *cpu, out)
	}
	if port != noPort {
		return t.toQueue(p, uint32(port), out)
	}
	t.sw.release(p)
	return out
}

// write writes the headers before the payload. From then on, the packet is bytes
// only.
func (t *tofino) write(g *gress, p *Packet) {
	g.Deparser.Emit(t.sw.prog, &p.st)
	p.st.DropCheck()
	p.st.Start = p.st.Head
	p.st.Length = p.st.End - p.st.Head + p.extra
}

// resubmit sends the received packet through ingress again. The resubmit header
// replaces the port metadata.
func (t *tofino) resubmit(p *Packet, now time.Duration, out []Outcome) []Outcome {
	if !t.sw.turns(p, turn{EventResubmit, p.ingressPort}) {
		return t.drop(p, dropRounds, out)
	}
	if t.sw.opts.Trace != nil {
		t.sw.prog.Trace(&p.st, Event{Kind: EventResubmit})
	}
	t.close(p)
	p.st.Head = p.st.Start
	p.st.DropCheck()
	p.st.Now, *p.tm = now, forTM{resubmitted: true}
	data := p.st.Buf[p.st.Start-t.chip.portData : p.st.Start]
	clear(data[copy(data, t.sw.prog.Asked.Again):])
	return append(out, Outcome{Kind: ToIngress, Packet: p})
}

// replica copies the bytes of a packet and its data for the traffic manager.
func (t *tofino) replica(p *Packet) *Packet {
	c := t.sw.copyBytes(p, p.st.Head)
	c.st.Length, c.st.Now, *c.tm, c.rounds = p.st.Length, p.st.Now, *p.tm, p.rounds
	return c
}

// adopt moves a packet of another pipe, between ingress and egress, to this
// switch. Such a packet is bytes only.
func (s *Switch) adopt(p *Packet, from *Switch) *Packet {
	c := s.newPacket(p.st.End - p.st.Head)
	copy(c.st.Buf[c.st.Start:], p.st.Buf[p.st.Head:p.st.End])
	c.extra, c.st.Limit, c.st.Check, c.st.Length, c.st.IngressLength = p.extra, p.st.Limit, p.st.Check, p.st.Length, p.st.IngressLength
	c.ingressPort, c.egressPort, c.priority = p.ingressPort, p.egressPort, p.priority
	c.st.Now, *c.tm, c.rounds, c.st.ID = p.st.Now, *p.tm, p.rounds, p.st.ID
	from.release(p)
	return c
}

// multicast copies p to the members of a group and keeps p.
func (t *tofino) multicast(p *Packet, group uint32, why cut, out []Outcome) []Outcome {
	if group == 0 {
		return out
	}
	copies := t.trees.copies(&t.sw.pre, group, why)
	for i, r := range copies {
		c := t.replica(p)
		p.split(c, len(copies))
		c.tm.rid = uint16(r.Instance)
		c.tm.ridFirst = i == 0 || copies[i-1].Instance != r.Instance
		out = t.toQueue(c, r.Port, out)
	}
	return out
}

// toQueue appends the outcome of a packet for a port. Queue numbers beyond the last
// queue select the last queue.
func (t *tofino) toQueue(p *Packet, port uint32, out []Outcome) []Outcome {
	p.egressPort, p.priority = port, min(int(p.tm.qid), t.sw.opts.Priorities-1)
	return append(out, Outcome{Kind: ToQueue, Packet: p, Port: port, Priority: p.priority})
}

// mirror sends a copy of the packet's bytes, starting at from, to the session
// of the deparser, after the deparser's header. leaves reports that the packet
// itself leaves the switch.
func (t *tofino) mirror(p *Packet, from int, leaves bool, out []Outcome) []Outcome {
	session, ok := t.sw.cloneTo(p, t.sw.prog.Asked.Session)
	if !ok {
		return out
	}
	n, end := len(t.sw.prog.Asked.Mirrored), p.st.End-p.st.Check
	if n+end-from > program.MaxFrame && (session.Length == 0 || session.Length > program.MaxFrame) {
		return out
	}
	c := t.sw.newPacket(n + end - from)
	copy(c.st.Buf[c.st.Start:], t.sw.prog.Asked.Mirrored)
	copy(c.st.Buf[c.st.Start+n:], p.st.Buf[from:end])
	p.share(c, leaves)
	c.extra, c.ingressPort, c.st.Now = p.extra, p.ingressPort, p.st.Now
	c.st.Length = c.st.End - c.st.Start + c.extra
	c.st.IngressLength = p.st.IngressLength - vector.FrameCheck + n
	c.shorten(session.Length)
	c.st.IngressLength += vector.FrameCheck
	*c.tm = forTM{qid: uint8(session.Priority)}
	if session.Group != 0 {
		c.rounds.left /= 1 + btoi(session.HasPort)
		out = t.multicast(c, session.Group, cut{}, out)
	}
	if session.HasPort {
		return t.toQueue(c, session.Port, out)
	}
	t.sw.release(c)
	return out
}
