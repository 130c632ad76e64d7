package dataplane

// A deparser of Tofino 2 can pause and resume a queue of the traffic manager, by the
// field adv_flow_ctl of its metadata. From the highest bit on, the message holds
//
//	1 bit    the message is valid
//	2 bits   pipe of the port
//	4 bits   port group: 8 ports
//	3 bits   unused
//	7 bits   queue of the port group: 16 for each port
//	15 bits  credit
//
// The queue is in the mode XOFF: a credit other than 0 pauses it, and 0 resumes it. The
// mode CREDIT, which counts credits, is not implemented. ConWeave's public programs
// describe the format and the mode.

// queuesPerPort is the number of queues of a port of Tofino 2.
const queuesPerPort = 16

// schedule adds the scheduler request of a half's deparser to the outcomes. A request of ingress
// takes effect before its own packet is queued.
func (t *tofino) schedule(g *gress, p *Packet, out []Outcome) []Outcome {
	m := uint32(g.flowControl.Get(p.st.W))
	if m>>31 == 0 {
		return out
	}
	pipe, group, queue, credit := m>>29&3, m>>25&15, m>>15&127, m&0x7fff
	port := pipe<<7 | group<<3 | queue/queuesPerPort
	return append(out, Outcome{
		Kind: ToScheduler, Port: port, Queue: uint8(queue % queuesPerPort), Priority: min(int(queue%queuesPerPort), t.sw.opts.Priorities-1), Pause: credit != 0,
	})
}
