package sim

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// program is the engine that runs a P4 program.
type program struct {
	s     *Switch
	sw    *dataplane.Switch
	alone dataplane.Held // exclusive access to the switch, while held is set
	held  bool
	// park is the queue length, in the program's unit, from which the memory of arriving packets
	// is reduced.
	park int
	// pfc passes PFC frames to the program.
	pfc bool
	// priorities: ports have two queues, and packets with a priority above 0 go first.
	priorities bool
	// out is a stack, because sending a packet's outcomes may send other packets through egress
	// before all outcomes are handled.
	out []dataplane.Outcome
}

// Random returns the source of random numbers for the program or model of a switch. It makes a
// run reproducible from its seed, and program and model draw the same numbers.
func Random(seed uint64, switchName string) func(lo, hi uint64) uint64 {
	r := stream(seed, "switch/"+switchName)
	return func(lo, hi uint64) uint64 {
		if n := hi - lo + 1; n != 0 {
			return lo + r.Uint64N(n)
		}
		return r.Uint64()
	}
}

// Load makes the switch run a program. Packets that the previous program still has to process are
// lost.
func (s *Switch) Load(sw *dataplane.Switch) {
	if e, ok := s.engine.(*program); ok {
		e.abandon()
	}
	e := &program{s: s, sw: sw, park: parkBehind, priorities: sw.Priorities() > 1 && sw.CellSize() == 0}
	if cell := sw.CellSize(); cell > 0 {
		e.park = parkBehind * s.net.frame() / cell
	}
	s.run(e)
	s.net.withBytes()
}

// abandon drops the packets that still wait for the program.
func (e *program) abandon() {
	for _, o := range append(e.s.ports[:], e.s.loop) {
		if o == nil {
			continue
		}
		for queue := range o.stopped {
			o.start(queue)
		}
		o.stopped = nil
		kept := fifo{}
		for o.queue.head != nil {
			p := o.queue.pop()
			if p.dp == nil {
				kept.push(p)
				continue
			}
			o.bytes -= int32(p.Size)
			o.packets--
			o.cells -= e.s.cellsOf(p.Size)
			e.s.discharge(p)
			e.s.end(p, Replaced)
		}
		o.queue, kept = kept, fifo{}
		for o.urgent.head != nil {
			if p := o.urgent.pop(); p.dp == nil {
				kept.push(p)
			} else {
				e.s.end(p, Replaced)
			}
		}
		o.urgent = kept
		if o.peer == nil { // recirculating packets are lost when they arrive
			o.wire.each(func(a *arrival) {
				e.forget(a.p)
				a.p.head = a.p.head[:0]
			})
		}
	}
	e.s.net.releaseSwitches()
}

// Program returns the program of Load, or nil if the switch runs a model.
func (s *Switch) Program() *dataplane.Switch {
	if e, ok := s.engine.(*program); ok {
		return e.sw
	}
	return nil
}

// take gives the network exclusive access to the switch. While the network runs, it keeps the
// access until a callback may need it. Otherwise done ends it.
func (e *program) take() dataplane.Held {
	if !e.held {
		e.held, e.alone = true, e.sw.Hold()
		e.s.net.held = append(e.s.net.held, e)
	}
	return e.alone
}

func (e *program) done() {
	if !e.s.net.running {
		e.s.net.releaseSwitches()
	}
}

func (e *program) ingress(p *Packet) {
	s := e.s
	if p.dp == nil && len(p.head) == 0 && p.Size > 0 {
		s.net.lose(p, Replaced)
		return
	}
	now := s.Clock()
	base := len(e.out)
	if sw := e.take(); p.dp == nil {
		p.dp, e.out = sw.Arrive(uint32(p.from.Number), p.head, p.extra, now, e.out)
	} else {
		e.out = sw.Ingress(p.dp, now, e.out)
	}
	e.done()
	dp := p.dp
	alive := false
	for i := base; i < len(e.out); i++ {
		o := e.out[i]
		switch {
		case o.Kind == dataplane.ToScheduler:
			s.schedule(o, nil)
		case o.Kind == dataplane.ToIngress: // resubmitted
			alive, p.dp = true, o.Packet
			s.loop.transmit(p)
		case o.Packet == dp:
			alive = true
			p.Size = dp.Len()
			if e.priorities {
				e.prioritise(p, o)
			}
			e.enqueue(p, o.Port)
		default:
			e.duplicate(p, o)
		}
	}
	e.out = e.out[:base]
	if !alive {
		p.dp = nil
		s.drop(p)
	}
}

// prioritise applies the priority that the program gave a packet, and records whether the program
// has trimmed it.
func (e *program) prioritise(p *Packet, o dataplane.Outcome) {
	p.priority = p.priority || o.Priority > 0
	port := e.s.Port(int(o.Port))
	if cut := p.dp.Len() - p.dp.Sent(); cut > 0 && port != nil && p.Flow != nil && p.whole() {
		p.trimmed(port, cut)
	}
}

// duplicate queues a copy of a packet that the program has made.
func (e *program) duplicate(p *Packet, o dataplane.Outcome) {
	c := e.s.copyOf(p, o.Packet.Len())
	c.dp = o.Packet
	e.enqueue(c, o.Port)
}

