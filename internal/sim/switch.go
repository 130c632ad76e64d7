package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Port returns the port with a number, or nil.
func (s *Switch) Port(number int) *Port {
	if number < 0 || number >= len(s.ports) {
		return nil
	}
	return s.ports[number]
}

// Ports returns the ports that have a link, by number.
func (s *Switch) Ports() []*Port {
	var list []*Port
	for _, o := range s.ports {
		if o != nil && o.link != nil {
			list = append(list, o)
		}
	}
	return list
}

// Counters returns the counters of the switch.
func (s *Switch) Counters() switchCounters { return s.count }

// Buffered returns the number of bytes that wait in the switch.
func (s *Switch) Buffered() int { return s.used }

// OnPacketIn sets the function that receives packets to the controller. The bytes are valid until
// it returns.
func (s *Switch) OnPacketIn(f func(port int, bytes []byte)) { s.packetIn = f }

// PacketOut makes a packet of the controller arrive at the CPU port.
func (s *Switch) PacketOut(bytes []byte) { s.arrive(s.cpu, bytes) }

// PacketAt makes a packet of the controller arrive at a port that has a link.
func (s *Switch) PacketAt(port int, bytes []byte) error {
	o := s.Port(port)
	if o == nil || o.link == nil {
		return fmt.Errorf("%s has no link at port %d", s.Name, port)
	}
	s.arrive(o, bytes)
	return nil
}

func (s *Switch) arrive(at *Port, bytes []byte) {
	p := s.net.newPacket()
	p.Kind = Control
	p.head = append(p.head, bytes...)
	p.Size = len(bytes)
	s.net.begin(p)
	p.from = at
	s.engine.ingress(p)
}

// Later calls f at the current time, after the current event.
func (s *Switch) Later(f func()) {
	if s.net.placed() {
		s.net.deferCall(s.cpu.place, f)
		return
	}
	s.net.At(s.net.now, f)
}

// tell passes a packet to the controller.
func (s *Switch) tell(bytes []byte) {
	if !s.net.placed() {
		s.net.callUser(func() { s.packetIn(s.cpu.Number, bytes) })
		return
	}
	bytes = slices.Clone(bytes)
	s.net.deferCall(s.cpu.place, func() { s.packetIn(s.cpu.Number, bytes) })
}

// ReadRegister appends the cells of a register of the program to dst. It also works if the switch
// runs the model.
func (s *Switch) ReadRegister(name string, dst []uint64) ([]uint64, error) {
	return s.engine.register(name, dst)
}

// WriteRegister sets the cells from ≤ i < to. A model accepts only registers that a controller
// has to write.
func (s *Switch) WriteRegister(name string, from, to int, value uint64) error {
	return s.engine.setRegister(name, from, to, value)
}

// receive handles a packet that arrives from a link.
func (s *Switch) receive(p *Packet, o *Port) {
	s.net.hops++
	s.count.Received++
	p.from = o
	if s.faults != nil {
		if why, hit := s.faults.drop(p); hit {
			s.net.lose(p, why)
			return
		}
	}
	s.engine.ingress(p)
}

// end ends a packet that is in no queue and on no link.
func (s *Switch) end(p *Packet, why Reason) {
	s.engine.forget(p)
	s.net.lose(p, why)
}

// drop ends a packet that the engine drops.
func (s *Switch) drop(p *Packet) {
	if p.Kind == Control {
		s.end(p, consumed)
	} else {
		s.end(p, Program)
	}
}

// copyOf makes a copy of a packet with the given size.
func (s *Switch) copyOf(p *Packet, size int) *Packet {
	c := s.net.newPacket()
	c.Kind, c.Size = Control, size
	s.net.begin(c)
	s.count.Copies++
	s.count.CopyBytes += int64(size)
	return c
}

// enqueue appends a packet to the queue of the port with a number.
func (s *Switch) enqueue(p *Packet, number int) {
	if number == s.cpu.Number {
		s.toController(p)
		return
	}
	o := s.Port(number)
	if o == nil {
		s.count.NoPort++
		s.end(p, noPort)
		return
	}
	s.enqueueAt(p, o)
}

// enqueueAt appends a packet to the queue of a port, if there is room.
func (s *Switch) enqueueAt(p *Packet, o *Port) {
	if s.net.urgent(p) {
		if p.Kind == data && p.Trimmed != notTrimmed && s.net.opts.TrimmableDSCP > 0 && !o.takesHeaders(p.Size) {
			o.count.Dropped++
			o.count.DroppedBytes += int64(p.Size)
			s.end(p, QueueFull)
			return
		}
		s.engine.enqueued(p, o, s.depth(o))
		o.acceptUrgent(p)
		return
	}
	if why, ok := s.admit(p, o); !ok && (why != QueueFull || !s.trimNewest(p, o)) {
		if s.trim(p, o) {
			return
		}
		o.count.Dropped++
		o.count.DroppedBytes += int64(p.Size)
		s.end(p, why)
		return
	}
	s.engine.enqueued(p, o, s.depth(o))
	if p.ECT && !p.CE && !s.net.opts.ECN.Dequeue && s.marks(o, int(o.bytes-o.held)+p.Size) {
		p.mark = true
		o.count.Marked++
	}
	s.charge(p)
	o.accept(p)
}

