package p4lb_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb"
)

// A controller of 50 lines: every 10 ms it gives each path a weight in proportion to the
// slower of its two links. After 10 ms a link to the second spine becomes four times slower.
func ExampleExperiment() {
	const text = `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}
schemes: [wcmp]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.4]
seeds: 1
duration: 50ms
`
	slower := func(n *p4lb.Network) {
		n.At(10*time.Millisecond, func() {
			if err := n.SetRate("l2-s2", 250e6); err != nil {
				log.Fatal(err)
			}
		})
	}
	// rateTo is the rate of the port of a switch that leads to a peer, in Mbit/s.
	rateTo := func(n *p4lb.Network, sw, peer string) int64 {
		ports, err := n.Ports(sw)
		i := slices.IndexFunc(ports, func(p p4lb.Port) bool { return p.Peer == peer })
		if err != nil || i < 0 {
			log.Fatal(sw, " has no port to ", peer, err)
		}
		return ports[i].Rate / 1e6
	}
	reweight := func(n *p4lb.Network, from, to, group string) error {
		sw, err := n.Switch(from)
		if err != nil {
			return err
		}
		weights := map[string]string{}
		for slot, spine := range []string{"s1", "s2"} {
			weights[fmt.Sprint("weight_", slot)] = fmt.Sprint(min(rateTo(n, from, spine), rateTo(n, spine, to)))
		}
		return sw.Modify(p4lb.Entry{
			Table: "candidates", Match: map[string]string{"gid": group}, // the number of the other leaf
			Action: "set_candidates", Args: weights,
		})
	}
	mean := map[bool]float64{}
	for _, controlled := range []bool{false, true} {
		results, err := p4lb.Experiment{Text: text, Begin: func(n *p4lb.Network) error {
			slower(n)
			if !controlled {
				return nil
			}
			return n.Every(10*time.Millisecond, func() error {
				if err := reweight(n, "l1", "l2", "2"); err != nil {
					return err
				}
				return reweight(n, "l2", "l1", "1")
			})
		}}.Run(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		e, _ := results.Rows()[0].Estimate("fct-mean")
		mean[controlled] = e.Mean
	}
	fmt.Println("the controller helps:", mean[true] < 0.9*mean[false])
	// Output: the controller helps: true
}

// small is an experiment with two leaves and one row.
func small(scheme string) string {
	return strings.Replace(`
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}
schemes: [SCHEME]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.2]
seeds: 1
duration: 5ms
`, "SCHEME", scheme, 1)
}

// TestNetworkObserves: counters of ports, callbacks per packet and own flows agree with
// arithmetic on an otherwise idle path.
func TestNetworkObserves(t *testing.T) {
	var took time.Duration
	var sent, seen int64
	r, err := p4lb.Experiment{Text: small("ecmp"), Begin: func(n *p4lb.Network) error {
		if got := strings.Join(n.Switches(), " ") + " " + strings.Join(n.Hosts(), " "); got != "l1 l2 s1 s2 h1 h2 h3 h4" {
			t.Errorf("nodes %s", got)
		}
		if n.Scheme() != "ecmp" || n.Load() != 0.2 || n.Now() != 0 {
			t.Error(n.Scheme(), n.Load(), n.Now())
		}
		// 9 packets of 1,472 bytes and 1 of 52, each with 28 of UDP and IP, 14 of Ethernet and
		// 24 of the line, over links of 1 Gbit/s; the last is one packet behind per switch.
		err := n.Start(p4lb.Flow{From: "h1", To: "h4", Bytes: 13300, Transport: "udp", Done: func(d time.Duration) { took = d }})
		if err != nil {
			return err
		}
		n.At(time.Millisecond, func() {
			for _, p := range ports(t, n, "l1") {
				sent += p.Packets
			}
		})
		if err := n.OnPacket(func(p p4lb.PacketAt) {
			if n.Now() < time.Millisecond && p.Switch == "l1" && p.Port > 2 && len(p.Header) >= 34 {
				seen++
			}
		}); err != nil {
			return err
		}
		return n.Report("own", 7)
	}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Mean("ecmp", "own"); v != 7 || err != nil {
		t.Error(v, err)
	}
	row := r.Rows()[0]
	if e, ok := row.Estimate("own"); !ok || e.Mean != 7 || e.Runs != 1 || row.Runs[0].Flows == 0 {
		t.Errorf("%+v %v", e, ok)
	}
	if _, ok := row.Estimate("none"); ok {
		t.Error("a metric that no run has")
	}
	if took < 107*time.Microsecond || took > 200*time.Microsecond || sent == 0 || seen == 0 {
		t.Errorf("13,300 bytes took %v at 1 Gbit/s; l1 sent %d packets, %d were seen", took, sent, seen)
	}
}

func ports(t *testing.T, n *p4lb.Network, name string) []p4lb.Port {
	t.Helper()
	list, err := n.Ports(name)
	if err != nil {
		t.Error(err)
	}
	return list
}

// TestNetworkControls: a deleted route drops, a failed link is seen, and errors name what
// is wrong.
func TestNetworkControls(t *testing.T) {
	r, err := p4lb.Experiment{Text: small("ecmp"), Begin: func(n *p4lb.Network) error {
		for _, leaf := range []string{"l1", "l2"} {
			sw, err := n.Switch(leaf)
			if err != nil {
				return err
			}
			other := map[string]string{"l1": "10.0.2.0/24", "l2": "10.0.1.0/24"}[leaf]
			if err := sw.Delete(p4lb.Entry{Table: "ipv4_route", Match: map[string]string{"dst": other}}); err != nil {
				return err
			}
		}
		if err := n.SetLink("l1-s1", false); err != nil {
			return err
		}
		for _, p := range ports(t, n, "l1") {
			if p.Down != (p.Peer == "s1") {
				t.Errorf("%+v", p)
			}
		}
		for text, err := range map[string]error{
			"no switch":  func() error { _, err := n.Switch("l9"); return err }(),
			"no link":    n.SetLink("l1-l2", true),
			"interval":   n.Every(0, func() error { return nil }),
			"at least":   n.Start(p4lb.Flow{From: "h1", To: "h2"}),
			"transport":  n.Start(p4lb.Flow{From: "h1", To: "h2", Bytes: 1, Transport: "quic"}),
			"needs a na": n.Report("", 1),
		} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %s", err, text)
			}
		}
		return nil
	}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Mean("ecmp", "unfinished"); v == 0 || err != nil {
		t.Errorf("flows finish without a route: %v %% unfinished, %v", v, err)
	}
	_, err = p4lb.Experiment{Text: small("{scheme: ecmp, engine: native}"), Begin: func(n *p4lb.Network) error {
		_, err := n.Switch("l1")
		return err
	}}.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "run models") {
		t.Error(err)
	}
	_, err = p4lb.Experiment{Text: small("ecmp"), Begin: func(n *p4lb.Network) error {
		return n.Every(time.Millisecond, func() error { return fmt.Errorf("stopped at %v", n.Now()) })
	}}.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "stopped at 1ms") {
		t.Error(err)
	}
}

// TestExperimentSchemes runs a program of the caller's own from a folder.
func TestExperimentSchemes(t *testing.T) {
	r, err := p4lb.Experiment{Text: small("./diffflow"), Schemes: "examples/own"}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := r.Mean("diffflow", "unfinished"); v != 0 || err != nil {
		t.Error(v, err)
	}
	if _, err := p4lb.Run(context.Background(), small("./diffflow"), nil); err == nil {
		t.Error("a scheme by path without a folder of schemes")
	}
}
