package lab

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// TestBounds compares the expected cost of runs and the shortest times of flows with
// their records: for networks of each kind, with slow, failed and parallel links.
func TestBounds(t *testing.T) {
	var b strings.Builder
	for _, text := range []string{
		"topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 1G, host-rate: 3G, delay: 2us, host-delay: 1us}}",
		"topology: {leaf-spine: {leaves: 3, spines: 2, parallel: 2, hosts: 2, rate: 40G, host-rate: 1G, delay: 10us}}\nlines: whole\nengine: native\nload: 0.9",
		"topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 1G, host-rate: 7G}}\nlinks: [{link: s1, rate: 100Mbps, delay: 300us}, {link: l1-s2, rate: 300Mbps}]\nfail: [l1-s4]\ntransport: {kind: tcp, mss: 536}",
		"topology: {fat-tree: {k: 4, hosts: 2, host-rate: 4G, rate: 1G, host-delay: 10us, delay: 3us}}\ntransport: {kind: tcp, mss: 9000}",
		"topology: {rail: {rails: 2, servers: 2, spines: 2, planes: 2, rate: 10G, host-rate: 10G, delay: 500ns}}",
		"topology: {leaf-spine: {leaves: 1, spines: 1, hosts: 3, rate: 1G, host-rate: 2G}}\nparameters: default",
		"topology: leaf-spine\ntraffic: [{size: 300B, rate: 1000}, {size: 1MB, load-of: hosts}]\ninterval: 1ms",
		"topology: leaf-spine\ntraffic: [{collective: all-reduce, size: 1MB}]",
		"topology: leaf-spine\njobs: [{ranks: 4, phases: [{compute: 1ms}, {collective: all-reduce, size: 1MB}]}]",
	} {
		text = strings.Replace(text, "\nload: 0.9", "\nloads: [0.9]", 1)
		x := load(t, text+"\nschemes: [ecmp]\nduration: 10ms\n")
		jobs, err := (&Runner{}).Jobs(x)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		d, err := jobs[0].demand()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n\t%.8g flows, %.8g events, %.8g bytes\n", text, d.Flows, d.Events, d.Bytes)
		topo := jobs[0].setup.topo
		ideal := newIdealTimer(topo, x.Cases[0].Lines == spec.WholeNanoseconds)
		for _, to := range []int{1, topo.NICs() - 1} {
			fmt.Fprintf(&b, "\th1 to h%d:", to+1)
			if topo.Hosts[0].Switch != topo.Hosts[to].Switch {
				fmt.Fprintf(&b, " %.6g bit/s in the fabric;", ideal.planes(0, to))
			}
			for _, bytes := range []int64{1, 1460, 1461, 2920, 10000, 1e6} {
				fmt.Fprintf(&b, " %d B %v", bytes, ideal.of(&spec.Flow{Src: 0, Dst: to, Bytes: bytes}, framing{1460, 54}))
			}
			b.WriteString("\n")
		}
	}
	recordedText(t, "bounds", b.String())
}

// TestLimitsOfRuns accepts experiments of exactly the limits, on few and many cores.
func TestLimitsOfRuns(t *testing.T) {
	x := load(t, fmt.Sprintf(twoSeeds, "a", "0.5"))
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	d, err := jobs[0].demand()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits Limits
		cores  int
		want   string
	}{
		{Limits{}, 8, ""}, {Limits{Events: d.Events}, 1, ""}, {Limits{Events: d.Events - 1}, 1, " events ("},
		{Limits{Bytes: d.Bytes}, 1, ""}, {Limits{Bytes: d.Bytes}, 2, "of memory on 2 cores"}, {Limits{Bytes: 2 * d.Bytes}, 8, ""}, {Limits{Bytes: 2*d.Bytes - 1}, 8, "of memory on 2 cores"},
	} {
		err := c.limits.check(jobs, c.cores)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v on %d cores: %v, want %q", c.limits, c.cores, err, c.want)
		}
	}
}

