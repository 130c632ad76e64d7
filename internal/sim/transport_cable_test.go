package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A cable connects two halves in virtual time: it sends one packet per spacing, and each
// packet arrives after the delay.
type cable struct {
	now     time.Duration
	delay   time.Duration // one way
	spacing time.Duration // between packets with data
	a, b    half
	flying  []flight
	seq     int
	free    time.Duration // when the next packet with data may leave

	// fate decides about a packet: it arrives once for each returned time, later by that
	// time. n counts from 0 in each direction. Nil delivers all packets.
	fate  func(p *Packet, n int) []time.Duration
	count [2]int

	sent  []flight // with data
	acked []flight
	after func() // every step
}

// A flight is a packet on its way.
type flight struct {
	at  time.Duration
	seq int
	p   Packet
	to  half
}

const segment = 1000

// usual are the parameters of the tests.
func usual(t testing.TB, change func(*Tuning)) *Tuning {
	t.Helper()
	u := Tuning{Segment: segment}
	if change != nil {
		change(&u)
	}
	u, err := u.tuned(10e9, segment)
	if err != nil {
		t.Fatal(err)
	}
	return &u
}

// tcpCable joins the halves of a connection with a round-trip time of 100 µs.
func tcpCable(t *Tuning, size int64, ecn bool) (*cable, *tcpSender, *tcpReceiver, *FlowStats) {
	c := new(FlowStats)
	s, r := newTCPSender(t, c, size, ecn), newTCPReceiver(t, c)
	return &cable{a: s, b: r, delay: 50 * time.Microsecond}, s, r, c
}

// run processes all events until none is left, or until it takes too long.
func (w *cable) run(until time.Duration) {
	for {
		w.pump()
		at := min(w.a.deadline(), w.b.deadline())
		if len(w.flying) > 0 {
			at = min(at, w.flying[0].at)
		}
		if at > until {
			return
		}
		w.now = max(w.now, at)
		if len(w.flying) > 0 && w.flying[0].at <= w.now {
			f := w.flying[0]
			w.flying = w.flying[1:]
			f.to.receive(w.now, &f.p)
		} else {
			w.a.tick(w.now)
			w.b.tick(w.now)
		}
		if w.after != nil {
			w.after()
		}
	}
}

// pump takes the waiting packets of both halves.
func (w *cable) pump() {
	for w.a.ready(w.now) {
		var p Packet
		w.a.emit(w.now, &p)
		w.free = max(w.free, w.now) + w.spacing
		w.launch(0, p, w.free+w.delay, w.b)
		w.sent = append(w.sent, flight{at: w.now, p: p})
	}
	for w.b.ready(w.now) {
		p := Packet{Kind: Ack}
		w.b.emit(w.now, &p)
		w.launch(1, p, w.now+w.delay, w.a)
		w.acked = append(w.acked, flight{at: w.now, p: p})
	}
}

func (w *cable) launch(way int, p Packet, at time.Duration, to half) {
	late := []time.Duration{0}
	if w.fate != nil {
		late = w.fate(&p, w.count[way])
	}
	w.count[way]++
	for _, d := range late {
		w.seq++
		f := flight{at + d, w.seq, p, to}
		i, _ := slices.BinarySearchFunc(w.flying, f, func(a, b flight) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		w.flying = slices.Insert(w.flying, i, f)
	}
}

// rounds prints which segments were sent when, in round-trip times of 100 µs.
func (w *cable) rounds() string {
	var b strings.Builder
	for i := 0; i < len(w.sent); {
		at, from := w.sent[i].at, i
		for i < len(w.sent) && w.sent[i].at == at {
			i++
		}
		fmt.Fprintf(&b, "%v:", float64(at)/1e5)
		for _, f := range w.sent[from:i] {
			fmt.Fprintf(&b, " %d", f.p.Seq/segment)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// again lists the segments that were sent again, in order.
func (w *cable) again() []int {
	list := []int{}
	for _, f := range w.sent {
		if f.p.Number > 0 {
			list = append(list, int(f.p.Seq/segment))
		}
	}
	return list
}

// losing is a fate that drops some transmissions of packets with data, counted
// from 0.
func losing(list ...int) func(*Packet, int) []time.Duration {
	return func(p *Packet, n int) []time.Duration {
		if p.Kind == data && slices.Contains(list, n) {
			return nil
		}
		return []time.Duration{0}
	}
}
