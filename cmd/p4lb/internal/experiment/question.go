package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A labQuestion is an experiment asked by flags.
type labQuestion struct {
	scheme, blocks, topology, workload, pattern, transport, engine, arch, coeffs, state, cut, loadOf, like, parameters string
	vs, fail, set, metrics                                                                                             []string
	loads                                                                                                              []string
	seeds                                                                                                              int
	duration                                                                                                           time.Duration
	ecn                                                                                                                int
	pfc                                                                                                                bool
}

func (q *labQuestion) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.scheme, "scheme", "", "the `SCHEME`, such as qall-poly3, drill+rlb or ./mine")
	cli.AddBlocksFlag(cmd, &q.blocks)
	f.StringSliceVar(&q.vs, "vs", nil, "compare with these `SCHEMES`")
	f.StringVar(&q.workload, "workload", "websearch", "flow sizes: a `NAME` of lab list workloads, or a file of lines \"bytes p\"")
	f.StringVar(&q.cut, "cut", "", "no flow is larger than `SIZE`, 0 for as large as they come: a short run is then not about one flow (default "+quickCut+" of a distribution)")
	f.StringSliceVar(&q.loads, "load", []string{"0.7"}, "`LOAD` from 0 to 1 (repeatable)")
	f.StringVar(&q.loadOf, "load-of", spec.OfFabric, "what a load of 1 is: `BASE` fabric (the links from leaves to spines), hosts (those that send), or a rate")
	f.StringVar(&q.topology, "topology", quickNetwork, "the network: a `FILE` or a preset of p4lb topo presets")
	f.StringArrayVar(&q.fail, "fail", nil, "a `LINK` is down: one by a port, as in l1:3, or all between two nodes, as in l1-s1 (repeatable)")
	f.StringVar(&q.pattern, "pattern", spec.Halves, "who sends to whom: "+strings.Join(spec.Patterns[:4], ", "))
	f.StringVar(&q.transport, "transport", "tcp", "what hosts send with: "+strings.Join(spec.Transports, ", "))
	f.IntVar(&q.ecn, "ecn", 0, "switches mark from `N` packets on (default 65 with dctcp, else never)")
	f.BoolVar(&q.pfc, "pfc", false, "links are lossless: PFC")
	f.DurationVar(&q.duration, "duration", 0, fmt.Sprintf("flows begin within this virtual `TIME` (default the time in which %d do)", quickFlows))
	f.IntVar(&q.seeds, "seeds", 5, "run with the seeds 1 to `N`")
	f.StringArrayVar(&q.set, "set", nil, "set a parameter of all schemes that have it, as `NAME=VALUE` (repeatable)")
	f.StringVar(&q.parameters, "parameters", "", "what parameters are that --set does not: `WHICH` of advised (p4lb advise, for the network) and default (the catalogue's) (default advised where there is advice)")
	cli.CompleteWith(cmd, "parameters", []string{spec.AdvisedValues, spec.DefaultValues})
	f.StringVar(&q.coeffs, "coeffs", "", "the polynomial of a fitted --scheme: a model's `FILE`, as p4lb fit writes it")
	f.StringSliceVar(&q.metrics, "metrics", nil, "`METRICS` of the table, of lab list metrics")
	f.StringVar(&q.like, "like", "", "where simulators differ, model as `WHAT` does: "+strings.Join(spec.Presets, ", ")+" (lab defaults says what that is)")
	f.StringVar(&q.engine, "engine", spec.EngineP4, "what the switches run: p4, or native for the models, which is faster")
	cli.AddArchFlag(cmd, &q.arch, "what the programs are for, or drill@tna for one row (default v1model)")
	f.StringVar(&q.state, "state-path", "", "how queue state reaches ingress: recirc, shared, or for Tofino 2 ghost (default recirc)")
	cli.CompleteWith(cmd, "state-path", codegen.StatePaths)
	cli.CompleteLater(cmd, "scheme", codegen.Names)
	cli.CompleteLater(cmd, "vs", codegen.Names)
	cli.CompleteWith(cmd, "workload", spec.Workloads())
	cli.CompleteWith(cmd, "like", spec.Presets)
	cli.CompleteWith(cmd, "transport", spec.Transports)
	cli.CompleteWith(cmd, "engine", []string{spec.EngineP4, spec.EngineNative})
}

