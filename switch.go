package p4lb

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Switch runs a program on packets, like BMv2's simple_switch or a pipe of Tofino: parser,
// tables, registers, queues, clones and recirculation. Only Send and Advance advance its clock.
// It has no goroutines and needs no closing. It must not be used by several goroutines at once.
//
// A packet-out is a packet to the port of the controller, with the header that the program
// parses there; a packet-in is a packet that leaves by this port.
type Switch struct {
	Control
	engine  *dataplane.Engine
	now     time.Duration
	digests []Digest
	failed  error
}

// A Digest is a record that a program has sent to its controller: the name of its list of
// fields, such as the struct seen_t in digest<seen_t>, and the fields in their order, each in
// whole bytes.
type Digest struct {
	List string
	Data []byte
}

// A Packet is one that has left a switch.
type Packet struct {
	Port int
	Data []byte
}

// NewSwitch returns a switch that runs a program with empty tables. It configures the
// clone sessions that programs of load balancers need.
func NewSwitch(p *Program) (*Switch, error) {
	if p == nil {
		return nil, errors.New("a switch without a program: want one of Build, Compile or CompileFile")
	}
	s := &Switch{now: time.Second}
	sw, err := dataplane.New(p.compiled.Config, dataplane.Options{
		Digest: func(d dataplane.Digest) { s.digests = append(s.digests, Digest{d.List, slices.Clone(d.Data)}) },
		Ended:  func(e dataplane.Ended) { s.fail(fmt.Errorf("the program loops: %v", e)) },
	})
	if err != nil {
		return nil, err
	}
	s.Control, s.engine = newControl(sw), dataplane.NewEngine(sw)
	if p.built != nil {
		for _, c := range p.built.Manifest.CloneSessions {
			if c.PerPort {
				continue
			}
			if err := s.SetClone(c.Session, c.Port, c.Bytes); err != nil {
				return nil, fmt.Errorf("clone session %d: %w", c.Session, err)
			}
		}
	}
	return s, nil
}

// gap is the time between two packets of Send.
const gap = time.Millisecond

// maxPorts is the number of ports that the 9 bits of each architecture can express.
const maxPorts = 1 << 9

// Send delivers a packet to a port one millisecond after the previous event, runs the
// switch until its queues are empty, and returns the packets that left. If the port does not
// exist or the program recirculates or clones a packet without end, the packet is dropped and Err
// returns an error.
func (s *Switch) Send(port int, data []byte) []Packet {
	s.now += gap
	if port < 0 || port >= maxPorts {
		s.fail(fmt.Errorf("a packet to port %d: want a port from 0 to %d", port, maxPorts-1))
		return nil
	}
	list := packets(s.engine.Process(uint32(port), data, s.now))
	const most = 10000 // a packet may recirculate forever
	for range most {
		at, ok := s.engine.Next()
		if !ok {
			break
		}
		s.now = max(s.now, at)
		list = append(list, packets(s.engine.Run(s.now))...)
	}
	return list
}

// Err returns the first error of Send since the previous call of Err.
func (s *Switch) Err() error {
	err := s.failed
	s.failed = nil
	return err
}

func (s *Switch) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// Advance advances the clock.
func (s *Switch) Advance(d time.Duration) { s.now += max(0, d) }

// Now returns the time of the clock.
func (s *Switch) Now() time.Duration { return s.now }

// Digests returns the digests since the previous call.
func (s *Switch) Digests() []Digest {
	list := s.digests
	s.digests = nil
	return list
}

func packets(out []dataplane.Out) []Packet {
	return lists.Map(out, func(o dataplane.Out) Packet { return Packet{int(o.Port), slices.Clone(o.Data)} })
}
