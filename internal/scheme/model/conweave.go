package model

import "time"

// ConWeave (Song et al., SIGCOMM 2023) moves a flow to another path while it sends, and
// restores the order of its packets in the last switch.
//
// The source ToR divides a flow into epochs. The first packet of an epoch carries an
// RTT_REQUEST, and the destination ToR answers it. If the answer misses the cut-off
// theta_reply, the next packet is the TAIL on the old path, and all later packets of the
// epoch are REROUTED. The destination ToR holds REROUTED packets in a queue of the flow
// until the TAIL arrives, or until the time at which the TAIL should have arrived, plus
// theta_resume_extra. It answers the TAIL with CLEAR, which ends the epoch. A flow that
// pauses for theta_inactive also begins an epoch.
//
// At most two paths are in use by a flow at a time: it does not move again before CLEAR.
//
// A ConWeave contains the constants, named as in the paper. Times are in ns.
type ConWeave struct {
	Reply    int64 // theta_reply, in addition to the round-trip time without queueing
	PathBusy int64 // theta_path_busy: how long a marked path is avoided
	Resume   int64 // theta_resume_extra
	Inactive int64 // theta_inactive
	Wait     int64 // replaces the estimate before Resume, if no packet of the epoch took the old path
	Queues   int   // number of queues per port for reordering
}

// Set sets a constant by its name in the catalogue. It returns false for other names.
func (c *ConWeave) Set(name string, number int64) bool {
	switch name {
	case "reply":
		c.Reply = number
	case "busy":
		c.PathBusy = number
	case "resume":
		c.Resume = number
	case "inactive":
		c.Inactive = number
	case "wait":
		c.Wait = number
	case "queues":
		c.Queues = int(number)
	default:
		return false
	}
	return true
}

// A WovenPath lists the slots of a path: one byte per switch, the first switch in
// the lowest byte.
type WovenPath uint32

// WovenHops is the largest number of switches in a path.
const WovenHops = 4

// Slot returns the slot in the switch at a hop, counted from 0.
func (p WovenPath) Slot(hop int) int { return int(p >> (8 * hop) & 0xFF) }

// With returns the path with a slot for a hop.
func (p WovenPath) With(hop, slot int) WovenPath { return p | WovenPath(slot)<<(8*hop) }

// A WovenHeader is the header that the source ToR adds to a packet. Its times are by the source
// ToR's clock.
type WovenHeader struct {
	Path     WovenPath
	Epoch    uint32
	Request  bool  // RTT_REQUEST
	Tail     bool  // TAIL
	Rerouted bool  // REROUTED
	Sent     int64 // TX_TSTAMP
	TailSent int64 // TAIL_TX_TSTAMP: when the TAIL was sent; set in the TAIL and in REROUTED packets
}

// A leafPath is a path to a leaf.
type leafPath[Leaf comparable] struct {
	Leaf Leaf
	Path WovenPath
}

// A WovenSource is ConWeave in the source ToR.
type WovenSource[Leaf comparable] struct {
	ConWeave
	flows table[sourceFlow]
	busy  map[leafPath[Leaf]]int64 // by path: the time until which it counts as busy
}

// never is the cut-off time of a flow that waits for no reply. It is later than
// every packet.
const never = int64(1<<63 - 1)

// A sourceFlow is the state of a flow in the source ToR.
type sourceFlow struct {
	active   int64 // time of the last packet
	cutoff   int64 // cut-off time of the reply
	tailSent int64
	epoch    uint32
	path     WovenPath
	answered bool // the next packet begins an epoch
	rerouted bool
}

// Send returns the header for a packet of a flow. rtt is the round-trip time without queueing.
// draw returns a random path to the leaf. Send calls it only if the flow may move.
func (s *WovenSource[Leaf]) Send(f Flow, to Leaf, now, rtt int64, draw func() WovenPath) WovenHeader {
	state, fresh := s.flows.of(f, now, keptSource)
	expired := fresh || now > state.active+s.Inactive
	begins := expired || state.answered
	state.active, state.answered = now, false
	h := WovenHeader{Sent: now}
	switch {
	case begins:
		state.epoch++
		state.cutoff, state.tailSent, state.rerouted = now+rtt+s.Reply, 0, false
		h.Request = true
	case state.cutoff < now:
		state.cutoff, state.tailSent = never, now
		h.Tail = true
	}
	if expired {
		s.move(state, to, now, fresh, draw)
	}
	h.Path, h.Epoch, h.Rerouted, h.TailSent = state.path, state.epoch, state.rerouted, state.tailSent
	if h.Tail { // later packets take the new path
		state.rerouted = true
		s.move(state, to, now, false, draw)
	}
	return h
}

// move assigns the flow the first of two random paths that is not busy. If both are busy, the
// flow keeps its path, or with must takes the first of the two.
func (s *WovenSource[Leaf]) move(state *sourceFlow, to Leaf, now int64, must bool, draw func() WovenPath) {
	for i := range 2 {
		path := draw()
		if i == 0 && must {
			state.path = path
		}
		if s.busy[leafPath[Leaf]{to, path}] <= now {
			state.path = path
			return
		}
	}
}

// TakeReply processes the answer to the RTT_REQUEST of an epoch. A late answer has no effect.
func (s *WovenSource[Leaf]) TakeReply(f Flow, epoch uint32, now int64) {
	if state := s.flows.get(f); state != nil && state.epoch == epoch && !state.rerouted && now < state.cutoff && state.cutoff != never {
		state.answered, state.cutoff = true, never
	}
}