// What a question is about that leaves it open: a fabric that limits before its
// hosts do, flows that end within the run, and enough of them to tell schemes
// apart in about a minute.
const (
	quickNetwork = "leaf-spine"
	quickCut     = "2MB"
	quickFlows   = 1000
)

// experiment is what the flags ask for. Where there is no advice for the network,
// and none was asked for, the catalogue's parameters are taken, and a warning says
// so.
func (q *labQuestion) experiment(c *cli.Console, cmd *cobra.Command) (*spec.Experiment, error) {
	values := cmp.Or(q.parameters, spec.AdvisedValues)
	x, err := q.asked(cmd, values)
	if errors.Is(err, spec.ErrNoAdvice) && q.parameters == "" {
		c.Warning("%v; the catalogue's parameters are used", err)
		return q.asked(cmd, spec.DefaultValues)
	}
	return x, err
}

// asked is the experiment with the parameters of one kind.
func (q *labQuestion) asked(cmd *cobra.Command, values string) (*spec.Experiment, error) {
	switch {
	case q.scheme == "":
		return nil, cli.UsageError(cmd, "lab wants a --scheme, or a verb: run, paper or list")
	case q.seeds < 1 || q.seeds > 1000:
		return nil, cli.UsageError(cmd, "--seeds %d: want 1 to 1000", q.seeds)
	case q.duration < 0 || q.duration == 0 && cmd.Flags().Changed("duration"):
		return nil, cli.UsageError(cmd, "--duration %v: want a time above 0", q.duration)
	}
	x := &spec.Experiment{Name: "lab", Engine: q.engine, Arch: q.arch, State: q.state, Blocks: q.blocks, Seeds: spec.FirstSeeds(q.seeds), Metrics: q.metrics, Values: values}
	x.Topology.Name, x.Fail = q.topology, q.fail
	x.Traffic = []spec.Traffic{{Workload: q.workload, Pattern: q.pattern, LoadOf: q.loadOf}}
	if cut := cmp.Or(q.cut, quickCut); cut != "0" {
		if err := x.Traffic[0].Cut.Parse(cut); err != nil {
			return nil, cli.UsageError(cmd, "--cut: %w", err)
		}
	}
	x.Transport.Kind, x.Duration = q.transport, spec.Time(q.duration)
	x.Switches.ECN, x.Switches.PFC, x.Like = q.ecn, &q.pfc, q.like
	if q.ecn == 0 && q.transport == "dctcp" {
		x.Switches.ECN = 65
	}
	for _, text := range q.loads {
		var l spec.LoadLevel
		if err := l.Parse(text); err != nil {
			return nil, cli.UsageError(cmd, "--load: %w", err)
		}
		x.Loads = append(x.Loads, l)
	}
	if q.duration == 0 {
		// What is wrong with the experiment is for Complete to say, by its key.
		if length, err := x.LengthFor(quickFlows, plain.ReadFile); err == nil {
			x.Duration = spec.Time(length)
		}
	}
	set, err := cli.Assigned(cmd, q.set)
	if err != nil {
		return nil, err
	}
	x.Cases = []spec.Case{{Set: set}}
	for i, name := range append([]string{q.scheme}, q.vs...) {
		s := spec.Scheme{Scheme: name}
		if i == 0 {
			s.Coeffs = q.coeffs
			if q.coeffs != "" {
				s.Label = name + "-fitted"
			}
		}
		x.Schemes = append(x.Schemes, s)
	}
	x.About = q.about()

	return x, x.Complete("the experiment", plain.ReadFile, cli.LibraryFrom("."))
}

// about is the question in a line.
func (q *labQuestion) about() string {
	text := q.scheme
	if len(q.vs) > 0 {
		text += " against " + strings.Join(q.vs, ", ")
	}
	return text + fmt.Sprintf(": %s at load %s of the %s in %s", q.workload, strings.Join(q.loads, ", "), q.loadOf, q.topology)
}
