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
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// simple_switch forwards about 8,000 packets per second with TCP across two leaves and two
// spines, which gives ecmp 48 Mbit/s. Probes with the papers' periods (200 us, 500 us) would take
// all of that. This is the default limit for probes in packets per second of a switch.
const probeBudget = 400

// An embedded switch needs about hopTime of processor time per probe: 3.2 to 3.6 us, measured
// with 5,000 to 48,000 probe hops per second on 20 switches. All switches together get hopBudget
// hops per second, 2 % of a core. The papers' periods need more than a core.
const (
	hopTime   = 3400 * time.Nanosecond
	hopBudget = 6000
	idleShare = 0.05 // share of a core, in a network without traffic
)

// longestPeriod is the longest period to which slow tasks can raise a parameter.
const longestPeriod = time.Second

// A pacedParameter is the time between packets that the controller sends.
// Parameters that must be longer by a factor follow it.
type pacedParameter struct {
	name    string
	task    manifest.TaskKind
	follows map[string]int
}

var paced = []pacedParameter{
	{"tprobe", manifest.ProbeFlood, map[string]int{"tfail": 3}}, // HULA discards a path after a few periods.
	{"tpath", manifest.PathProbe, nil},
}

// paths paces tpath on embedded switches. PDLB computes its granularity from delays that probes
// measure, which costs about as much as the probes.
var paths = pacedParameter{"tpath", manifest.PathProbe, map[string]int{"period": 4}}

// idleOnly is the only paced parameter on embedded switches if a scheme has it: DHLB's probes
// depend on the load, and tmax is their period without traffic.
var idleOnly = pacedParameter{"tmax", manifest.ProbeFlood, nil}

// A pacing is the choice of periods that the switches can carry.
type pacing struct {
	least  time.Duration     // shortest period, raised after tasks were too slow
	papers map[string]string // the defaults of the parameters that pace has set
}

// choose sets the periods of probes in a request to values that the target's switches can handle,
// unless the user has set them. It logs how to get the paper's periods. t is the topology without
// failures, so that a failed link does not change the programs.
func (c *pacing) choose(r *cli.Request, t *fabric.Topology, target string, log *slog.Logger) error {
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
	for name := range c.papers { // leftovers of an earlier plan
		delete(r.Set, name)
	}
	c.papers = map[string]string{}
	set := func(name string, to time.Duration) {
		if _, own := r.Set[name]; !own && defaults[name] != "" {
			r.Set[name] = to.String()
			c.papers[name] = defaults[name]
		}
	}
	list := paced
	if target == targetEmbedded {
		list = []pacedParameter{paced[0], paths}
		if defaults[idleOnly.name] != "" {
			list = []pacedParameter{idleOnly}
		}
	}
	for _, p := range list {
		paper := defaults[p.name]
		period, err := time.ParseDuration(paper)
		if err != nil {
			continue
		}
		carried, reason := probePeriod(t), "which simple_switch carries"
		if target == targetEmbedded {
			hops := task.Hops(t, p.task)
			if own, ok := r.Set[p.name]; ok {
				warnOfCost(log, p.name, own, hops)
			}
			carried, reason = periodOf(hops, hopBudget), "so that idle switches take little of a core"
		}
		slowest := max(carried, c.least)
		if _, own := r.Set[p.name]; own || period >= slowest {
			continue
		}
		set(p.name, slowest)
		for name, factor := range p.follows {
			set(name, time.Duration(factor)*slowest)
		}
		if slowest == c.least {
			reason = "which the tasks can keep"
		}
		log.Info(fmt.Sprintf("probes are sent every %v, %s; %s has the paper's %s", slowest, reason, flags(c.papers), paper), "parameter", p.name)
	}
	return nil
}

// warnOfCost logs the processor time of probes with a period of the user, if it
// exceeds an idle network's share.
func warnOfCost(log *slog.Logger, name, value string, hops int) {
	period, err := time.ParseDuration(value)
	if err != nil || period <= 0 {
		return // the generator reports it
	}
	share := float64(hops) * float64(hopTime) / float64(period)
	if share > idleShare {
		log.Warn(fmt.Sprintf("probes with %s=%s take about %.0f %% of a core, also without traffic; p4lb's period is %v", name, value, 100*share, periodOf(hops, hopBudget)), "parameter", name)
	}
}

// flags returns parameters as flags of deploy.
func flags(values map[string]string) string {
	var list []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(values))) { // tprobe before tfail
		list = append(list, "--set "+name+"="+values[name])
	}
	return strings.Join(list, " ")
}

// slower returns a period that a slow task can keep: twice the time between its latest runs, or 0
// if there is none. If the user has set the period, it returns advice instead.
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

// probePeriod returns the shortest period of probes for which the busiest switch stays within its
// budget. Each leaf sends a probe over each link to its switch.
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
	return periodOf(len(t.Leaves())*links, probeBudget)
}

// periodOf returns the period, in whole milliseconds, with which n packets a period
// are perSecond at most.
func periodOf(n, perSecond int) time.Duration {
	period := time.Duration(n) * time.Second / time.Duration(perSecond)
	return max(period.Round(time.Millisecond), time.Millisecond)
}
