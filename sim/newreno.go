package sim

import "time"

// withoutSACK is what an acknowledgment says of losses where it has no more than its
// number: duplicates count, and each that is of a part of what was outstanding tells
// of one more segment (RFC 6582). So a round trip repairs one loss.
func (s *tcpSender) withoutSACK(now time.Duration, acked, flight int64) {
	switch {
	case acked > 0 && s.phase == tcpRecovery:
		s.window -= min(s.window, acked)
		if acked >= s.segment {
			s.window += s.segment
		}
		s.repeat, s.lost, s.first = s.una, min(s.una+s.segment, s.high), true
	case acked != 0 || flight == 0:
	case s.phase == tcpRecovery:
		s.window = min(s.window+s.segment, s.t.MaxWindow) // for what has left the network
	case s.phase == tcpOpen:
		if s.dup++; s.dup == s.patience {
			s.recovery(now, s.una)
			s.window += int64(s.patience) * s.segment
			s.rescued = true // nothing is sent again but by partial acknowledgments
		}
	}
}

// deflate ends fast recovery without SACK: what duplicates have added to the window
// goes, and no burst follows.
func (s *tcpSender) deflate() {
	s.window = min(s.threshold, max(s.high-s.una, s.segment)+s.segment)
}
