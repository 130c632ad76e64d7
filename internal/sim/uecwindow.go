package sim

import (
	"cmp"
	"time"
)

// A window is the congestion window of an Ultra Ethernet sender. With NSCC, an acknowledgment has
// one of four effects, depending on its mark and its queueing delay:
//
//	               delay below target     delay above target
//	not marked     proportional increase  fair increase
//	marked         none                   multiplicative decrease
//
// Increases accumulate in gain and take effect once per base RTT or per eight packets. If few
// bytes arrive in a round while the delay is long or packets are trimmed, quick adapt sets the
// window to the bytes that arrived. It then ignores the answers to packets that were in flight.
//
// Comments give the names of the specification. Times are in nanoseconds.
type window struct {
	*windowLaw

	size, most int64         // in bytes
	base       time.Duration // base_rtt

	gain      float64       // inc_bytes
	since     int64         // bytes since gain last took effect
	adjusted  time.Duration // when gain last took effect
	delay     time.Duration // avg_delay
	decreased time.Duration // time of the last decrease
	quiet     int64         // consecutive bytes with almost no delay: fi_count
	rushing   bool          // fast increase is active

	achieved          int64 // bytes that arrived in this round
	roundEnds         time.Duration
	ignored, toIgnore int64
	trigger           bool // a packet was trimmed or lost
}

const (
	referenceRTT  = 12 * time.Microsecond
	referenceLine = 100.0 / 8 // bytes per ns
	delayWeight   = 0.0125
	noDelay       = time.Microsecond
	adjustPackets = 8
	quickShare    = 8 // quick adapt if less than this fraction of the window has arrived
	quickDelay    = 4 // or if the delay exceeds this multiple of the target
)

// newWindowLaw returns the constants for a NIC that sends rate bit/s.
func newWindowLaw(t *Tuning, rate int64) *windowLaw {
	u, segment := &t.UEC, float64(t.Segment)
	w := &windowLaw{control: u.Control, line: float64(rate) / 8e9, packet: int64(t.Segment + u.Headers), network: u.BaseRTT, target: u.Target}
	if w.target == 0 {
		w.target = w.network
		if u.Loss == UECTrim {
			w.target = w.network * 3 / 4
		}
	}
	a := float64(w.network) * w.line / (float64(referenceRTT) * referenceLine)
	b := float64(w.target) / float64(referenceRTT)
	w.alpha = 4 * segment * a * b / float64(w.target)
	w.fair, w.eta, w.fast = 5*segment*a, 0.15*segment*a, 0.25*a
	w.least, w.first = w.packet, int64(u.window)*w.packet
	return w
}

func newWindow(law *windowLaw) window {
	w := window{windowLaw: law, base: law.network}
	w.bound()
	w.size = cmp.Or(w.first, max(w.most, w.least))
	return w
}

// bound sets the largest window: one and a half times the bandwidth-delay product of the path.
func (w *window) bound() { w.most = int64(1.5 * float64(w.base) * w.line) }

// fastest updates the base RTT of the path, which is the shortest round trip so far.
func (w *window) fastest(rtt time.Duration) {
	if rtt < w.base {
		w.base = rtt
		w.bound()
	}
}

// lost handles a packet that has timed out.
func (w *window) lost(bytes int64) {
	if w.control != constantWnd {
		w.size = max(w.size-bytes, w.least)
	}
}

// acked handles an acknowledgment for some bytes.
func (w *window) acked(now time.Duration, marked bool, rtt time.Duration, bytes, inFlight int64) {
	switch w.control {
	case nsccControl:
		w.nscc(now, marked, rtt-w.base, bytes, inFlight)
	case perMark:
		if marked {
			w.size = max(w.size-bytes/3, w.least)
		} else {
			w.size += bytes * w.packet / w.size
		}
	}
}

// nacked handles a Nack for a packet.
func (w *window) nacked(now time.Duration, bytes, inFlight int64) {
	switch w.control {
	case perMark:
		w.size = max(w.size-bytes, w.least)
	case nsccControl:
		w.ignored += bytes
		w.average(w.network, true) // the delay of a full queue
		w.trigger = true
		if !w.quickAdapt(now, true, true, 0, inFlight) {
			w.size -= bytes
			w.clamp()
		}
	}
}

func (w *window) clamp() { w.size = max(min(w.size, w.most), w.least) }

// average adds a queueing delay to the average. A long delay without a mark counts as a quarter
// of the base RTT, because its queue is shrinking.
func (w *window) average(delay time.Duration, marked bool) {
	if !marked && delay > w.target {
		delay = w.base / 4
	}
	w.delay = time.Duration(delayWeight*float64(delay) + (1-delayWeight)*float64(w.delay))
}

func (w *window) nscc(now time.Duration, marked bool, delay time.Duration, bytes, inFlight int64) {
	w.achieved += bytes
	w.since += bytes
	w.ignored += bytes
	w.average(delay, marked)
	if w.quickAdapt(now, false, marked, delay, inFlight) {
		return
	}
	switch {
	case !marked && delay >= w.target:
		w.gain += w.fair * float64(bytes)
	case !marked:
		w.rush(delay, bytes)
		if !w.rushing {
			w.gain += w.alpha * float64(bytes) * float64(w.target-delay)
		}
	case delay >= w.target:
		w.decrease(now)
	}
	w.clamp()
	if w.since > adjustPackets*w.packet || now-w.adjusted > w.network {
		w.adjust(now)
		w.clamp()
	}
}

// rush performs the fast increase, which begins after a window of bytes with almost
// no delay.
func (w *window) rush(delay time.Duration, bytes int64) {
	if delay >= noDelay {
		w.quiet, w.rushing = 0, false
		return
	}
	w.quiet += bytes
	if w.rushing = w.rushing || w.quiet > w.size; w.rushing {
		w.size += int64(float64(bytes) * w.fast)
	}
}

// decrease reduces the window once per base RTT, by the share of the average delay above the
// target.
func (w *window) decrease(now time.Duration) {
	w.quiet, w.rushing = 0, false
	if w.delay <= w.target || now-w.decreased <= w.base {
		return
	}
	share := 0.8 * float64(w.delay-w.target) / float64(w.delay)
	w.size = max(int64(float64(w.size)*max(1-share, 0.5)), w.least)
	w.decreased = now
}

// adjust applies the accumulated increases.
func (w *window) adjust(now time.Duration) {
	w.size += int64(w.gain / float64(w.size))
	if now-w.adjusted >= w.network {
		w.size += int64(w.eta)
		w.adjusted = now
	}
	w.gain, w.since = 0, 0
}

// quickAdapt reports whether the answer has no other effect on the window.
func (w *window) quickAdapt(now time.Duration, trimmed, marked bool, delay time.Duration, inFlight int64) bool {
	done := false
	switch {
	case w.ignored < w.toIgnore && marked:
		done = true
	case now > w.roundEnds:
		bad := w.trigger || trimmed || delay > quickDelay*w.target
		if w.roundEnds != 0 && bad && w.achieved < w.most/quickShare {
			w.size = max(w.achieved, w.least)
			w.toIgnore, w.ignored, w.trigger = inFlight, 0, false
			done = true
		}
		w.achieved = 0
		w.roundEnds = now + w.base + w.target
	}
	if done {
		w.gain, w.since = 0, 0
	}
	return done
}
