package network

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// simple_switch carries some 8,000 packets per second with TCP across two leaves
// and two spines, where ecmp gets 48 Mbit/s; probes at the periods of the papers
// (200 us, 500 us) take all of that. Probes get so many packets per second of a
// switch by default.
const probeBudget = 400

// longestPeriod bounds the period that slow tasks can bring about.
const longestPeriod = time.Second

// paced parameters are the times between packets that the controller sends.
// Parameters that must be longer by a factor follow them.
var paced = []struct {
	name    string
	task    manifest.TaskKind
	follows map[string]int
}{
	{"tprobe", manifest.ProbeFlood, map[string]int{"tfail": 3}}, // HULA gives a path up after a few periods
	{"tpath", manifest.PathProbe, nil},
}

// A pacing is the choice of periods that simple_switch carries.
type pacing struct {
	least  time.Duration     // periods are at least this long, because tasks were too slow
	papers map[string]string // the defaults of the parameters that pace has set
}

// choose sets the periods of probes in a request to what simple_switch carries,
// unless the user has set them, and logs how to get the paper's.
func (c *pacing) choose(r *cli.Request, t *fabric.Topology, log *slog.Logger) error {
	schemes, err := r.Schemes()
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
	slowest := max(probePeriod(t), c.least)
	for name := range c.papers { // of an earlier plan
		delete(r.Set, name)
	}
	c.papers = map[string]string{}
	set := func(name string, to time.Duration) {
		if _, own := r.Set[name]; !own && defaults[name] != "" {
			r.Set[name] = to.String()
			c.papers[name] = defaults[name]
		}
	}
	for _, p := range paced {
		paper := defaults[p.name]
		period, err := time.ParseDuration(paper)
		if _, own := r.Set[p.name]; own || err != nil || period >= slowest {
			continue
		}
		set(p.name, slowest)
		for name, factor := range p.follows {
			set(name, time.Duration(factor)*slowest)
		}
		reason := "which simple_switch carries"
		if slowest == c.least {
			reason = "which the tasks can keep"
		}
		log.Info(fmt.Sprintf("probes are sent every %v, %s; %s has the paper's %s", slowest, reason, flags(c.papers), paper), "parameter", p.name)
	}
	return nil
}

// flags returns parameters as flags of deploy.
func flags(values map[string]string) string {
	var list []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(values))) { // tprobe before tfail
		list = append(list, "--set "+name+"="+values[name])
	}
	return strings.Join(list, " ")
}

// slower returns a period that a slow task can keep, twice the time between its
// latest runs, or 0 if there is none. If the user has set the period, it returns
// advice instead.
func (c *pacing) slower(s controller.Slowness) (period time.Duration, advice string) {
	for _, p := range paced {
		if string(p.task) != s.Task {
			continue
		}
		period := min(max((2*s.Lately).Round(time.Millisecond), time.Millisecond), longestPeriod)
		if period <= s.Period {
			return 0, ""
		}
		if _, chosen := c.papers[p.name]; chosen {
			return period, ""
		}
		fit := map[string]string{p.name: period.String()}
		for name, factor := range p.follows {
			fit[name] = (time.Duration(factor) * period).String()
		}
		return 0, "deploy with " + flags(fit)
	}
	return 0, ""
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
