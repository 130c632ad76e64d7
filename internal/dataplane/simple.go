package dataplane

import "time"

// A simple runs the program of a Switch in the order of simple_switch's steps.
type simple struct{ *Switch }

// The values of instance_type.
const (
	instanceNormal       = 0
	instanceIngressClone = 1
	instanceEgressClone  = 2
	instanceRecirculated = 4
	instanceReplication  = 5
	instanceResubmitted  = 6
)

func (s simple) newPacket() *Packet { return new(Packet) }

func (s simple) vector() []uint64 { return make([]uint64, s.prog.Layout.Words) }

func (s simple) hasPriority(priority int) bool {
	f := s.prog.Std.Priority
	return f.OK && uint64(priority) <= f.Mask
}

// arrive sets the standard metadata of a new packet.
func (s simple) arrive(p *Packet, now time.Duration) {
	port, length := p.ingressPort, p.st.Length
	s.prog.Std.IngressPort.Put(p.st.W, uint64(port))
	s.prog.Std.PacketLength.Put(p.st.W, uint64(length))
	s.prog.Std.InstanceType.Put(p.st.W, instanceNormal)
	s.prog.Std.IngressTime.Put(p.st.W, uint64(now.Microseconds()))
}

// ingress parses p, runs the ingress control, and executes its requests.
func (s simple) ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	p.st.Now = now
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

// toQueue appends the outcome of a packet for a port.
func (s simple) toQueue(p *Packet, port uint32, out []Outcome) []Outcome {
	p.egressPort, p.priority = port, int(s.prog.Std.Priority.Get(p.st.W))
	if p.priority >= s.opts.Priorities {
		return s.drop(p, dropPriority, out)
	}
	return append(out, Outcome{Kind: ToQueue, Packet: p, Port: port, Priority: p.priority})
}

// cloneIngress copies p as it arrived, parses the copy again and sends it to its
// session. It keeps only the fields in the field list. It loses even the metadata
// that the parser wrote.
func (s simple) cloneIngress(p *Packet, size int, out []Outcome) []Outcome {
	p.st.CloneOn = false
	session, ok := s.cloneTo(p, p.st.CloneSession)
	if !ok {
		return out
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

// toSession sends a clone to the group and the port of its session. If the session
// has neither, the clone is dropped.
func (s simple) toSession(c *Packet, m MirrorSession, out []Outcome) []Outcome {
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

// resubmit sends p, as it arrived, through the parser again.
func (s simple) resubmit(p *Packet, size int, out []Outcome) []Outcome {
	if !s.turns(p, turn{EventResubmit, p.ingressPort}) {
		return s.drop(p, dropRounds, out)
	}
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventResubmit})
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

// multicast copies p to the members of a group and keeps p.
func (s simple) multicast(p *Packet, group uint32, out []Outcome) []Outcome {
	list := s.pre.copies(group)
	for _, r := range list {
		c := s.copyHeaders(p)
		p.split(c, len(list))
		s.prog.Std.EgressRid.Put(c.st.W, uint64(r.Instance))
		out = s.toQueue(c, r.Port, out)
	}
	return out
}

func (s simple) hasGhost(*Packet) bool { return false }

func (s simple) enqueued(p *Packet, depth int, now time.Duration) {
	if s.prog.Std.Queueing {
		s.prog.Std.EnqTime.Put(p.st.W, uint64(now.Microseconds()))
		s.prog.Std.EnqDepth.Put(p.st.W, uint64(depth))
	}
}

// egress runs the egress control and the deparser.
func (s simple) egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
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
		s.prog.Trace(&p.st, Event{Kind: EventTransmit, Value: int64(p.egressPort)})
	}
	return append(out, Outcome{Kind: ToPort, Packet: p, Port: p.egressPort})
}

func (s simple) beginEgress(p *Packet, depth int, now uint64) {
	std := &s.prog.Std
	std.EgressTime.Put(p.st.W, now)
	if std.Queueing {
		std.DeqDelta.Put(p.st.W, now-std.EnqTime.Get(p.st.W))
		std.DeqDepth.Put(p.st.W, uint64(depth))
		std.Qid.Put(p.st.W, uint64(p.priority))
	}
	std.EgressPort.Put(p.st.W, uint64(p.egressPort))
	// Any value except the drop port will do.
	std.EgressSpec.Put(p.st.W, uint64(s.opts.DropPort)+1)
	std.PacketLength.Put(p.st.W, uint64(p.st.Length))
}

// cloneEgress copies p with its current headers. The copy is not parsed; it
// goes to the queue of its session.
func (s simple) cloneEgress(p *Packet, out []Outcome) []Outcome {
	p.st.CloneOn = false
	session, ok := s.cloneTo(p, p.st.CloneSession)
	if !ok {
		return out
	}
	c := s.copyHeaders(p)
	p.share(c, p.st.Recirculate == 0)
	c.shorten(session.Length)
	s.resetMetadata(c)
	s.copyList(c, p, p.st.CloneList)
	s.prog.Std.InstanceType.Put(c.st.W, instanceEgressClone)
	return s.toSession(c, session, out)
}

// recirculate sends the packet to the parser again as it would leave, but
// without truncate.
func (s simple) recirculate(p *Packet, out []Outcome) []Outcome {
	if !s.turns(p, turn{EventRecirculate, p.egressPort}) {
		return s.drop(p, dropRounds, out)
	}
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventRecirculate})
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
