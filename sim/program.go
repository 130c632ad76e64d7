package sim

import (
	"math/big"

	"github.com/p4lb/p4lb/dataplane"
)

// program is the engine that runs a P4 program.
type program struct {
	s  *Switch
	sw *dataplane.Switch
	// park is the length of the queue, as the program counts it, behind which
	// packets are made small.
	park int
	// out is a stack: what egress makes of one packet may send others through
	// egress before the rest is looked at.
	out []dataplane.Outcome
}

// Random is the source of random numbers that the program or model of a switch
// is to draw from, so that a run is determined by its seed, and both draw the
// same.
func Random(seed uint64, switchName string) func(lo, hi uint64) uint64 {
	r := Stream(seed, "switch/"+switchName)
	return func(lo, hi uint64) uint64 {
		if n := hi - lo + 1; n != 0 {
			return lo + r.Uint64N(n)
		}
		return r.Uint64()
	}
}

// Load lets the switch run a program. Nothing may wait in the switch.
func (s *Switch) Load(sw *dataplane.Switch) {
	e := &program{s: s, sw: sw, park: parkBehind}
	if cell := sw.CellSize(); cell > 0 {
		e.park = parkBehind * s.net.frame() / cell
	}
	s.run(e)
	s.net.bytes = true
}

func (e *program) ingress(p *Packet) {
	s := e.s
	now := s.Clock()
	base := len(e.out)
	if p.dp == nil {
		p.dp, e.out = e.sw.Arrive(uint32(p.from.Number), p.head, p.extra, now, e.out)
	} else {
		e.out = e.sw.Ingress(p.dp, now, e.out)
	}
	dp := p.dp
	alive := false
	for i := base; i < len(e.out); i++ {
		o := e.out[i]
		switch {
		case o.Kind == dataplane.ToIngress: // resubmitted
			alive, p.dp = true, o.Packet
			s.loop.transmit(p)
		case o.Packet == dp:
			alive = true
			p.Size = dp.Len()
			s.enqueue(p, int(o.Port))
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

// duplicate queues a copy that the program has made of a packet.
func (e *program) duplicate(p *Packet, o dataplane.Outcome) {
	c := e.s.copyOf(p, o.Packet.Len())
	c.dp = o.Packet
	e.s.enqueue(c, int(o.Port))
}

// parkBehind is how many packets wait before one that is made small: those that
// leave soon are not worth the work.
const parkBehind = 8

func (e *program) enqueued(p *Packet, _ *Port, depth int) {
	e.sw.Enqueued(p.dp, depth, e.s.Clock())
	if depth >= e.park {
		e.sw.Park(p.dp)
	}
}

func (e *program) cell() int { return e.sw.CellSize() }

func (e *program) egress(p *Packet, _ *Port, depth int) fate {
	dp, base := p.dp, len(e.out)
	p.dp = nil
	f, extra := gone, 0
	p.head, extra, e.out = e.sw.Leave(dp, depth, e.s.Clock(), p.head, e.out)
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
		}
	}
	e.out = e.out[:base]
	return f
}

func (e *program) forget(p *Packet) {
	if p.dp != nil {
		e.sw.Free(p.dp)
		p.dp = nil
	}
}

func (e *program) register(name string, dst []uint64) ([]uint64, error) {
	return e.sw.RegisterCells(name, dst)
}

func (e *program) setRegister(name string, from, to int, value uint64) error {
	return e.sw.RegisterWriteRange(name, from, to, new(big.Int).SetUint64(value))
}