// enqueue appends a packet to the queue of a port. The recirculation ports of a chip need no
// virtual port.
func (e *program) enqueue(p *Packet, number uint32) {
	if e.s.Port(int(number)) == nil && e.sw.Loops(number) {
		e.s.enqueueAt(p, e.s.loop)
		return
	}
	e.s.enqueue(p, int(number))
}

// schedule pauses or resumes a queue of a port. If the port is busy, it is about to send the
// packet that made the request, and sends that packet first.
func (s *Switch) schedule(o dataplane.Outcome, busy *Port) {
	port := s.Port(int(o.Port))
	switch {
	case port == nil:
	case o.Pause:
		port.stop(o.Queue)
	default:
		port.start(o.Queue)
		if port != busy {
			port.wake()
		}
	}
}

// parkBehind is the longest queue in which the memory of arriving packets is not
// reduced, because they leave soon.
const parkBehind = 8

// enqueued finishes a packet at once if the program has no work left for it at egress: only its
// bytes wait.
func (e *program) enqueued(p *Packet, _ *Port, depth int) {
	now := e.s.Clock()
	switch sw := e.take(); {
	case sw.Passive(p.dp):
		p.head, p.extra, e.out = sw.Leave(p.dp, depth, now, p.head, e.out)
		p.dp = nil
	default:
		sw.Enqueued(p.dp, depth, now)
		if depth >= e.park {
			sw.Park(p.dp)
		}
	}
	e.done()
}

// PassPFC makes the switch pass PFC frames to its program.
func (s *Switch) PassPFC() {
	if e, ok := s.engine.(*program); ok {
		e.pfc = true
	}
}

// paused passes a PFC frame to the program. No packet results from it.
func (e *program) paused(o *Port, pause bool) {
	if !e.pfc {
		return
	}
	base := len(e.out)
	_, e.out = e.take().Arrive(uint32(o.Number), pfcFrame(pause), 0, e.s.Clock(), e.out)
	for _, x := range e.out[base:] {
		if x.Packet != nil {
			e.alone.Free(x.Packet)
		}
	}
	e.out = e.out[:base]
	e.done()
}

// pfcFrame returns a PFC frame (IEEE 802.1Qbb) that pauses all priorities, or resumes
// them.
func pfcFrame(pause bool) []byte {
	frame := make([]byte, 60)
	copy(frame, []byte{0x01, 0x80, 0xC2, 0, 0, 1})
	copy(frame[12:], []byte{0x88, 0x08, 0x01, 0x01, 0x00, 0xFF})
	if pause {
		for i := 18; i < 34; i++ {
			frame[i] = 0xFF
		}
	}
	return frame
}

func (e *program) cut(p *Packet, bytes int) {
	if p.dp == nil { // the program has finished with the packet
		p.extra -= bytes
		return
	}
	e.take().Shorten(p.dp, p.dp.Len()-bytes)
	e.done()
}

func (e *program) cell() int { return e.sw.CellSize() }

func (e *program) egress(p *Packet, at *Port, depth int) fate {
	dp, base := p.dp, len(e.out)
	if dp == nil { // the program has finished with the packet
		p.Size = len(p.head) + p.extra
		return sent
	}
	p.dp = nil
	f, extra := gone, 0
	p.head, extra, e.out = e.take().Leave(dp, depth, e.s.Clock(), p.head, e.out)
	e.done()
	if extra >= 0 {
		f, p.extra, p.Size = sent, extra, len(p.head)+extra
	}
	for i := base; i < len(e.out); i++ {
		o := e.out[i]
		switch o.Kind {
		case dataplane.ToQueue:
			e.duplicate(p, o)
		case dataplane.ToIngress:
			p.dp, p.Size = o.Packet, o.Packet.Len()
			f = round
		case dataplane.ToScheduler:
			e.s.schedule(o, at)
		}
	}
	e.out = e.out[:base]
	return f
}

func (e *program) forget(p *Packet) {
	if p.dp != nil {
		e.take().Free(p.dp)
		e.done()
		p.dp = nil
	}
}

func (e *program) register(name string, dst []uint64) ([]uint64, error) {
	e.s.net.releaseSwitches()
	return e.sw.Registers().Cells(name, dst)
}

func (e *program) setRegister(name string, from, to int, value uint64) error {
	e.s.net.releaseSwitches()
	return e.sw.Registers().WriteRange(name, from, to, new(big.Int).SetUint64(value))
}

// Generate sends a packet from the packet generator of a Tofino, with a timer header. On other
// targets the packet comes from the controller.
func (s *Switch) Generate(bytes []byte) {
	e, ok := s.engine.(*program)
	if !ok || s.cellSize == 0 {
		s.PacketOut(bytes)
		return
	}
	s.GeneratePacket(dataplane.Generated{Port: e.sw.GeneratorPort(), App: generatorApp, Number: s.generated, Data: bytes})
	s.generated++
}

// GeneratePacket sends a packet of an application of the packet generator of a Tofino.
func (s *Switch) GeneratePacket(g dataplane.Generated) {
	e, ok := s.engine.(*program)
	if !ok {
		return
	}
	p := s.net.newPacket()
	p.Kind = Control
	s.net.releaseSwitches()
	p.dp = e.sw.Generate(g, s.Clock())
	p.Size = p.dp.Len()
	s.net.begin(p)
	p.from = s.cpu
	s.engine.ingress(p)
}

// generatorApp is the number of the packet generator application in manifests.
const generatorApp = 1
