package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// TestOvertakenNack: where packets are balanced one by one, an ACK may overtake a
// Nack. A sender that ignores the Nack then waits for its timeout, though nothing
// is lost.
func TestOvertakenNack(t *testing.T) {
	leftToPlainRun(t)
	if n := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{}); n.timeouts != 0 {
		t.Errorf("%d timeouts", n.timeouts)
	}
	if n := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{RDMA: RDMA{Nack: GoBackOnExpected}}); n.timeouts == 0 {
		t.Error("no timeout where overtaken Nacks are ignored: the flows show nothing")
	}
}

// TestKeptPackets: a receiver that keeps early packets causes fewer retransmissions, and
// nothing where it does not ask for it.
func TestKeptPackets(t *testing.T) {
	leftToPlainRun(t)
	back := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{})
	for policy, most := range map[NackPolicy]int64{Selective: back.again / 2, KeepEarly: 0} {
		got := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{RDMA: RDMA{Nack: policy}})
		if got.again > most || got.timeouts != 0 || got.early == 0 {
			t.Errorf("policy %d: %d of %d packets sent again, %d early, %d timeouts; going back has %d sent again", policy, got.again, got.sent, got.early, got.timeouts, back.again)
		}
	}
}

// TestRepeatedAll: in the form of conweave-ns3 a Nack has more sent again, though
// early packets are kept.
func TestRepeatedAll(t *testing.T) {
	missing := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{RDMA: RDMA{Nack: Selective}})
	all := sprayed(t, ECN{Min: 100e3, Max: 400e3, P: 0.2}, Tuning{RDMA: RDMA{Nack: Selective, RepeatAll: true}})
	if all.again < 2*missing.again || all.timeouts != 0 || all.early == 0 {
		t.Errorf("%d of %d packets sent again, %d early, %d timeouts; of what is missing alone %d", all.again, all.sent, all.early, all.timeouts, missing.again)
	}
}

// Sums over the flows of a run.
type sprayedFlows struct{ sent, again, early, nacks, notices, timeouts int64 }

// sprayed sends flows across a lossless network that balances each packet.
func sprayed(t *testing.T, ecn ECN, u Tuning) (sum sprayedFlows) {
	t.Helper()
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 4, Hosts: 8, Buffer: 9e6, Links: fabric.Links{
		HostRate: dumbbellRate, Rate: dumbbellRate, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond,
	}}, model.Config{Granularity: "packet", Signal: "none", Choice: "uniform"}, Options{Seed: 1, PFC: PFC{On: true}, ECN: ecn})
	var flows []*Flow
	random := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		from, to := random.IntN(8), 8+random.IntN(8)
		if random.IntN(2) == 0 {
			from, to = to, from
		}
		n.At(time.Duration(random.IntN(2_000_000)), func() {
			f, err := n.StartFlow(FlowSpec{From: fmt.Sprint("h", from+1), To: fmt.Sprint("h", to+1), Bytes: 3e4, Transport: DCQCN, Tuning: &u})
			if err != nil {
				t.Error(err)
			}
			flows = append(flows, f)
		})
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		if f.Finished == 0 || f.Received != f.Bytes {
			t.Fatalf("flow %d: %d of %d bytes have arrived", f.ID, f.Received, f.Bytes)
		}
		sum.sent += f.Sent
		sum.again += f.Retransmitted
		sum.early += f.OutOfOrder
		sum.nacks += f.Nacks
		sum.notices += f.Notices
		sum.timeouts += f.Timeouts
	}
	return sum
}

// TestSelective loses packets: the sender repeats only these.
func TestSelective(t *testing.T) {
	for _, c := range []struct {
		name     string
		lose     []int
		again    []int
		timeouts int64
	}{
		{"nothing", nil, []int{}, 0},
		{"first", []int{0}, []int{0}, 0},
		{"some", []int{2, 3, 6}, []int{2, 3, 6}, 0},
		{"last", []int{9}, []int{9}, 1},
		{"all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1},
		// Packet 6 is repeated as the eleventh, and is lost without notice.
		{"twice", []int{6, 10}, []int{6, 6}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stats FlowStats
			u := usual(t, func(u *Tuning) { u.RDMA.Nack = Selective })
			s, r := newDCQCNSender(u, &stats, 10*segment, 10e9), newGoBackReceiver(u, &stats)
			w := &cable{a: s, b: r, delay: 50 * µs, spacing: µs, fate: losing(c.lose...)}
			w.run(time.Second)
			if r.expected != s.size || s.una != s.size || stats.Received != s.size {
				t.Fatalf("arrived up to %d, %d bytes", r.expected, stats.Received)
			}
			if got := w.again(); !slices.Equal(got, c.again) || stats.Timeouts != c.timeouts {
				t.Errorf("sent again %v after %d timeouts, want %v, %d", got, stats.Timeouts, c.again, c.timeouts)
			}
		})
	}
}

// TestRepeatAll loses packets 2 and 5 of ten, which have all been sent when the first
// Nack comes. It reports packet 3, which is skipped. The next one comes when 4 has
// just been sent again: arrived ranges begin behind the sender from then on, and
// it passes over nothing more.
func TestRepeatAll(t *testing.T) {
	var stats FlowStats
	u := usual(t, func(u *Tuning) { u.RDMA.Nack, u.RDMA.RepeatAll = Selective, true })
	s, r := newDCQCNSender(u, &stats, 10*segment, 10e9), newGoBackReceiver(u, &stats)
	w := &cable{a: s, b: r, delay: 50 * µs, spacing: µs, fate: losing(2, 5)}
	w.run(time.Second)
	if r.expected != s.size || s.una != s.size || stats.Received != s.size || stats.Timeouts != 0 {
		t.Fatalf("arrived up to %d, %d bytes, %d timeouts", r.expected, stats.Received, stats.Timeouts)
	}
	if got, want := w.again(), []int{2, 4, 5, 6, 7, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("sent again %v, want %v", got, want)
	}
}

// TestNackNotice: where nothing is marked, notices of congestion come with Nacks
// alone, if they do.
func TestNackNotice(t *testing.T) {
	leftToPlainRun(t)
	for _, on := range []bool{false, true} {
		got := sprayed(t, ECN{}, Tuning{RDMA: RDMA{NackNotice: on}})
		if want := map[bool]int64{true: got.nacks}[on]; got.notices != want || got.nacks == 0 {
			t.Errorf("%t: %d notices, %d Nacks", on, got.notices, got.nacks)
		}
	}
}
