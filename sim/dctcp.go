package sim

// A dctcp is what DCTCP adds to a TCP sender (RFC 8257): it estimates which
// share of the bytes met congestion, and takes off so much of the window.
type dctcp struct {
	alpha         float64
	acked, marked int64
	until         int64 // the end of the window that is being counted
	reduced       int64 // no second reduction before this is acknowledged
}

// congested takes in an acknowledgment for some bytes and its echo of
// congestion.
func (s *tcpSender) congested(bytes int64, echo bool) {
	d := &s.share
	d.acked += bytes
	if echo {
		d.marked += bytes
	}
	if s.una > d.until && d.acked > 0 {
		share := float64(d.marked) / float64(d.acked)
		d.alpha += s.t.Gain * (share - d.alpha)
		d.acked, d.marked, d.until = 0, 0, s.high
		if s.t.CutEachWindow && d.alpha > 0 {
			s.cut()
		}
	}
	switch {
	case !echo:
	case s.t.CutEachWindow:
		s.threshold = min(s.threshold, s.window)
	case s.una > d.reduced && s.phase != tcpRecovery:
		s.cut()
		d.reduced = s.high
	}
}

// cut takes off the window what the estimate says.
func (s *tcpSender) cut() {
	s.window = max(s.window-int64(float64(s.window)*s.share.alpha/2), 2*s.segment)
	s.threshold = s.window
	if !s.t.CutEachWindow {
		s.credit = 0
	}
}

// reducing reports whether the window must not grow by an acknowledgment: by RFC
// 8257 it does not where one echoes congestion, nor for the rest of a window of data
// of which one did.
func (s *tcpSender) reducing(a *Packet) bool {
	return s.ecn && !s.t.CutEachWindow && (a.Echo || s.una <= s.share.reduced)
}
