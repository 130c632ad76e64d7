package task

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// An RTT that stays the same for 16 periods of the probes is overwritten with the largest
// number. A port is silent if all its paths are still overwritten at the next comparison. RTTs
// are compared every 4 periods.
func TestSilence(t *testing.T) {
	const ms = time.Millisecond
	rtts := numbers("rtt", 3*manifest.MaxPaths, manifest.ByPath)
	at := func(group, slot int) int { return group*manifest.MaxPaths + slot }
	groups := []fabric.Group{{ID: 1, Hops: []fabric.Hop{{Port: 2}, {Port: 3}, {Port: 4}}}, {ID: 2, Hops: []fabric.Hop{{Port: 3}, {Port: 4}}}}
	for _, test := range []struct {
		name   string
		silent [][2]int      // group and slot of the paths without probes
		back   time.Duration // time at which a probe of the first returns; 0: never
		lost   time.Duration // first time at which ports are silent
		ports  []int         // the silent ports
		avoids map[int]int   // the silent port that packets for a port avoid
	}{
		{"all paths of a port", [][2]int{{1, 1}, {2, 0}}, 0, 20 * ms, []int{3}, map[int]int{2: 3, 4: 3, 9: 0}},
		{"one path of a port", [][2]int{{1, 1}}, 0, 0, nil, map[int]int{2: 0, 3: 0}},
		{"the only path of a port", [][2]int{{1, 0}}, 0, 20 * ms, []int{2}, map[int]int{3: 2, 4: 2}},
		{"two ports", [][2]int{{1, 0}, {1, 2}, {2, 1}}, 0, 20 * ms, []int{2, 4}, map[int]int{3: 4}},
		{"a probe before the end", [][2]int{{1, 0}}, 15 * ms, 36 * ms, []int{2}, nil},
		{"a probe after the number", [][2]int{{1, 0}}, 17 * ms, 40 * ms, []int{2}, nil},
	} {
		s := &silence{sw: "l1", period: ms, rtts: array(t, rtts), groups: groups, paths: map[[2]int]*watched{}}
		f := &fakeFabric{registers: map[string][]uint64{"rtt": make([]uint64, 3*manifest.MaxPaths)}}
		cells := f.registers["rtt"]
		lost := time.Duration(0)
		for now := time.Duration(0); now <= 48*ms && lost == 0; now += ms / 2 {
			for _, g := range groups {
				for slot := range g.Hops {
					if !slices.Contains(test.silent, [2]int{g.ID, slot}) {
						cells[at(g.ID, slot)] = uint64(now/ms%7) + 1 // a new RTT in each period
					}
				}
			}
			if test.back > 0 && now == test.back {
				cells[at(test.silent[0][0], test.silent[0][1])] = 5
			}
			if err := s.look(now, f); err != nil {
				t.Fatal(err)
			}
			if now < 16*ms && len(f.written) > 0 {
				t.Fatalf("%s: %v at %v", test.name, f.written, now)
			}
			if s.behind(2) || s.behind(3) || s.behind(4) {
				lost = now
			}
		}
		var ports []int
		for port := range 6 {
			if s.behind(port) {
				ports = append(ports, port)
			}
		}
		if lost != test.lost || !slices.Equal(ports, test.ports) {
			t.Errorf("%s: ports %v are silent at %v, want %v at %v", test.name, ports, lost, test.ports, test.lost)
		}
		for port, want := range test.avoids {
			if got := s.avoided(port); got != want {
				t.Errorf("%s: packets for port %d avoid port %d, want %d", test.name, port, got, want)
			}
		}
		if test.back == 0 {
			for _, p := range test.silent {
				if got := cells[at(p[0], p[1])]; got != 65535 {
					t.Errorf("%s: the RTT of path %v is %d, want 65535", test.name, p, got)
				}
			}
			if len(f.written) != len(test.silent) {
				t.Errorf("%s: wrote %v, want each silent path once", test.name, f.written)
			}
		}
	}
}

