package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestNeverBelowOne: in an idle network of any shape no flow is faster than its
// ideal, and where every link is as fast as any other a short flow is about as fast.
func TestNeverBelowOne(t *testing.T) {
	leftToPlainRun(t)
	shapes := map[string]string{
		"uniform":       "{leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 4000}}",
		"slow fabric":   "{leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 250Mbps, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 4000}}",
		"fast fabric":   "{leaf-spine: {leaves: 2, spines: 2, parallel: 2, hosts: 2, rate: 40G, host-rate: 1G, delay: 10us, host-delay: 1us, queue: 4000}}",
		"fast hosts":    "{leaf-spine: {leaves: 2, spines: 3, hosts: 2, rate: 1G, host-rate: 100G, delay: 100ns, host-delay: 100ns, queue: 4000}}",
		"three tiers":   "{fat-tree: {k: 4, hosts: 2, host-rate: 400Mbps, rate: 200Mbps, host-delay: 10us, delay: 10us, queue: 4000}}",
		"no delay":      "{leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 10Mbps, host-rate: 10Mbps, queue: 4000}}",
		"as whole ns":   "{leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 400G, host-rate: 400G, delay: 1us, host-delay: 1us, queue: 4000}}\nlines: whole",
		"a slow spine":  "{leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, queue: 4000}}\nlinks: [{link: s1, rate: 100Mbps, delay: 300us}, {link: l1-s2, rate: 300Mbps}]",
		"a dead link":   "{leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 4G, delay: 2us, queue: 4000}}\nfail: [l1-s1]",
		"a single leaf": "{leaf-spine: {leaves: 1, spines: 1, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 4000}}",
	}
	var flows strings.Builder
	at := 0.0
	for _, bytes := range []int{1, 1000, 1460, 1461, 1472, 2000, 2920, 2921, 4379, 20000, 100_000, 500_000} {
		for _, pair := range []string{"h1,h3", "h4,h2"} {
			fmt.Fprintf(&flows, "%s,%d,%g\n", pair, bytes, at)
			at += 0.9
		}
	}
	read := func(string) ([]byte, error) { return []byte("src,dst,bytes,start_s\n" + flows.String()), nil }
	for name, shape := range shapes {
		for _, transport := range []string{"tcp", "udp", "{kind: dcqcn, rdma: {headers: 58B}}", "{kind: tcp, mss: 536}"} {
			text := "engine: native\nparameters: default\ntopology: " + shape + "\nschemes: [ecmp, rps, drill, conga]\nseeds: 1\nwarmup: 0\nduration: 22s\ndrain: 1s\ninterval: 1s\ntransport: " + transport + "\ntraffic: [{file: flows.txt}]\n"
			x, err := spec.Load("x.yaml", []byte(text), read, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c, err := (&Runner{Read: read}).Run(t.Context(), x)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, r := range c.Results {
				if least := r.Plots.Slowdown[0]; least < 1 {
					t.Errorf("%s, %s, %s: a slowdown of %g", name, transport, r.Label, least)
				} else if name == "uniform" && transport == "udp" && least > 1.001 {
					t.Errorf("%s, %s: the least slowdown of a lone flow is %g", transport, r.Label, least)
				}
				if r.Metrics["unfinished"] > 0 {
					t.Errorf("%s, %s, %s: %g %% unfinished", name, transport, r.Label, r.Metrics["unfinished"])
				}
			}
		}
	}
}

// TestMaxFlow uses a fabric with cuts computed by hand.
func TestMaxFlow(t *testing.T) {
	x, err := spec.Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 3, hosts: 1, rate: 1G}}\nlinks: [{link: l1-s1, rate: 100Mbps}, {link: l2-s2, rate: 300Mbps}]\nfail: [l2-s1]\nschemes: [ecmp]\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	net, err := x.Cases[0].Network(spec.NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	if got := newPipes(net).maxFlow("l1", "l2"); got != 1.3e9 {
		t.Errorf("the fabric carries %g bit/s, want 0.3 by s2 and 1 by s3", got)
	}
}

// TestMaxFlowCuts compares maximum flows with the least of all cuts, in fabrics whose
// links have random rates. Paths may lead through other leaves.
func TestMaxFlowCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var links []string
		for leaf := 1; leaf <= 3; leaf++ {
			for spine := 1; spine <= 3; spine++ {
				links = append(links, fmt.Sprintf("{link: l%d-s%d, rate: %dMbps}", leaf, spine, 1+random.IntN(9)))
			}
		}
		text := "topology: {leaf-spine: {leaves: 3, spines: 3, hosts: 1, rate: 1G}}\nlinks: [" + strings.Join(links, ", ") + "]\nschemes: [ecmp]\n"
		x, err := spec.Load("x.yaml", []byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		net, err := x.Cases[0].Network(spec.NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		least := math.Inf(1)
		for set := range 1 << len(net.Switches) {
			inside := map[string]bool{}
			for i, s := range net.Switches {
				inside[s.Name] = set>>i&1 != 0
			}
			if !inside["l1"] || inside["l2"] {
				continue
			}
			cut := 0.0
			for name := range inside {
				for _, p := range net.Ports(name) {
					if inside[name] && p.PeerTier > 0 && !inside[p.Peer] {
						cut += float64(p.Rate)
					}
				}
			}
			least = min(least, cut)
		}
		if got := newPipes(net).maxFlow("l1", "l2"); got != least {
			t.Fatalf("%s: a flow of %g, but the least cut has %g", text, got, least)
		}
	}
}
