package dataplane

import "time"

// noPort is where ingress sends a packet that it gives no port: nowhere.
const noPort = devPorts - 1

// tmFields are what ingress asks of the traffic manager.
type tmFields struct {
	port, bypass, cos, qid, toCPU, groupA, groupB stdField
	hash1, hash2, xid1, xid2, rid                 stdField
}

func (f *tmFields) find(l *layout) {
	f.port.find(l, "ig_tm_md", "ucast_egress_port")
	f.bypass.find(l, "ig_tm_md", "bypass_egress")
	f.cos.find(l, "ig_tm_md", "ingress_cos")
	f.qid.find(l, "ig_tm_md", "qid")
	f.toCPU.find(l, "ig_tm_md", "copy_to_cpu")
	f.groupA.find(l, "ig_tm_md", "mcast_grp_a")
	f.groupB.find(l, "ig_tm_md", "mcast_grp_b")
	f.hash1.find(l, "ig_tm_md", "level1_mcast_hash")
	f.hash2.find(l, "ig_tm_md", "level2_mcast_hash")
	f.xid1.find(l, "ig_tm_md", "level1_exclusion_id")
	f.xid2.find(l, "ig_tm_md", "level2_exclusion_id")
	f.rid.find(l, "ig_tm_md", "rid")
}

// arrive notes when a packet came in. Counters and meters see the frame's check
// sequence too.
func (t *tofino) arrive(p *Packet, now time.Duration) {
	p.now = now
	p.ingressLength += frameCheck
	*p.tm = forTM{}
	if n := t.chip.portData; p.ingressPort < devPorts {
		data := p.buf[p.start-n : p.start]
		clear(data[copy(data, t.portData[p.ingressPort]):])
	}
}

// ingress runs the first half of the pipe and the traffic manager.
func (t *tofino) ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	arrived := p.now
	g := &t.at(p.ingressPort).in
	t.sw.now = now
	t.open(p, now)
	t.tm.port.put(p.w, noPort)
	head := t.inHeader.put(p, t.chip.portData, arrived)
	if !t.parse(g, p, head) {
		return t.drop(p, dropParser, out)
	}
	if !t.work(g, p) {
		return t.drop(p, dropAssertion, out)
	}
	dropped := g.drop.get(p.w)
	mirrors := t.asked.mirror && dropped&dropMirror == 0
	late := mirrors && g.mirrorIO.get(p.w) != 0
	if mirrors && !late {
		out = t.mirror(p, p.start, false, out)
	}
	if t.asked.resubmit && dropped&dropPacket == 0 && !p.tm.resubmitted {
		return t.resubmit(p, now, out)
	}
	return t.forward(g, p, dropped, late, out)
}

// The bits of drop_ctl.
const (
	dropPacket = 1 << iota
	dropCPU
	dropMirror
)

