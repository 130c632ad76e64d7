package dataplane

import (
	"errors"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A ghost is the third thread of a pipe of Tofino 2. It has no packets. The
// traffic manager reports each change of a queue's length to it, and it writes
// registers that ingress reads.
//
// The hardware has two copies of these registers, because both threads access
// them in the same cycle. The bit ping_pong alternates: the ghost thread
// updates one copy while ingress reads the other. The compiler creates the
// copies and the conditions.
//
// Here nothing happens in the same cycle. A program that ignores the bit has
// one copy, which is always up to date. A program that reads the bit runs for
// both values, so that both copies are up to date, and ingress sees the bit as
// 0.
type ghost struct {
	control *program.Pipeline
	copies  uint64 // values of ping_pong

	pingPong, length, queue, pipe program.StdField
	// message replaces the packet while the ghost thread's control runs.
	message vector.State
}

// newGhost returns the thread that runs a control.
func newGhost(s *program.Program, c *bmv2.Pipeline) *ghost {
	g := &ghost{control: s.Controls[c.Name], copies: 1}
	if c.PingPong {
		g.copies = 2
	}
	g.pingPong.Find(s.Layout, "gh_intr_md", "ping_pong")
	g.length.Find(s.Layout, "gh_intr_md", "qlength")
	g.queue.Find(s.Layout, "gh_intr_md", "qid")
	g.pipe.Find(s.Layout, "gh_intr_md", "pipe_id")
	return g
}

// hasGhost reports whether a packet that enters or leaves a queue runs a ghost
// thread.
func (t *tofino) hasGhost(p *Packet) bool { return t.at(p.egressPort).ghost != nil }

// enqueued records the time and the queue of a packet, and runs the ghost thread.
func (t *tofino) enqueued(p *Packet, depth int, now time.Duration) {
	p.tm.enqTime, p.tm.enqDepth = now, depth
	if t.hasGhost(p) {
		t.notify(p, depth+t.sw.cells(p), now)
	}
}

// queuesOfPort is the number of queues of a port in QueueNumber.
const queuesOfPort = 4

// QueueNumber returns the number of a queue of a port for the ghost thread. On
// hardware it is the traffic manager's number, from 2,048 per pipe, and depends on
// the configuration of the ports' queues. Here one pipe has all 512 ports with four
// queues each; further queues share the number of the fourth. The last number
// belongs to port 511, to which nothing is connected.
func QueueNumber(port uint32, priority int) int {
	return int(port)*queuesOfPort + min(priority, queuesOfPort-1)
}

// notify runs the control after a change of the queue that p enters or leaves,
// with its length in cells. No packet is being processed.
func (t *tofino) notify(p *Packet, length int, now time.Duration) {
	g := t.at(p.egressPort).ghost
	t.runGhost(g, p.st.ID, QueueNumber(p.egressPort, p.priority), length, p.egressPort/(devPorts/pipes), now)
}

func (t *tofino) runGhost(g *ghost, id uint64, queue, length int, pipe uint32, now time.Duration) {
	for bit := range g.copies {
		clear(t.words)
		g.message = vector.State{Scratch: &t.sw.prog.Scratch, W: t.words, ID: id, Now: now}
		m := &g.message
		g.pingPong.Put(m.W, bit)
		g.length.Put(m.W, uint64(length))
		g.queue.Put(m.W, uint64(queue))
		g.pipe.Put(m.W, uint64(pipe))
		g.control.Apply(t.sw.prog, m)
	}
}

// RunGhost reports the length of a queue in cells to the ghost thread of pipe
// 0, as the traffic manager does.
func (s *Switch) RunGhost(queue, length int, now time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tofino == nil || s.tofino.at(0).ghost == nil {
		return errors.New("the program has no ghost thread")
	}
	s.tofino.runGhost(s.tofino.at(0).ghost, 0, queue, length, 0, now)
	return nil
}
