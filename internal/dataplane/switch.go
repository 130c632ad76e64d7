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

// A Switch runs a program like simple_switch, without clock, sockets and
// threads. Any goroutine may call its methods. Packets pass one at a time, and
// control-plane changes take effect between two packets.
type Switch struct {
	mu   sync.Mutex
	opts Options
	prog *program.Program
	arch architecture
	// tofino is arch if the program is for Tofino, and otherwise nil.
	tofino *tofino

	headroom int
	passive  bool // egress depends only on the headers

	fieldLists [][]listItem
	learnLists []*learnList

	pre     replication
	mirrors mirrors

	made   []byte // the last generated packet
	free   []*Packet
	spare  []storage
	now    time.Duration // time of the last packet
	nextID uint64
	ended  uint64 // number of packets that ran out of rounds
	told   bool   // Endless has been called
	ends   bool   // Endless has returned true
}

// New links a program. The configuration must not change afterwards.
func New(c *bmv2.Config, o Options) (*Switch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Priorities == 0 && c.Meta != nil && c.Meta.FlowControl {
		o.Priorities = queuesPerPort // each queue can be paused separately
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

// Config returns the program of the switch.
func (s *Switch) Config() *bmv2.Config { return s.prog.Config }

// Options are the settings of New. The zero value works.
type Options struct {
	// DropPort is the egress_spec that drops; 0 means 511.
	DropPort int
	// Priorities is the number of queues per port. 0 means 1, or 16 if the program
	// pauses queues.
	Priorities int
	// Rounds limits the resubmissions, recirculations and clones of a packet
	// and everything derived from it; 0 means DefaultRounds.
	Rounds int
	// Ended is called with each packet that runs out of rounds. It must not
	// call the Switch.
	Ended func(Ended)
	// Endless is called once, with the first packet that is the last of many clones, each
	// a clone of the one before. If it returns true, such packets have no round left from
	// then on. It must not call the Switch.
	Endless func(Ended) (end bool)
	// Random draws uniformly from lo to hi, both included. The default is a
	// generator with a fixed seed.
	Random func(lo, hi uint64) uint64
	// Loopback lists the ports of Tofino that lead back to ingress; nil means
	// the ports of the hardware, in each pipe 68 to 71 of Tofino 1 and 6 of Tofino
	// 2.
	Loopback []uint32
	// Looped lists further ports of Tofino in loopback.
	Looped []uint32
	// CPU is the port of copies to the CPU in a program for Tofino; nil if
	// there is none.
	CPU *uint32
	// Closures disables machine code. Results are the same. A switch with Trace
	// has no machine code either.
	Closures bool
	// LeaveToGo makes machine code return to Go wherever it can: for each
	// primitive, condition, checksum and operation of a parser. It is slow, and
	// for tests.
	LeaveToGo bool
	// Digest is called with each digest, during Ingress. The record is valid
	// until Digest returns. It must not call the Switch.
	Digest func(Digest)
	// Dropped is called with the port and the reason of each drop. It must not
	// call the Switch.
	Dropped func(port uint32, why bmv2.DropReason)
	// Log is called with each line of log_msg and of failed assertions.
	Log func(line string)
	// Trace is called with the events of packets. It must not call the Switch, except
	// Readings and Registers().Now.
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

// Uniform returns a function that draws from a range with a source of numbers.
func Uniform(src rand.Source) func(lo, hi uint64) uint64 {
	r := rand.New(src)
	return func(lo, hi uint64) uint64 {
		if n := hi - lo + 1; n != 0 {
			return lo + r.Uint64N(n)
		}
		return r.Uint64()
	}
}
