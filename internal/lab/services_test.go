package lab

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

const toService = `topology: net.yaml
schemes: [./lb]
traffic: [{size: 20KB, from: [l1, h5], to: [web], load-of: hosts}]
loads: [0.2]
seeds: 1
duration: 50ms
drain: 1s
`

// serviceNet is two leaves with four hosts each, of which three serve web.
const serviceNet = `
defaults: {switch-links: {rate: 1G}, host-links: {rate: 100Mbps}}
switches: {l1: {}, l2: {}, s1: {}}
hosts: {h1: , h2: , h3: , h4: , h5: , h6: , h7: , h8: }
links: [{ends: [h1, l1]}, {ends: [h2, l1]}, {ends: [h3, l1]}, {ends: [h4, l1]}, {ends: [h5, l2]}, {ends: [h6, l2]}, {ends: [h7, l2]}, {ends: [h8, l2]}, {ends: [l1, s1]}, {ends: [l2, s1]}]
services: {web: {address: 10.0.2.100, port: 80, servers: [h6, h7, h8]}}
`

// runService runs an experiment with a changed manifest of the balancer.
func runService(t *testing.T, text string, from, to string) (*Comparison, error) {
	t.Helper()
	return runBalancer(t, text, strings.NewReplacer(from, to), nil)
}

// runBalancer runs an experiment with a changed balancer and logs its faults.
func runBalancer(t *testing.T, text string, change *strings.Replacer, log func(string)) (*Comparison, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"lb.p4", "lb.manifest.yaml"} {
		b, err := os.ReadFile("testdata/service/" + name)
		if err == nil {
			err = os.MkdirAll(dir+"/lb", 0o777)
		}
		if err == nil {
			err = os.WriteFile(dir+"/lb/"+name, []byte(change.Replace(string(b))), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(string) ([]byte, error) { return []byte(serviceNet), nil }
	x, err := spec.Load("experiment", []byte(text), read, &scheme.Library{Sources: []scheme.Source{own.Source(dir)}})
	if err != nil {
		return nil, err
	}
	return (&Runner{Read: read, Log: log}).Run(context.Background(), x)
}

// TestFaultsAreNamed: a run names programs that clone their clones, probes that do not come back,
// also in runs of two probes, and services that no flow uses, once per row.
func TestFaultsAreNamed(t *testing.T) {
	direct := strings.NewReplacer("[web], load-of: hosts", "[l2], load-of: hosts", "drain: 1s", "drain: 10ms", "50ms", "20ms", "seeds: 1", "seeds: 2").Replace(toService)
	for name, c := range map[string]struct {
		experiment string
		change     *strings.Replacer
		want       string
	}{
		"unused": {direct, strings.NewReplacer(), "lb: service web: no flow goes to it"},
		"clones": {
			strings.NewReplacer("seeds: 2", "seeds: 1", "20KB", "1KB", "20ms", "1ms", "10ms", "2ms").Replace(direct), strings.NewReplacer("control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {}", "control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { clone(CloneType.E2E, 5); }", "scheme: lb", "scheme: lb\nclone_sessions: [{session: 5, port: 1}]"),
			"lb: s1: a packet of port 1 has been cloned 64 times",
		},
		"probes": {
			direct, strings.NewReplacer("action drop()", "register<bit<8>>(2) seen; action drop()", "drop(); return;", "seen.write(0, 0); drop(); return;", "scheme: lb", `scheme: lb
cpu_port: 255
tasks: [{kind: send, period: 5ms, each: neighbour, roles: [leaf], frame: ["0:48", "0:48", "0x999:16"], returns: I.seen}]`),
			"lb: l1: none of 5 probes from the CPU port for the link to s1 has come back within 21ms: register I.seen has not changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			if _, err := runBalancer(t, c.experiment, c.change, func(line string) { lines = append(lines, line) }); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(strings.Join(lines, "\n"), c.want); n != 1 {
				t.Errorf("%d times %s in\n%s", n, c.want, strings.Join(lines, "\n"))
			}
		})
	}
}

// TestServices: flows to a service end at its servers, whose answers come back from its
// address. Without entries for the packets to it or back, the service is named.
func TestServices(t *testing.T) {
	c, err := runService(t, toService, "", "")
	if err != nil {
		t.Fatal(err)
	}
	r := c.Rows[0].Runs[0]
	if r.Metrics["unfinished"] != 0 || r.Flows < 20 || len(r.Alerts) > 0 || len(r.Lost) > 0 {
		t.Errorf("%d flows, %g %% unfinished, %v, %v", r.Flows, r.Metrics["unfinished"], r.Alerts, r.Lost)
	}
	for _, k := range []struct{ from, to, want string }{
		{"h.l4.dport: $service-port", "h.l4.dport: 81", "service web: no packet to 10.0.2.100 has reached one of its servers h6, h7, h8"},
		{"h.l4.sport: $service-port", "h.l4.sport: 81", "flows had packets at another server, or answers that do not come from 10.0.2.100"},
	} {
		c, err := runService(t, toService, k.from, k.to)
		if err != nil {
			t.Fatal(err)
		}
		r := c.Rows[0].Runs[0]
		if alerts := strings.Join(r.Alerts, "\n"); r.Metrics["unfinished"] != 100 || !strings.Contains(alerts, k.want) {
			t.Errorf("%g %% unfinished: %s\nwant %s", r.Metrics["unfinished"], alerts, k.want)
		}
	}
	for _, k := range []struct{ from, to, want string }{
		{"from: [l1, h5]", "from: [h6]", "all senders are servers of web: want from: with another host"},
		{"to: [web]", "to: [mail]", `nor a leaf or range h1..h8, nor a service such as web`},
		{"from: [l1, h5], to: [web]", "pattern: pairs, pairs: [h6-web]", "h6 is a server of web: want a flow from another host"},
		{"schemes: [./lb]", "schemes: [ecmp]\nengine: native", "service web: models forward to hosts alone: want engine p4, not native"},
	} {
		if _, err := runService(t, strings.Replace(toService, k.from, k.to, 1), "", ""); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v\nwant %s", err, k.want)
		}
	}
}

// TestPoolChanges: while the link of a server is down, new flows go to the other servers. When a
// server leaves the pool and returns, a program that hashes over the number of servers moves flows
// to a server that does not know them.
func TestPoolChanges(t *testing.T) {
	for _, c := range []struct {
		fault string
		moves bool
	}{
		{"{at: 0s, link: h7, down: true}", false},
		{"{at: 0s, server: h7, down: true}", false},
		{"{at: 20ms, until: 25ms, server: h7, down: true}", true},
	} {
		x, err := runService(t, strings.Replace(toService, "0.2", "0.9", 1)+"faults: ["+c.fault+"]\n", "", "")
		if err != nil {
			t.Fatal(err)
		}
		r := x.Rows[0].Runs[0]
		moves := strings.Contains(strings.Join(r.Alerts, "\n"), "had packets at another server")
		if moves != c.moves || (r.Metrics["unfinished"] > 0) != c.moves {
			t.Errorf("%s: flows move %t, want %t; %g %% unfinished: %v", c.fault, moves, c.moves, r.Metrics["unfinished"], r.Alerts)
		}
	}
}