// forward deparses the packet and hands it, and copies of it, to their queues.
func (t *tofino) forward(g *gress, p *Packet, dropped uint64, mirrorLate bool, out []Outcome) []Outcome {
	port, a, b := t.tm.port.get(p.w), t.tm.groupA.get(p.w), t.tm.groupB.get(p.w)
	if !t.tm.port.ok {
		port = noPort
	}
	if dropped&dropPacket != 0 {
		port, a, b = noPort, 0, 0
	}
	cpu := t.sw.opts.CPU
	if t.tm.toCPU.get(p.w) == 0 || dropped&dropCPU != 0 {
		cpu = nil
	}
	if port == noPort && a|b == 0 && cpu == nil && !mirrorLate {
		return t.drop(p, dropIngress, out)
	}
	p.tm.qid, p.tm.cos = uint8(t.tm.qid.get(p.w)), uint8(t.tm.cos.get(p.w))
	p.tm.bypass = t.tm.bypass.get(p.w) != 0
	why := t.tm.cutOf(p)
	t.write(g, p)
	if mirrorLate {
		out = t.mirror(p, p.start, false, out)
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

// write puts the headers before the payload; with them the packet is nothing
// but bytes.
func (t *tofino) write(g *gress, p *Packet) {
	g.deparser.emit(t.sw, &p.State)
	p.dropCheck()
	p.start = p.head
	p.length = p.end - p.head + p.extra
}

// resubmit sends the packet as it came through ingress once more, with a
// header where the port metadata was. The hardware does so once per packet.
func (t *tofino) resubmit(p *Packet, now time.Duration, out []Outcome) []Outcome {
	if !t.sw.turns(p, turn{EventResubmit, p.ingressPort}) {
		return t.drop(p, dropRounds, out)
	}
	if t.sw.opts.Trace != nil {
		t.sw.trace(p.id, Event{Kind: EventResubmit})
	}
	t.close(p)
	p.head = p.start
	p.dropCheck()
	p.now, *p.tm = now, forTM{resubmitted: true}
	data := p.buf[p.start-t.chip.portData : p.start]
	clear(data[copy(data, t.asked.again):])
	return append(out, Outcome{Kind: ToIngress, Packet: p})
}

// replica copies a packet of bytes, with what goes along.
func (t *tofino) replica(p *Packet) *Packet {
	c := t.sw.copyBytes(p, p.head)
	c.length, c.now, *c.tm, c.rounds = p.length, p.now, *p.tm, p.rounds
	return c
}

// adopt makes of another pipe's packet, which is between ingress and egress and so
// nothing but bytes, one of this switch.
func (s *Switch) adopt(p *Packet, from *Switch) *Packet {
	c := s.newPacket(p.end - p.head)
	copy(c.buf[c.start:], p.buf[p.head:p.end])
	c.extra, c.limit, c.check, c.length, c.ingressLength = p.extra, p.limit, p.check, p.length, p.ingressLength
	c.ingressPort, c.egressPort, c.priority = p.ingressPort, p.egressPort, p.priority
	c.now, *c.tm, c.rounds, c.id = p.now, *p.tm, p.rounds, p.id
	from.release(p)
	return c
}

// multicast copies p to the members of a group; p itself stays.
func (t *tofino) multicast(p *Packet, group uint32, why cut, out []Outcome) []Outcome {
	if group == 0 {
		return out
	}
	copies := t.copies(group, why)
	for i, r := range copies {
		c := t.replica(p)
		p.split(c, len(copies))
		c.tm.rid = uint16(r.Instance)
		c.tm.ridFirst = i == 0 || copies[i-1].Instance != r.Instance
		out = t.toQueue(c, r.Port, out)
	}
	return out
}

// toQueue makes the outcome of a packet for a port. Queues that the switch
// does not have are the highest one.
func (t *tofino) toQueue(p *Packet, port uint32, out []Outcome) []Outcome {
	p.egressPort, p.priority = port, min(int(p.tm.qid), t.sw.opts.Priorities-1)
	return append(out, Outcome{Kind: ToQueue, Packet: p, Port: port, Priority: p.priority})
}

// maxFrame bounds the copies that mirrors make: a program may well mirror its
// mirrors, each longer by a header.
const maxFrame = 1 << 14

// mirror sends a copy of the packet's bytes from one on to the session that
// the deparser has named, behind the header that it has given. leaves says that
// the packet itself leaves the switch.
func (t *tofino) mirror(p *Packet, from int, leaves bool, out []Outcome) []Outcome {
	session, ok := t.sw.mirrors.get(t.asked.session)
	if !ok {
		return out
	}
	if !t.sw.turns(p, turn{EventClone, uint32(t.asked.session)}) {
		return out
	}
	if t.sw.opts.Trace != nil {
		t.sw.trace(p.id, Event{Kind: EventClone, Value: int64(t.asked.session)})
	}
	n, end := len(t.asked.mirrored), p.end-p.check
	if n+end-from > maxFrame && (session.Length == 0 || session.Length > maxFrame) {
		return out
	}
	c := t.sw.newPacket(n + end - from)
	copy(c.buf[c.start:], t.asked.mirrored)
	copy(c.buf[c.start+n:], p.buf[from:end])
	p.share(c, leaves)
	c.extra, c.ingressPort, c.now = p.extra, p.ingressPort, p.now
	c.length = c.end - c.start + c.extra
	c.ingressLength = p.ingressLength - frameCheck + n
	c.shorten(session.Length)
	c.ingressLength += frameCheck
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
