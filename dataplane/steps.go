package dataplane

import (
	"time"
)

// The way of a packet is cut where a caller may want queues of its own:
//
//	Receive → Ingress → (a queue per Outcome; Enqueued) → Egress → (send)
//
// Ingress and Egress take the packet over and return what becomes of it, and
// of its copies, in the order in which simple_switch acts.

// The values of instance_type.
const (
	instanceNormal       = 0
	instanceIngressClone = 1
	instanceEgressClone  = 2
	instanceRecirculated = 4
	instanceReplication  = 5
	instanceResubmitted  = 6
)

// Receive takes in a packet; data is copied.
func (s *Switch) Receive(port uint32, data []byte, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, data, 0, now)
}

// ReceiveHead takes in a packet of which only the first bytes are there, and
// the number of those that follow. All lengths count them. To the program they
// are payload: a parser that wants to extract or look at them finds that the
// packet ends too soon, and checksums with payload leave them out.
func (s *Switch) ReceiveHead(port uint32, head []byte, extra int, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, head, extra, now)
}

func (s *Switch) receive(port uint32, data []byte, extra int, now time.Duration) *Packet {
	p := s.newPacket(len(data))
	p.rounds.left = s.opts.Rounds
	copy(p.st.Buf[p.st.Start:], data)
	length := len(data) + extra
	p.extra, p.ingressPort, p.st.IngressLength, p.st.Length = extra, port, length, length
	if s.tofino != nil {
		s.tofino.arrive(p, now)
		return p
	}
	s.prog.Std.IngressPort.Put(p.st.W, uint64(port))
	s.prog.Std.PacketLength.Put(p.st.W, uint64(length))
	s.prog.Std.InstanceType.Put(p.st.W, instanceNormal)
	s.prog.Std.IngressTime.Put(p.st.W, uint64(now.Microseconds()))
	return p
}

// Ingress parses p and runs the ingress control. The outcomes are appended to
// out.
func (s *Switch) Ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runIngress(p, now, out)
}

func (s *Switch) runIngress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	if s.tofino != nil {
		return s.tofino.ingress(p, now, out)
	}
	p.st.Now, s.now = now, now
	size := p.st.Length
	if c := s.prog.Compiled; c != nil {
		p.st.Next = c.Ingress
		c.Run(&p.st, c.Parse)
	} else {
		s.prog.Parse(&p.st)
		s.prog.Std.ParserError.Put(p.st.W, p.st.ParserError)
		s.prog.Std.ChecksumError.Put(p.st.W, b2u(p.st.ChecksumError))
		s.prog.Ingress.Apply(s.prog, &p.st)
	}
	p.st.Exit = false
	if p.st.Dead {
		return s.drop(p, dropAssertion, out)
	}
	if p.st.CloneOn {
		out = s.cloneIngress(p, size, out)
	}
	if p.st.Digest != 0 {
		s.learn(p, p.st.Digest)
	}
	if p.st.Resubmit != 0 {
		return s.resubmit(p, size, out)
	}
	if group := s.prog.Std.McastGrp.Get(p.st.W); group != 0 {
		s.prog.Std.InstanceType.Put(p.st.W, instanceReplication)
		out = s.multicast(p, uint32(group), out)
		s.release(p)
		return out
	}
	port := s.prog.Std.EgressSpec.Get(p.st.W)
	if port == uint64(s.opts.DropPort) {
		return s.drop(p, dropIngress, out)
	}
	s.prog.Std.InstanceType.Put(p.st.W, instanceNormal)
	return s.toQueue(p, uint32(port), out)
}

// toQueue makes the outcome of a packet for a port.
func (s *Switch) toQueue(p *Packet, port uint32, out []Outcome) []Outcome {
	p.egressPort, p.priority = port, int(s.prog.Std.Priority.Get(p.st.W))
	if p.priority >= s.opts.Priorities {
		return s.drop(p, dropPriority, out)
	}
	return append(out, Outcome{Kind: ToQueue, Packet: p, Port: port, Priority: p.priority})
}

// cloneIngress copies p as it came in, parses it again and sends it to its
// session. Only the field list comes along: what the parser has put into
// metadata is lost as well.
func (s *Switch) cloneIngress(p *Packet, size int, out []Outcome) []Outcome {
	p.st.CloneOn = false
	session, ok := s.mirrors.get(p.st.CloneSession)
	if !ok {
		return out
	}
	if !s.turns(p, turn{EventClone, uint32(p.st.CloneSession & maxSession)}) {
		return out
	}
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventClone, Value: int64(p.st.CloneSession & maxSession)})
	}
	c := s.copyBytes(p, p.st.Start)
	p.share(c, false)
	c.st.Now, c.st.Length = p.st.Now, size
	c.shorten(session.Length)
	s.prog.Std.IngressPort.Put(c.st.W, uint64(p.ingressPort))
	s.prog.Parse(&c.st)
	s.resetMetadata(c)
	s.copyList(c, p, p.st.CloneList)
	s.prog.Std.InstanceType.Put(c.st.W, instanceIngressClone)
	return s.toSession(c, session, out)
}

// toSession sends a clone to its session's group and port; without either it
// is gone.
func (s *Switch) toSession(c *Packet, m MirrorSession, out []Outcome) []Outcome {
	if m.Priority > 0 {
		s.prog.Std.Priority.Put(c.st.W, uint64(m.Priority))
	}
	if m.Group != 0 {
		c.rounds.left /= 1 + btoi(m.HasPort)
		out = s.multicast(c, m.Group, out)
	}
	if m.HasPort {
		return s.toQueue(c, m.Port, out)
	}
	s.release(c)
	return out
}

