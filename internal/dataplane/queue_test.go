package dataplane

import (
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

func TestQueueTailDrop(t *testing.T) {
	q := newQueues(1)
	for i := range 70 {
		depth, ok := q.Push(&Packet{egressPort: 9, st: vector.State{ID: uint64(i)}}, 0)
		if ok != (i < 64) || depth != min(i, 64) {
			t.Fatalf("packet %d: depth %d, queued %v", i, depth, ok)
		}
	}
	for i := range 64 {
		p, depth := q.Pop(0)
		if p == nil || p.st.ID != uint64(i) || depth != 63-i {
			t.Fatalf("packet %d: %v behind %d", i, p, depth)
		}
	}
	if p, _ := q.Pop(0); p != nil {
		t.Error("a packet from nowhere")
	}
}

// Push fixes the departure time of a packet: max(now, last + 1/rate).
func TestQueueRate(t *testing.T) {
	q := newQueues(1)
	must(t, q.SetRate(1, -1, 1000))
	var times []time.Duration
	for range 3 {
		q.Push(&Packet{egressPort: 1}, time.Second)
	}
	must(t, q.SetRate(1, -1, 10))
	q.Push(&Packet{egressPort: 1}, time.Second)
	for {
		at, ok := q.Next()
		if !ok {
			break
		}
		if p, _ := q.Pop(at - 1); p != nil {
			t.Fatal("a packet left too early")
		}
		if p, _ := q.Pop(at); p == nil {
			t.Fatal("no packet at the announced time")
		}
		times = append(times, at-time.Second)
	}
	want := []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 102 * time.Millisecond}
	if !slices.Equal(times, want) {
		t.Errorf("packets left at %v, want %v", times, want)
	}
}

func TestQueueStrictPriority(t *testing.T) {
	q := newQueues(3)
	for i, pri := range []int{0, 2, 1, 2, 0} {
		q.Push(&Packet{egressPort: 5, priority: pri, st: vector.State{ID: uint64(i)}}, 0)
	}
	must(t, q.SetDepth(5, 2, 1))
	if _, ok := q.Push(&Packet{egressPort: 5, priority: 2}, 0); ok {
		t.Error("a queue with a smaller depth took a packet")
	}
	var order []uint64
	for p, _ := q.Pop(0); p != nil; p, _ = q.Pop(0) {
		order = append(order, p.st.ID)
	}
	if want := []uint64{1, 3, 2, 0, 4}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if q.SetRate(5, 3, 1) == nil {
		t.Error("a priority out of range was accepted")
	}
}

func TestQueueDefaultsReachNewPorts(t *testing.T) {
	q := newQueues(1)
	q.Len(3, 0)
	q.SetAllDepths(1)
	for _, port := range []uint32{3, 4, 100000} {
		q.Push(&Packet{egressPort: port}, 0)
		if _, ok := q.Push(&Packet{egressPort: port}, 0); ok {
			t.Errorf("port %d took two packets", port)
		}
	}
}

// Egress sees the number of packets before and behind a packet, per priority.
func TestQueueDepthMetadata(t *testing.T) {
	e, s := misc(t, Options{Priorities: 2})
	must(t, s.ValueSets().Set("P.known", members(7)))
	e.Queues(func(q *Queues) { must(t, q.SetRate(1, -1, 10)) })
	var got []uint16
	collect := func(out []Out) {
		for _, o := range out {
			got = append(got, uint16(o.Data[2])<<8|uint16(o.Data[3]))
		}
	}
	for i := range 4 {
		collect(e.Process(0, []byte{7, byte(i % 2), 0, 0}, time.Second))
	}
	for at, ok := e.Next(); ok; at, ok = e.Next() {
		collect(e.Run(at))
	}
	// The first packet of each priority leaves at once; the second waits, alone.
	if want := []uint16{0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("depths %x, want %x", got, want)
	}
	got = nil
	e.Queues(func(q *Queues) { must(t, q.SetRate(1, 0, 1)) })
	for range 4 {
		collect(e.Process(0, []byte{7, 0, 0, 0}, time.Minute))
	}
	for at, ok := e.Next(); ok; at, ok = e.Next() {
		collect(e.Run(at))
	}
	if want := []uint16{0, 0x0002, 0x0101, 0x0200}; !slices.Equal(got, want) {
		t.Errorf("depths %x, want %x", got, want)
	}
	if got, _ := send(t, e, time.Hour, 7, 2, 0); got != -1 {
		t.Error("a priority that does not exist was served")
	}
}

