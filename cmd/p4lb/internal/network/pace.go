package network

import (
	"fmt"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// simple_switch carries some 8,000 packets per second with TCP across two leaves
// and two spines, where ecmp gets 48 Mbit/s; probes at the periods of the papers
// (200 us, 500 us) take all of that. Probes get so many packets per second of a
// switch by default.
const probeBudget = 400

// paced parameters are the times between packets that the controller sends.
// Parameters that must be longer by a factor follow them.
var paced = []struct {
	name    string
	follows map[string]int
}{
	{"tprobe", map[string]int{"tfail": 3}}, // HULA gives a path up after a few periods
	{"tpath", nil},
}

// pace sets the periods of probes to what simple_switch carries, unless the user
// has set them, and prints how to get the paper's.
func (j *deployJob) pace(t *fabric.Topology) error {
	if j.target != targetBMv2 {
		return nil
	}
	schemes, err := j.request.Schemes()
	if err != nil {
		return err
	}
	params, err := schemes[0].Parameters(string(codegen.Archs[0]))
	if err != nil {
		return err
	}
	defaults := map[string]string{}
	for _, p := range params {
		defaults[p.Name] = p.Default
	}
	slowest := probePeriod(t)
	for _, p := range paced {
		paper, known := defaults[p.name]
		period, err := time.ParseDuration(paper)
		if _, set := j.request.Set[p.name]; !known || set || err != nil || period >= slowest {
			continue
		}
		var back []string
		choose := func(name string, to time.Duration) {
			if _, set := j.request.Set[name]; !set {
				j.request.Set[name] = to.String()
				back = append(back, "--set "+name+"="+defaults[name])
			}
		}
		choose(p.name, slowest)
		for name, factor := range p.follows {
			if defaults[name] != "" {
				choose(name, time.Duration(factor)*slowest)
			}
		}
		j.c.Log.Info(fmt.Sprintf("probes are sent every %v, which simple_switch carries; %s has the paper's %s", slowest, strings.Join(back, " "), paper), "parameter", p.name)
	}
	return nil
}

// probePeriod is the time between probes with which the busiest switch gets no
// more than its budget: each leaf sends a probe over each link to its switch.
func probePeriod(t *fabric.Topology) time.Duration {
	links := 0
	for _, s := range t.Switches {
		n := 0
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier > 0 {
				n++
			}
		}
		links = max(links, n)
	}
	period := time.Duration(len(t.Leaves())*links) * time.Second / probeBudget
	return max(period.Round(time.Millisecond), time.Millisecond)
}