// depth returns the queue length as programs count it: in packets of full length, or in cells. A
// cell holds bytes of only one packet.
func (s *Switch) depth(o *Port) int {
	if s.cellSize > 0 {
		return int(o.cells)
	}
	frame := s.net.frame()
	packets := (int(o.bytes) + frame - 1) / frame
	if o.rateShare != 1 {
		return int(float32(packets) / o.rateShare)
	}
	return packets
}

// cellsOf returns the number of cells that a packet occupies.
func (s *Switch) cellsOf(bytes int) int32 {
	if s.cellSize == 0 {
		return 0
	}
	return int32((bytes + s.cellSize - 1) / s.cellSize)
}

// uptime is how long a Tofino has been running when a run begins. Programs for Tofino read a
// register value of 0 as the time of power-on. Without this offset, new flows at the start of a
// run would look like known ones.
const uptime = time.Second

// run sets the engine of the switch.
func (s *Switch) run(e engine) {
	s.engine, s.cellSize = e, e.cell()
	s.up = time.Duration(slices.Index(s.net.whole.switches, s)) * s.net.opts.ClockStep
	if s.cellSize > 0 {
		s.up += uptime
	}
}

// Clock returns the current time of the switch's timestamps.
func (s *Switch) Clock() time.Duration { return s.net.now + s.up }

// SetCPU changes the number of the port to the controller.
func (s *Switch) SetCPU(number int) { s.cpu.Number = number }

// scale scales a port's limits by the rate of its link: see Options.Scaled.
func (o *Port) scale() {
	if !o.net.opts.Scaled || o.sw == nil || o.peer.sw == nil {
		return
	}
	o.rateShare = min(1, float32(o.rate)/float32(o.net.fastest))
	o.limit = int32(float32(o.fullLimit) * o.rateShare)
}

// marks decides whether to mark a packet, given the queue length. It implements RED without
// averaging, as switches do for DCTCP and DCQCN.
func (s *Switch) marks(o *Port, bytes int) bool {
	e := s.net.opts.ECN
	if e.Fabric && o.peer != nil && o.peer.host != nil {
		return false
	}
	if o.rateShare != 1 {
		e.Min, e.Max = fabric.Size(float32(e.Min)*o.rateShare), fabric.Size(float32(e.Max)*o.rateShare)
	}
	b := fabric.Size(bytes)
	if s.net.opts.PFC.Promised {
		b -= fabric.Size(s.net.frame())
	}
	switch {
	case e.Max == 0 || b <= e.Min:
		return false
	case b > e.Max || e.Min == e.Max:
		return true
	}
	return s.random.Float64() < e.P*float64(b-e.Min)/float64(e.Max-e.Min)
}

// depart handles a packet that leaves the queue of a port.
func (s *Switch) depart(p *Packet, o *Port) {
	s.discharge(p)
	late := false
	if s.net.opts.ECN.Dequeue && p.ECT && !p.CE && !s.net.urgent(p) {
		late = s.net.opts.UntilSent && o.delay > 0
		if !late && s.marks(o, int(o.bytes-o.held)) {
			p.mark = true
			o.count.Marked++
		}
	}
	switch s.engine.egress(p, o, s.depth(o)) {
	case gone:
		s.drop(p)
	case round:
		if o.link != nil {
			o = s.loop
		}
		o.transmit(p)
	default:
		if o.link == nil {
			s.count.NoPort++
			s.end(p, noPort)
			return
		}
		if p.mark {
			p.mark, p.CE = false, true
			if s.net.bytes {
				markBytes(p.head)
			}
		}
		o.transmit(p)
		if late && !o.down {
			o.unmarked = p
		}
	}
}

// markSent decides the mark of the packet that the port has just sent. If the port serves its
// queue later than that, the queue was empty.
func (o *Port) markSent() {
	p := o.unmarked
	o.unmarked = nil
	if o.net.now > o.free || !o.sw.marks(o, int(o.bytes-o.held)) {
		return
	}
	o.count.Marked++
	p.CE = true
	if o.net.bytes {
		markBytes(p.head)
	}
}

// toController passes a packet through egress at once: the path to the controller has no queue
// and no rate.
func (s *Switch) toController(p *Packet) {
	s.engine.enqueued(p, s.cpu, 0)
	switch s.engine.egress(p, s.cpu, 0) {
	case gone:
		s.drop(p)
	case round:
		s.loop.transmit(p)
	default:
		if s.packetIn != nil {
			s.tell(p.head)
		}
		s.end(p, consumed)
	}
}

// idle is the engine of a switch without a program or model.
type idle struct{ s *Switch }

func (e idle) ingress(p *Packet)             { e.s.net.lose(p, noProgram) }
func (idle) enqueued(*Packet, *Port, int)    {}
func (idle) paused(*Port, bool)              {}
func (idle) cell() int                       { return 0 }
func (idle) egress(*Packet, *Port, int) fate { return gone }
func (idle) forget(*Packet)                  {}
func (idle) cut(*Packet, int)                {}
func (e idle) register(name string, dst []uint64) ([]uint64, error) {
	return dst, errNoProgram(e.s.Name)
}
func (e idle) setRegister(string, int, int, uint64) error { return errNoProgram(e.s.Name) }

func errNoProgram(name string) error {
	return fmt.Errorf("switch %s has neither program nor model", name)
}

// drop decides whether a fault drops an arriving packet.
func (f *faults) drop(p *Packet) (Reason, bool) {
	if len(f.holes) > 0 && f.holes[[2]*Host{p.Src, p.Dst}] {
		return BlackHole, true
	}
	if f.share > 0 && f.random.Float64() < f.share {
		return Silent, true
	}
	return 0, false
}
