package sim

import "time"

// FlowStats are what the transports of a flow count.
type FlowStats struct {
	Sent          int64 // packets with data
	Retransmitted int64 // of these, those with bytes that were sent before
	Recoveries    int64 // times that duplicate acknowledgments or a Nack had packets sent again
	Timeouts      int64

	// DupAcks counts the acknowledgments that acknowledge nothing while
	// something is outstanding; DupRun is the longest row of them.
	DupAcks, DupRun int64
	Nacks           int64 // DCQCN: received
	Notices         int64 // DCQCN: acknowledgments that tell of congestion

	// OutOfOrder counts packets that arrived before one that should come
	// first, and Degree is the distance of the farthest: by how many packets
	// it was ahead of the one expected, as RLB's out-of-order degree. Degrees
	// is the sum of the distances.
	OutOfOrder, Degree, Degrees int64
	// Overtaken counts packets that arrived after one sent later, and were not
	// sent again: what the network has reordered, whatever it lost (RFC 4737).
	Overtaken  int64
	Duplicates int64 // packets that brought no new byte
	Marked     int64 // packets that arrived with CE
	Received   int64 // bytes that have arrived, in order or not, once each

	// Acknowledged is when the sender knew that all has arrived; 0: not yet.
	// With it a flow takes at least a round trip, as definitions of slowdown
	// have it.
	Acknowledged time.Duration
}

// early counts a packet that is ahead of the next one expected by some bytes.
func (s *FlowStats) early(ahead, segment int64) {
	degree := (ahead + segment - 1) / segment
	s.OutOfOrder++
	s.Degrees += degree
	s.Degree = max(s.Degree, degree)
}
