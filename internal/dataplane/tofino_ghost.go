package dataplane

import (
	"errors"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A ghost is the third thread of Tofino 2's pipes. It has no packets: the
// traffic manager tells it how long a queue is whenever that changes, and what
// it writes to registers ingress reads.
//
// The hardware has two copies of such registers, because both threads access
// them in the same cycle: by the bit ping_pong, which keeps changing, the ghost
// thread updates one while ingress reads the other. The compiler makes the
// copies and the conditions. Here nothing happens in the same cycle. A program
// that does not look at the bit has one copy, which is always up to date. One
// that does is run for both values, so that both its copies are; ingress sees
// the bit as 0.
type ghost struct {
	control *program.Pipeline
	copies  uint64 // values that ping_pong takes

	pingPong, length, queue, pipe program.StdField
	// message takes the place of a packet in the control.
	message vector.State
}

// newGhost makes the thread that runs a control.
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

// tells reports whether a packet to or from a queue runs a ghost thread.
func (t *tofino) tells(p *Packet) bool { return t.at(p.egressPort).ghost != nil }

// enqueued notes when and where a packet was queued, and runs the ghost thread.
func (t *tofino) enqueued(p *Packet, depth int, now time.Duration) {
	p.tm.enqTime, p.tm.enqDepth = now, depth
	if t.tells(p) {
		t.tell(p, depth+t.sw.cells(p), now)
	}
}

// queuesOfPort is how many queues a port has by the numbers of QueueNumber.
const queuesOfPort = 4

// QueueNumber is the number by which the ghost thread knows a queue of a port.
// On hardware it is the traffic manager's, of 2048 in a pipe, and depends on how
// the queues of the ports are configured. Here one pipe stands for all, and each
// of the 512 ports has four; its further queues go by the number of the fourth.
// The last number belongs to port 511, which leads nowhere.
func QueueNumber(port uint32, priority int) int {
	return int(port)*queuesOfPort + min(priority, queuesOfPort-1)
}

// tell runs the control because the queue that p goes to or comes from is now
// so many cells long. No packet is under way meanwhile.
func (t *tofino) tell(p *Packet, length int, now time.Duration) {
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

// RunGhost tells the ghost thread of pipe 0 that a queue has so many cells, as
// the traffic manager does by itself.
func (s *Switch) RunGhost(queue, length int, now time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tofino == nil || s.tofino.at(0).ghost == nil {
		return errors.New("the program has no ghost thread")
	}
	s.tofino.runGhost(s.tofino.at(0).ghost, 0, queue, length, 0, now)
	return nil
}
