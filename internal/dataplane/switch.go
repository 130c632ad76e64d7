package dataplane

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// A Switch is a program at work: simple_switch without clock, sockets and
// threads. All methods may be called from any goroutine; packets go through it
// one at a time, and a change from the control plane takes effect between two
// of them.
type Switch struct {
	mu   sync.Mutex
	opts Options
	prog *program.Program
	arch architecture
	// tofino is arch for a program for Tofino: what simple_switch has not.
	tofino *tofino

	headroom int
	passive  bool // what egress does depends on the headers alone

	fieldLists [][]listItem
	learnLists []*learnList

	pre     replication
	mirrors mirrors

	made   []byte // by the packet generator
	free   []*Packet
	spare  []storage
	now    time.Duration // of the last packet
	nextID uint64
	ended  uint64 // packets without a round left
}

// New links a program. The configuration must not change afterwards.
func New(c *bmv2.Config, o Options) (*Switch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Priorities == 0 && c.Meta != nil && c.Meta.FlowControl {
		o.Priorities = queuesPerPort // a queue can be paused without the others
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	env := program.Env{
		DropPort: o.DropPort, Closures: o.Closures, LeaveToGo: o.LeaveToGo, Random: o.Random, Log: o.Log, Trace: o.Trace,
		PortData: chips[c.Chip()].portData,
	}
	prog, err := program.New(c, env)
	if err != nil {
		return nil, err
	}
	s := &Switch{opts: o, prog: prog}
	s.arch = simple{s}
	if err := s.lists(c); err != nil {
		return nil, err
	}
	if prog.Tofino() {
		s.tofino = newTofino(s)
		s.arch = s.tofino
		return s, nil
	}
	s.headroom = prog.Deparser.Room() + 64
	s.passive = prog.Passive()
	return s, nil
}

// Config is the program that the switch runs.
func (s *Switch) Config() *bmv2.Config { return s.prog.Config }

// Options are what New needs beside the program. The zero value works.
type Options struct {
	// DropPort is the egress_spec that drops; 0 stands for 511.
	DropPort int
	// Priorities is the number of queues per port. 0 stands for 1, and for 16 if the
	// program pauses queues.
	Priorities int
	// Rounds is how often a packet, with all that becomes of it, may be
	// resubmitted, recirculated and cloned; 0 stands for DefaultRounds.
	Rounds int
	// Ended hears of packets that had no round left. It must not call the
	// Switch.
	Ended func(Ended)
	// Random draws uniformly from lo to hi, both included. Without it the
	// switch has a generator that always starts the same.
	Random func(lo, hi uint64) uint64
	// Loopback are the ports of Tofino that lead round to its ingress; nil
	// stands for those of the hardware, in each pipe 68 to 71 of Tofino 1 and 6
	// of Tofino 2.
	Loopback []uint32
	// CPU is the port of the copies that a program for Tofino makes for the
	// CPU; nil if there is none.
	CPU *uint32
	// Closures keeps the program from being compiled to machine code, where the
	// machine allows that: what it does is the same. A switch with Trace has
	// nothing compiled either.
	Closures bool
	// LeaveToGo has machine code return to Go for all that it may: each primitive,
	// condition, checksum and operation of a parser. It is slow, and for tests.
	LeaveToGo bool
	// Digest gets the digests, during Ingress. The record is valid until it
	// returns. It must not call the Switch.
	Digest func(Digest)
	// Dropped hears of every packet that goes no further, with the port where it
	// counts. It must not call the Switch.
	Dropped func(port uint32, why bmv2.DropReason)
	// Log gets the lines of log_msg and of failed assertions.
	Log func(line string)
	// Trace gets what happens to packets. It must not call the Switch.
	Trace func(Event)
}

const defaultDropPort = 511

func (o *Options) validate() error {
	if o.DropPort < 0 || o.Priorities < 0 || o.Priorities > 64 {
		return errors.New("the drop port is negative or the number of priorities outside 0..64")
	}
	if o.Rounds < 0 {
		return errors.New("the number of rounds is negative")
	}
	o.Rounds = cmp.Or(o.Rounds, DefaultRounds)
	o.DropPort = cmp.Or(o.DropPort, defaultDropPort)
	o.Priorities = cmp.Or(o.Priorities, 1)
	if o.Random == nil {
		o.Random = Uniform(rand.NewPCG(1, 1))
	}
	return nil
}

// Uniform draws from a range with the numbers of a source.
func Uniform(src rand.Source) func(lo, hi uint64) uint64 {
	r := rand.New(src)
	return func(lo, hi uint64) uint64 {
		if n := hi - lo + 1; n != 0 {
			return lo + r.Uint64N(n)
		}
		return r.Uint64()
	}
}