// resubmit sends p, as it came in, through the parser again.
func (s *Switch) resubmit(p *Packet, size int, out []Outcome) []Outcome {
	if !s.turns(p, turn{EventResubmit, p.ingressPort}) {
		return s.drop(p, dropRounds, out)
	}
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventResubmit})
	}
	c := s.copyBytes(p, p.st.Start)
	c.rounds = p.rounds
	c.st.Length = size
	s.copyList(c, p, p.st.Resubmit)
	s.prog.Std.InstanceType.Put(c.st.W, instanceResubmitted)
	s.prog.Std.PacketLength.Put(c.st.W, uint64(size))
	s.release(p)
	return append(out, Outcome{Kind: ToIngress, Packet: c})
}

// multicast copies p to the members of a group; p itself stays.
func (s *Switch) multicast(p *Packet, group uint32, out []Outcome) []Outcome {
	list := s.pre.copies(group)
	for _, r := range list {
		c := s.copyHeaders(p)
		p.split(c, len(list))
		s.prog.Std.EgressRid.Put(c.st.W, uint64(r.Instance))
		out = s.toQueue(c, r.Port, out)
	}
	return out
}

// Enqueued notes in p that it has been put into its queue behind depth
// packets, or cells where there is a CellSize.
func (s *Switch) Enqueued(p *Packet, depth int, now time.Duration) {
	if s.tofino != nil && s.tofino.haunted(p) { // writes registers
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.enqueued(p, depth, now)
}

func (s *Switch) enqueued(p *Packet, depth int, now time.Duration) {
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventEnqueue, Value: int64(p.egressPort), Depth: depth})
	}
	if s.tofino != nil {
		p.tm.enqTime, p.tm.enqDepth = now, depth
		if s.tofino.haunted(p) {
			s.tofino.tell(p, depth+s.Cells(p), now)
		}
	}
	if s.prog.Std.Queueing {
		s.prog.Std.EnqTime.Put(p.st.W, uint64(now.Microseconds()))
		s.prog.Std.EnqDepth.Put(p.st.W, uint64(depth))
	}
}

// Egress runs the egress control on a packet that leaves its queue, with depth
// packets (or cells) still in it. The outcomes are appended to out.
func (s *Switch) Egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runEgress(p, depth, now, out)
}

func (s *Switch) runEgress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	if p.st.Buf == nil {
		s.unpark(p)
	}
	if s.tofino != nil {
		return s.tofino.egress(p, depth, now, out)
	}
	p.st.Now = now
	s.beginEgress(p, depth, uint64(now.Microseconds()))
	if c := s.prog.Compiled; c != nil {
		c.Run(&p.st, c.Egress)
	} else {
		s.prog.Egress.Apply(s.prog, &p.st)
	}
	if p.st.Dead {
		return s.drop(p, dropAssertion, out)
	}
	if p.st.CloneOn {
		out = s.cloneEgress(p, out)
	}
	if s.prog.Std.EgressSpec.Get(p.st.W) == uint64(s.opts.DropPort) {
		return s.drop(p, dropEgress, out)
	}
	s.prog.Deparse(&p.st)
	if p.st.Recirculate != 0 {
		return s.recirculate(p, out)
	}
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventTransmit, Value: int64(p.egressPort)})
	}
	return append(out, Outcome{Kind: ToPort, Packet: p, Port: p.egressPort})
}

func (s *Switch) beginEgress(p *Packet, depth int, now uint64) {
	std := &s.prog.Std
	std.EgressTime.Put(p.st.W, now)
	if std.Queueing {
		std.DeqDelta.Put(p.st.W, now-std.EnqTime.Get(p.st.W))
		std.DeqDepth.Put(p.st.W, uint64(depth))
		std.Qid.Put(p.st.W, uint64(p.priority))
	}
	std.EgressPort.Put(p.st.W, uint64(p.egressPort))
	// Whatever is not the drop port will do.
	std.EgressSpec.Put(p.st.W, uint64(s.opts.DropPort)+1)
	std.PacketLength.Put(p.st.W, uint64(p.st.Length))
}

// cloneEgress copies p with its headers as they are now; the copy is not
// parsed but goes to the queue of its session.
func (s *Switch) cloneEgress(p *Packet, out []Outcome) []Outcome {
	p.st.CloneOn = false
	session, ok := s.mirrors.get(p.st.CloneSession)
	if !ok {
		return out
	}
	if !s.turns(p, turn{EventClone, uint32(p.st.CloneSession & maxSession)}) {
		return out
	}
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventClone, Value: int64(p.st.CloneSession & maxSession)})
	}
	c := s.copyHeaders(p)
	p.share(c, p.st.Recirculate == 0)
	c.shorten(session.Length)
	s.resetMetadata(c)
	s.copyList(c, p, p.st.CloneList)
	s.prog.Std.InstanceType.Put(c.st.W, instanceEgressClone)
	return s.toSession(c, session, out)
}

// recirculate sends the packet that would have been sent through the parser
// again, uncut by truncate.
func (s *Switch) recirculate(p *Packet, out []Outcome) []Outcome {
	if !s.turns(p, turn{EventRecirculate, p.egressPort}) {
		return s.drop(p, dropRounds, out)
	}
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventRecirculate})
	}
	c := s.copyBytes(p, p.st.Head)
	c.rounds = p.rounds
	c.st.IngressLength, c.st.Length = c.st.End-c.st.Start+c.extra, c.st.End-c.st.Start+c.extra
	s.copyList(c, p, p.st.Recirculate)
	s.prog.Std.InstanceType.Put(c.st.W, instanceRecirculated)
	s.prog.Std.PacketLength.Put(c.st.W, uint64(c.st.Length))
	s.release(p)
	return append(out, Outcome{Kind: ToIngress, Packet: c})
}
