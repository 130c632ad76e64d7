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

// webSearch is the distribution of flow sizes that papers use, a tenth as large
// so that a test has many flows: bytes and the share of flows that are smaller.
var webSearch = []struct{ bytes, share float64 }{
	{0, 0}, {1000, .15}, {2000, .2}, {3000, .3}, {5000, .4}, {8000, .53}, {20000, .6}, {1e5, .7}, {2e5, .8}, {5e5, .9}, {1e6, .97}, {3e6, 1},
}

const webSearchMean = 171.1e3 // bytes

func webSearchSize(random *rand.Rand) int64 {
	u := random.Float64()
	for i := 1; ; i++ {
		if a, b := webSearch[i-1], webSearch[i]; u <= b.share {
			return 1 + int64(a.bytes+(b.bytes-a.bytes)*(u-a.share)/(b.share-a.share))
		}
	}
}

// A loaded is the result of a load.
type loaded struct {
	slowdowns   []float64
	stats       FlowStats // summed
	withDupAcks int
}

func (l *loaded) mean() float64 {
	var sum float64
	for _, x := range l.slowdowns {
		sum += x
	}
	return sum / float64(len(l.slowdowns))
}

func (l *loaded) p99() float64 {
	slices.Sort(l.slowdowns)
	return l.slowdowns[len(l.slowdowns)*99/100]
}

const (
	loadHosts = 16
	loadRate  = fabric.Gbps
	loadRTT   = 2 * (2*time.Microsecond + 2*10*time.Microsecond + 2*time.Microsecond)
)

// offer sends web search flows between leaves for 50 ms at a share of the hosts' rate, and
// waits until all of them finish.
func offer(t *testing.T, transport Transport, scheme model.Config, o Options, load float64) *loaded {
	t.Helper()
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 4, Hosts: loadHosts / 2, Buffer: 9e6, Links: fabric.Links{
		HostRate: loadRate, Rate: loadRate * 2, HostDelay: 2 * time.Microsecond, Delay: 10 * time.Microsecond, Queue: 256,
	}}, scheme, o)
	random := stream(o.Seed, "arrivals")
	l := new(loaded)
	interval := webSearchMean * 8 / (load * float64(loadRate) * loadHosts) * float64(time.Second)
	var flows []*Flow
	for at := 0.0; at < 50e6; at += random.ExpFloat64() * interval {
		from := random.IntN(loadHosts)
		to := (from/(loadHosts/2)+1)%2*(loadHosts/2) + random.IntN(loadHosts/2)
		size := webSearchSize(random)
		n.At(time.Duration(at), func() {
			f, err := n.StartFlow(FlowSpec{From: fmt.Sprint("h", from+1), To: fmt.Sprint("h", to+1), Bytes: size, Transport: transport})
			if err != nil {
				t.Error(err)
			}
			flows = append(flows, f)
		})
	}
	if err := n.Run(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		l.add(t, f)
	}
	return l
}

func (l *loaded) add(t *testing.T, f *Flow) {
	t.Helper()
	if f.Acknowledged == 0 || f.Received != f.Bytes {
		t.Fatalf("%d bytes of %d arrived: %+v", f.Received, f.Bytes, *f.FlowStats)
	}
	best := loadRTT + time.Duration(f.Bytes*8)*time.Second/time.Duration(loadRate)
	l.slowdowns = append(l.slowdowns, float64(f.Acknowledged-f.Started)/float64(best))
	l.stats.Sent += f.Sent
	l.stats.Retransmitted += f.Retransmitted
	l.stats.Timeouts += f.Timeouts
	l.stats.Overtaken += f.Overtaken
	if f.DupAcks > 0 {
		l.withDupAcks++
	}
}

// TestLoad offers loads to a leaf–spine: nothing is faster than possible, a
// higher load slows flows down more, a flow on one path stays in order, and on
// random ones it does not.
func TestLoad(t *testing.T) {
	leftToPlainRun(t)
	ecmp := model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}
	rps := model.Config{Granularity: "packet", Signal: "none", Choice: "uniform"}
	for _, c := range transports {
		c.options.Seed = 1
		var before float64
		for _, load := range []float64{0.2, 0.5, 0.8} {
			l := offer(t, c.transport, ecmp, c.options, load)
			l.log(t, c.transport, "ecmp", load)
			if least := slices.Min(l.slowdowns); least < 1 {
				t.Errorf("%v: a slowdown of %.3f", c.transport, least)
			}
			if l.mean() <= before {
				t.Errorf("%v: slowdown %.2f at a load of %.1f, %.2f below", c.transport, l.mean(), load, before)
			}
			before = l.mean()
			if l.stats.Overtaken > 0 {
				t.Errorf("%v: %d packets overtaken on one path", c.transport, l.stats.Overtaken)
			}
		}
		r := offer(t, c.transport, rps, c.options, 0.2)
		r.log(t, c.transport, "rps", 0.2)
		if r.stats.Overtaken == 0 {
			t.Errorf("%v: no packet overtaken on random paths", c.transport)
		}
	}
}

func (l *loaded) log(t *testing.T, transport Transport, scheme string, load float64) {
	t.Logf("%-5v %-4s load %.1f: %4d flows, slowdown %.2f, p99 %.1f, %d of %d sent again, %d timeouts, %d overtaken, %d flows with duplicates",
		transport, scheme, load, len(l.slowdowns), l.mean(), l.p99(), l.stats.Retransmitted, l.stats.Sent, l.stats.Timeouts, l.stats.Overtaken, l.withDupAcks)
}
