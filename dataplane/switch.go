package dataplane

import (
	"sync"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/program"
)

// A Switch is a program at work: simple_switch without clock, sockets and
// threads. All methods may be called from any goroutine; packets go through it
// one at a time, and a change from the control plane takes effect between two
// of them.
type Switch struct {
	mu   sync.Mutex
	opts Options
	prog *program.Program
	// tofino is set for a program for Tofino, which then runs it.
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
	if err := o.validate(); err != nil {
		return nil, err
	}
	env := program.Env{
		DropPort: o.DropPort, Closures: o.Closures, Random: o.Random, Log: o.Log, Trace: o.Trace,
		PortData: chips[c.Architecture()].portData,
	}
	prog, err := program.New(c, env)
	if err != nil {
		return nil, err
	}
	s := &Switch{opts: o, prog: prog}
	if err := s.lists(c); err != nil {
		return nil, err
	}
	if prog.Tofino() {
		s.tofino = newTofino(s)
		return s, nil
	}
	s.headroom = prog.Deparser.Room() + 64
	s.passive = prog.Passive()
	return s, nil
}

// Config is the program that the switch runs.
func (s *Switch) Config() *bmv2.Config { return s.prog.Config }
