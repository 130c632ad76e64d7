package sim

import (
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// TestMarkingAtDequeue: the mark of a queue that grows comes earlier when it is
// made at the departure, so that senders slow down sooner and the queue is shorter.
func TestMarkingAtDequeue(t *testing.T) {
	leftToPlainRun(t)
	longest := func(dequeue bool) int {
		o := Options{ECN: ECN{Min: 100e3, Max: 400e3, P: 0.2, Dequeue: dequeue}, PFC: PFC{On: true, Pause: 1 << 20}}
		d := newDumbbell(t, 4, o)
		d.start(t, 4, FlowSpec{Transport: DCQCN})
		d.run(t, 5*time.Millisecond)
		p := d.bottleneck(t).Counters()
		if p.Marked == 0 {
			t.Fatal("nothing is marked")
		}
		return p.MaxQueue
	}
	if at, after := longest(false), longest(true); after >= at {
		t.Errorf("%d bytes wait at most with marks at the departure, %d with marks at the arrival", after, at)
	}
}

// TestMarkingLeavesEmpty: a packet after which the queue is empty is not marked,
// however long it was when it came.
func TestMarkingLeavesEmpty(t *testing.T) {
	d := newDumbbell(t, 4, Options{ECN: ECN{Min: 1, Max: 1, Dequeue: true}})
	d.start(t, 1, FlowSpec{Transport: DCTCP, Bytes: segment})
	d.run(t, time.Millisecond)
	if f := d.flows[0]; f.Finished == 0 || f.Marked != 0 {
		t.Errorf("finished at %v, %d packets marked", f.Finished, f.Marked)
	}
}

// TestAnswersFirst: ACKs pass data in the queue of a port that is busy with it, and
// leave while it is paused.
func TestAnswersFirst(t *testing.T) {
	leftToPlainRun(t)
	rtt := func(first bool) time.Duration {
		d := newDumbbell(t, 4, Options{Answers: Answers{First: first}})
		// Data one way, and the other way a flow with ACKs on the same link.
		for range 3 {
			d.start(t, 4, FlowSpec{Transport: UDP, Rate: 4e9})
		}
		f, err := d.StartFlow(FlowSpec{From: "h5", To: "h1", Bytes: 1e5, Transport: DCQCN})
		if err != nil {
			t.Fatal(err)
		}
		d.run(t, 20*time.Millisecond)
		if f.Acknowledged == 0 {
			t.Fatal("not acknowledged")
		}
		return f.Acknowledged - f.Finished
	}
	if slow, fast := rtt(false), rtt(true); fast > 50*time.Microsecond || slow < 3*fast {
		t.Errorf("the last ACK takes %v, before data %v", slow, fast)
	}
}

// TestAnswersHashed: with a scheme for packets the ACKs of a flow take one path.
func TestAnswersHashed(t *testing.T) {
	paths := func(hashed bool) int {
		n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 4, Hosts: 2, Links: fabric.Links{HostRate: dumbbellRate, Rate: dumbbellRate}},
			model.Config{Granularity: "packet", Signal: "none", Choice: "uniform"}, Options{Seed: 3, Answers: Answers{Hashed: hashed}})
		if _, err := n.StartFlow(FlowSpec{From: "h1", To: "h3", Bytes: 2e5, Transport: DCQCN}); err != nil {
			t.Fatal(err)
		}
		if err := n.Run(time.Second); err != nil {
			t.Fatal(err)
		}
		used := 0
		for _, o := range n.Switch("l2").Ports() {
			if peer, _ := o.Peer(); peer[0] == 's' && o.Counters().Packets > 0 {
				used++
			}
		}
		return used
	}
	if all, one := paths(false), paths(true); all != 4 || one != 1 {
		t.Errorf("ACKs take %d paths, by their hash %d", all, one)
	}
}

// TestMurmur3 compares the hash with values of its definition.
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		seed  uint32
		words []uint32
		want  uint32
	}{
		{0, []uint32{0x87654321}, 0xf55b516b},
		{0x5082edee, []uint32{0x87654321}, 0x2362f9de},
		{0, nil, 0}, {1, nil, 0x514e28b7},
	} {
		if got := murmur3(c.seed, c.words...); got != c.want {
			t.Errorf("murmur3(%#x, %#x) = %#x, want %#x", c.seed, c.words, got, c.want)
		}
	}
}