// TakeClear processes the answer to the TAIL of an epoch.
func (s *WovenSource[Leaf]) TakeClear(f Flow, epoch uint32) {
	if state := s.flows.get(f); state != nil && state.epoch == epoch && state.rerouted {
		state.answered, state.cutoff = true, never
	}
}

// TakeNotify records that a packet was marked on a path to a leaf.
func (s *WovenSource[Leaf]) TakeNotify(to Leaf, path WovenPath, now int64) {
	if s.busy == nil {
		s.busy = map[leafPath[Leaf]]int64{}
	}
	s.busy[leafPath[Leaf]{to, path}] = now + s.PathBusy
}

// A WovenSink is ConWeave in the destination ToR.
type WovenSink struct {
	ConWeave
	flows table[sinkFlow]
}

// A sinkFlow is the state of a flow in the destination ToR.
type sinkFlow struct {
	active   int64
	oldSent  int64 // TX_TSTAMP of the last packet on the old path
	oldCame  int64 // its arrival time
	tailSent int64
	epoch    uint32
	old      bool // a packet of the epoch took the old path
	tailed   bool // the epoch's TAIL has arrived, or its queue was resumed
	holding  bool
}

// An Arrival lists the actions of the destination ToR for a packet.
type Arrival struct {
	Before   bool  // resume the flow's queue first
	Hold     bool  // append the packet to that queue
	After    bool  // resume the queue after the packet
	Deadline int64 // resume the queue at this time; 0: no change

	Reply, Clear, Notify bool // answers to send
}

// Take decides about a packet with a header. marked reports whether the packet has CE. room
// reports whether a free queue is left for a flow without a queue.
func (s *WovenSink) Take(f Flow, h *WovenHeader, marked, room bool, now int64) (a Arrival) {
	state, fresh := s.flows.of(f, now, keptSink)
	state.active = now
	if !fresh && h.Epoch < state.epoch {
		return a
	}
	if fresh || h.Epoch > state.epoch {
		a.Before, state.holding = state.holding, false
		state.epoch, state.old, state.tailed = h.Epoch, false, false
	}
	a.Reply, a.Clear, a.Notify = h.Request, h.Tail, marked
	if h.Tail || h.Rerouted {
		state.tailSent = h.TailSent
	}
	if h.Rerouted {
		s.takeRerouted(state, &a, room, now)
		return a
	}
	state.oldSent, state.oldCame, state.old = h.Sent, now, true
	switch {
	case h.Tail:
		a.After = state.holding
		state.holding, state.tailed = false, true
	case state.holding:
		a.Deadline = s.estimate(state, now)
	}
	return a
}

// takeRerouted decides about a packet on the new path.
func (s *WovenSink) takeRerouted(state *sinkFlow, a *Arrival, room bool, now int64) {
	switch {
	case state.tailed:
	case state.holding:
		a.Hold = true
	case room:
		state.holding, a.Hold = true, true
		a.Deadline = s.estimate(state, now)
	}
}

// estimate returns the time at which to resume the queue of a flow. It assumes that
// the TAIL arrives as long after the last packet on the old path as it was sent
// after it.
func (s *WovenSink) estimate(state *sinkFlow, now int64) int64 {
	if !state.old {
		return now + s.Wait + s.Resume
	}
	return max(now, state.oldCame+max(0, state.tailSent-state.oldSent)+s.Resume)
}

// Resumed records that the deadline of a flow's queue has passed.
func (s *WovenSink) Resumed(f Flow) {
	if state := s.flows.get(f); state != nil {
		state.holding, state.tailed = false, true
	}
}

// Idle times after which the ToRs forget a flow. A flow that the source has forgotten restarts
// with epoch 1, so the destination must forget it first.
const (
	keptSink   = int64(2 * time.Millisecond)
	keptSource = 2 * keptSink
)

// A table holds the states of flows. It removes flows that have been idle.
type table[State aged] struct {
	flows map[Flow]*State
	most  int // number of flows at which it next looks for idle ones
}

// An aged state knows when it was last used.
type aged interface {
	sourceFlow | sinkFlow
	lastActive() int64
	waits() bool
}

func (s sourceFlow) lastActive() int64 { return s.active }
func (s sinkFlow) lastActive() int64   { return s.active }
func (s sourceFlow) waits() bool       { return false }
func (s sinkFlow) waits() bool         { return s.holding }

// smallTable is the number of flows up to which no flow is removed.
const smallTable = 1024

// get returns the state of a flow, or nil.
func (t *table[State]) get(f Flow) *State { return t.flows[f] }

// of returns the state of a flow, and whether it is new.
func (t *table[State]) of(f Flow, now, kept int64) (s *State, fresh bool) {
	if s = t.flows[f]; s != nil {
		if now-(*s).lastActive() <= kept || (*s).waits() {
			return s, false
		}
		*s = *new(State)
		return s, true
	}
	if t.flows == nil {
		t.flows, t.most = map[Flow]*State{}, smallTable
	}
	if len(t.flows) >= t.most {
		for f, s := range t.flows {
			if now-(*s).lastActive() > kept && !(*s).waits() {
				delete(t.flows, f)
			}
		}
		t.most = max(smallTable, 2*len(t.flows))
	}
	s = new(State)
	t.flows[f] = s
	return s, true
}
