package dataplane

import (
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// egress runs the second half of the pipe on a packet from a queue.
func (t *tofino) egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	if t.hasGhost(p) {
		t.notify(p, depth, now)
	}
	if p.tm.bypass {
		p.st.Now = now
		return t.send(p, out)
	}
	g := &t.at(p.egressPort).out
	t.open(p, now)
	if t.chip.selects {
		// By default a mirror copies the packet that leaves, as on Tofino 1;
		// this is the compiler's default. The program may ask for the packet as
		// it came.
		g.mirrorIO.Put(p.st.W, 1)
	}
	t.sw.prog.Late = t.sw.prog.Late[:0]
	t.parse(g, p, t.outHeader.put(p, depth))
	if !t.work(g, p) {
		return t.drop(p, dropAssertion, out)
	}
	out = t.schedule(g, p, out)
	dropped := g.drop.Get(p.st.W)
	mirrors := t.sw.prog.Asked.Mirror && dropped&dropMirror == 0
	leaves := dropped&dropPacket != 0 || !t.recirculates(p)
	if mirrors && t.chip.selects && g.mirrorIO.Get(p.st.W) == 0 {
		out, mirrors = t.mirror(p, p.st.Start, leaves, out), false
	}
	if dropped&dropPacket != 0 && !mirrors {
		return t.drop(p, dropEgress, out)
	}
	t.write(g, p)
	if mirrors {
		out = t.mirror(p, p.st.Start, leaves, out)
	}
	if dropped&dropPacket != 0 {
		return t.drop(p, dropEgress, out)
	}
	t.sw.prog.Late.Settle(p.st.End - p.st.Head + p.extra + vector.FrameCheck)
	t.close(p)
	return t.send(p, out)
}

// recirculates reports whether the packet's port leads back to ingress.
func (t *tofino) recirculates(p *Packet) bool {
	return p.egressPort < devPorts && t.loops[p.egressPort]
}

// send sends a packet out of its port or back to ingress.
func (t *tofino) send(p *Packet, out []Outcome) []Outcome {
	if t.recirculates(p) {
		return t.recirculate(p, out)
	}
	if t.sw.opts.Trace != nil {
		t.sw.prog.Trace(&p.st, Event{Kind: EventTransmit, Value: int64(p.egressPort)})
	}
	return append(out, Outcome{Kind: ToPort, Packet: p, Port: p.egressPort})
}

// recirculate turns a packet for a recirculation port into one that arrives
// there.
func (t *tofino) recirculate(p *Packet, out []Outcome) []Outcome {
	if !t.sw.turns(p, turn{EventRecirculate, p.egressPort}) {
		return t.sw.drop(p, dropRounds, out)
	}
	if t.sw.opts.Trace != nil {
		t.sw.prog.Trace(&p.st, Event{Kind: EventRecirculate})
	}
	c := t.sw.copyBytes(p, p.st.Head)
	c.rounds = p.rounds
	c.ingressPort = p.egressPort
	c.st.Length = c.st.End - c.st.Start + c.extra
	c.st.IngressLength = c.st.Length
	t.arrive(c, p.st.Now)
	t.sw.release(p)
	return append(out, Outcome{Kind: ToIngress, Packet: c})
}