func TestRecirculationBufferOverflows(t *testing.T) {
	e := NewEngine(load(t, "reflector", Options{}))
	for range maxAgain + 5 {
		e.goAgain(e.sw, &Packet{})
	}
	if e.Drops() != 5 {
		t.Errorf("%d drops, want 5", e.Drops())
	}
}

// On a port with a bit rate, each packet leaves when the previous one has been sent, for
// any rate in packets.
func TestQueueBitRate(t *testing.T) {
	q := newQueues(1)
	must(t, q.SetRate(1, -1, 1))
	q.SetBitRate(1, 8_000_000) // a byte in a us
	for _, length := range []int{1000, 100, 500} {
		q.Push(&Packet{egressPort: 1, st: vector.State{Length: length}}, time.Second)
	}
	for _, want := range []time.Duration{0, 1000 * time.Microsecond, 1100 * time.Microsecond} {
		at, _ := q.Next()
		if p, _ := q.Pop(at); p == nil || at-time.Second != want {
			t.Errorf("a packet leaves after %v, want %v", at-time.Second, want)
		}
	}
	q.Push(&Packet{egressPort: 1, st: vector.State{Length: 10}}, time.Second)
	if at, _ := q.Next(); at-time.Second != 1600*time.Microsecond {
		t.Errorf("the wire is free after %v, want 1.6ms", at-time.Second)
	}
	q.SetBitRate(1, 0)
	q.Push(&Packet{egressPort: 1, st: vector.State{Length: 10}}, 5*time.Second)
	q.Push(&Packet{egressPort: 1, st: vector.State{Length: 10}}, 5*time.Second)
	for q.Len(1, 0) > 1 {
		at, _ := q.Next()
		q.Pop(at)
	}
	if at, _ := q.Next(); at != 6*time.Second {
		t.Errorf("back at a packet a second, one leaves at %v, want 6s", at)
	}
}

// A paused queue keeps its packets and takes more. After the resume they leave at the
// queue's rate, not at once.
func TestQueuePaused(t *testing.T) {
	q := newQueues(2)
	q.SetAllRates(1000)
	p := func(priority int) *Packet { return &Packet{egressPort: 1, priority: priority} }
	push := func(p *Packet, now time.Duration) {
		if _, ok := q.Push(p, now); !ok {
			t.Fatal("the queue is full")
		}
	}
	first, second, third, other := p(1), p(1), p(1), p(0)
	push(first, 0)
	q.setPaused(1, 1, true, 0)
	push(second, 0)
	push(third, 0)
	push(other, 0)
	if got, _ := q.Pop(time.Second); got != other {
		t.Error("the other queue does not go on")
	}
	if got, _ := q.Pop(time.Second); got != nil {
		t.Error("a paused queue sends")
	}
	if _, ok := q.Next(); ok || q.Len(1, 1) != 3 {
		t.Errorf("a paused queue is due, or has %d packets", q.Len(1, 1))
	}
	q.setPaused(1, 1, false, time.Second)
	for i, want := range []*Packet{first, second, third} {
		due := time.Second + time.Duration(i)*time.Millisecond
		if got, _ := q.Pop(due - 1); got != nil {
			t.Errorf("packet %d leaves before %v", i, due)
		}
		if got, _ := q.Pop(due); got != want {
			t.Errorf("packet %d does not leave at %v", i, due)
		}
	}
}