// TestSettled: virtual time goes on when all controllers wait or have left, and stops
// with an error that names the controller which does not answer.
func TestSettled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	waits, left, gone, busy := &caller{waits: true}, &caller{left: true}, &caller{gone: true}, &caller{}
	now := time.Now()
	long := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		wait    int
		moments int
		callers map[string]*caller
		heard   time.Time
		more    func(*served)
		ok      bool
		want    string
	}{
		"all wait":                {2, 1, map[string]*caller{"a": waits, "b": left}, now, nil, true, ""},
		"one is missing":          {2, 1, map[string]*caller{"a": waits}, now, nil, false, ""},
		"one never comes":         {2, 1, map[string]*caller{"a": waits}, long, nil, false, "no more than 1 of 2 controllers have called http://" + listener.Addr().String() + "/next within 1m0s"},
		"one is busy at first":    {2, 1, map[string]*caller{"a": waits, "b": busy}, now, nil, false, ""},
		"later, fewer are left":   {2, 2, map[string]*caller{"a": waits}, now, nil, true, ""},
		"one works":               {1, 2, map[string]*caller{"a": busy}, now, nil, false, ""},
		"one is silent":           {1, 2, map[string]*caller{"b": busy, "a": busy, "c": waits}, long, nil, false, "controller a, b has not answered for 1m0s at 5ms: want a call of http://" + listener.Addr().String() + "/next?name=a, or of /done at its end"},
		"one is silent in a call": {1, 2, map[string]*caller{"a": busy}, long, func(d *served) { d.active = map[*servedCall]bool{{}: true} }, false, ""},
		"a stream is no call":     {1, 2, map[string]*caller{"a": busy}, long, func(d *served) { d.active = map[*servedCall]bool{{SimCall: p4rt.SimCall{Stream: true}}: true} }, false, "controller a has not answered"},
		"one has gone":            {1, 2, map[string]*caller{"a": gone}, now, nil, false, "controller a has gone at 5ms: it closed its connection while it waited for /next"},
		"real time, no stream":    {0, 1, nil, now, nil, false, ""},
		"real time, never":        {0, 1, nil, long, nil, false, "no controller has opened a stream to a switch within 1m0s"},
		"real time, over":         {0, 2, nil, now, func(d *served) { d.began, d.called = long, long }, true, ""},
		"real time, to come":      {0, 2, nil, now, func(d *served) { d.began, d.called = now.Add(time.Hour), long }, false, ""},
		"real time, queued":       {0, 2, nil, now, func(d *served) { d.began, d.called, d.queued = long, long, 1 }, false, ""},
		"real time, queued long":  {0, 2, nil, now, func(d *served) { d.began, d.called, d.queued, d.opened = long, long, 1, long }, true, ""},
		"real time, begins":       {0, 1, nil, now, func(d *served) { d.sessions = map[string]bool{"a": true}; d.called = long; d.o.Slow = 1e6 }, false, ""},
	} {
		d := &served{o: &Serve{Wait: c.wait, Timeout: time.Minute, Start: time.Minute, Slow: 1, Log: func(string) {}}, moments: c.moments, callers: c.callers, heard: c.heard, opened: now, listen: []net.Listener{listener}}
		if c.more != nil {
			c.more(d)
		}
		ok, again, err := d.settled(5 * time.Millisecond)
		if ok != c.ok || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, again in %v, %v: want %v, %q", name, ok, again, err, c.ok, c.want)
		}
		if wantTime := !ok && err == nil; (again > 0) != wantTime {
			t.Errorf("%s: again in %v", name, again)
		}
	}
	// A moment that takes long although controllers work is reported once.
	var said []string
	d := &served{o: &Serve{Wait: 1, Timeout: time.Minute, Log: func(text string) { said = append(said, text) }}, moments: 2, callers: map[string]*caller{"a": busy}, heard: now, opened: long, listen: []net.Listener{listener}}
	for range 3 {
		if ok, _, err := d.settled(5 * time.Millisecond); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "the clock has stood at 5ms for 1h0m") || !strings.Contains(said[0], "controller a has not finished") {
		t.Errorf("%q", said)
	}
	said = nil
	for i := range 25 {
		d.log("line %d", i)
	}
	if len(said) != 21 || said[19] != "line 19" || !strings.HasPrefix(said[20], "further lines") {
		t.Errorf("%d lines: %q", len(said), said)
	}
	// A client that does not read its answer ends the run; other calls only delay it.
	d.active = map[*servedCall]bool{{SimCall: p4rt.SimCall{Client: "x", Method: "Read"}, sw: "l1", began: long}: true}
	if ok, again, err := d.quiet(5 * time.Millisecond); ok || err != nil || again != time.Millisecond {
		t.Errorf("a call in progress: %v, %v, %v", ok, again, err)
	}
	d.active = map[*servedCall]bool{{SimCall: p4rt.SimCall{Client: "x", Method: "Read", Stream: true}, sw: "l1", began: long}: true}
	if _, _, err := d.quiet(5 * time.Millisecond); err == nil || err.Error() != "the controller at x does not take in the answer to its Read to l1 at 5ms: no end within 1m0s" {
		t.Errorf("an answer that is not read: %v", err)
	}
	d.active = nil
	if ok, _, err := d.quiet(5 * time.Millisecond); !ok || err != nil {
		t.Errorf("no call: %v, %v", ok, err)
	}
}