// At the end of a run, a probe without return is reported if at least two were sent in at
// least a millisecond.
func TestFinish(t *testing.T) {
	for _, test := range []struct {
		name    string
		sent    int
		took    time.Duration
		returns string
		alert   bool
		changed bool
		want    string
	}{
		{"two probes", 2, time.Millisecond, "seen", true, false, "l1: none of 2 probes from the CPU port for the link to s1 has come back within 1ms: register seen has not changed"},
		{"one probe", 1, time.Second / 2, "seen", true, false, ""},
		{"too short", 2, time.Millisecond - 1, "seen", true, false, ""},
		{"a return", 2, time.Millisecond, "seen", true, true, ""},
		{"no register", 2, time.Millisecond, "", true, false, ""},
		{"no receiver of alerts", 2, time.Millisecond, "seen", false, false, ""},
	} {
		f := &fakeFabric{registers: map[string][]uint64{"seen": {0, 7}}}
		var alerts []string
		send := &sendTask{identity: identity{sw: "l1"}, Frame: plan.Frame{Every: 10 * time.Microsecond, Bytes: []byte{1}, Returns: test.returns, Cells: 2, Toward: "s1"}}
		if test.alert {
			send.alert = func(a Alert) { alerts = append(alerts, a.String()) }
		}
		for range test.sent {
			if _, err := send.Run(time.Minute, f); err != nil {
				t.Fatal(err)
			}
		}
		if test.changed {
			f.registers["seen"][0]++
		}
		for range 2 { // an alert is not repeated
			if err := send.Finish(time.Minute+test.took, f); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if got := strings.Join(alerts, "\n"); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	f := &fakeFabric{registers: map[string][]uint64{"seen": {0}}}
	send := &sendTask{identity: identity{sw: "l1"}, Frame: plan.Frame{Bytes: []byte{1}, Returns: "seen", Cells: 1}, alert: func(Alert) {}}
	for range 2 {
		if _, err := send.Run(time.Minute, f); err != nil {
			t.Fatal(err)
		}
	}
	delete(f.registers, "seen")
	if err := send.Finish(time.Minute+time.Second, f); err == nil {
		t.Error("a register that cannot be read is no error")
	}
}

// A register for each slot of a group is compared as one register for all paths is. The task
// reports a switch that does not answer, and compares again at its next time.
func TestSilenceOfSlots(t *testing.T) {
	const ms = time.Millisecond
	rtts := array(t, numbers("rtt0", 3, manifest.ByGroup))
	rtts.Parts = append(rtts.Parts, rtts.Parts[0])
	rtts.Parts[1].Register = &manifest.Register{Name: "rtt1", Size: 3}
	s := &silence{sw: "l1", period: ms, rtts: rtts, groups: []fabric.Group{{ID: 2, Hops: []fabric.Hop{{Port: 2}, {Port: 3}}}}, paths: map[[2]int]*watched{}}
	f := &failingFabric{fakeFabric: fakeFabric{registers: map[string][]uint64{"rtt0": {0, 0, 7}, "rtt1": {0, 0, 8}}}}
	for now := time.Duration(0); now <= 24*ms; now += 4 * ms {
		f.registers["rtt0"][2]++ // probes of the first path return
		f.down = ""
		if now == 8*ms {
			f.down = "l1"
		}
		if err := s.look(now, f); (err != nil) != (now == 8*ms) {
			t.Errorf("at %v: %v", now, err)
		}
	}
	if want := []string{"rtt1[2..3]=65535"}; !slices.Equal(f.written, want) {
		t.Errorf("written %q, want %q", f.written, want)
	}
	if s.behind(2) || !s.behind(3) {
		t.Errorf("port 2 is silent: %v, port 3: %v; want only port 3", s.behind(2), s.behind(3))
	}
	// The task ends its run with the error.
	s.next, f.down = 0, "l1"
	task := &failureTask{identity: identity{manifest.FailureWatch, "l1"}, period: 3 * ms, silence: s}
	if next, err := task.Run(30*ms, f); err == nil || next != 33*ms {
		t.Errorf("a run without an answer: %v, next at %v", err, next)
	}
}
