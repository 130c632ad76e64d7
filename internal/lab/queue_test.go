package lab

import "testing"

// TestSwitchQueue: the queue of switches replaces the queue of links, and a
// changed link has its own.
func TestSwitchQueue(t *testing.T) {
	const text = `topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 4, rate: 1G, host-rate: 1G, queue: 100}}
schemes: [ecmp]
traffic: [{collective: all-to-all, size: 2MB}]
transport: {kind: dctcp}
seeds: 1
engine: native
`
	most := func(more string) float64 {
		return run(t, &Runner{}, load(t, text+more)).Rows[0].Runs[0].Metrics["buffer-peak"]
	}
	whole, ten := most(""), most("switches: {queue: 10, ecn: none}\n")
	if limit := 5 * 10 * 1.514; ten > limit || whole <= limit {
		t.Errorf("queues of 100 packets hold %g KB, of 10 packets %g: want more than and at most %g on the ports of a leaf", whole, ten, limit)
	}
	if own := most("switches: {queue: 10, ecn: none}\nlinks: [{link: l1-s1, queue: 50}, {link: h1-l1, queue: 50}]\n"); own <= ten {
		t.Errorf("two links with queues of 50 packets, others with 10: a leaf holds %g KB, with 10 everywhere %g: want more", own, ten)
	}
}
