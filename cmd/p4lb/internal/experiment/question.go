package experiment

import (
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
	seeds                                                                                                              string
	duration                                                                                                           time.Duration
	ecn                                                                                                                string
	pfc                                                                                                                bool
	ipv6                                                                                                               bool
}

func (q *labQuestion) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.scheme, "scheme", "", "the `SCHEME`, such as qall-poly3, drill+rlb or ./mine")
	cli.AddBlocksFlag(cmd, &q.blocks)
	f.StringSliceVar(&q.vs, "vs", nil, "compare with these `SCHEMES`")
	f.StringVar(&q.workload, "workload", spec.DefaultWorkload, "flow sizes: a `NAME` of lab list workloads, or a file of lines \"bytes p\"")
	f.StringVar(&q.cut, "cut", "", "no flow of a distribution is larger than `SIZE`, so that one flow does not decide a short run; none for no limit (default "+spec.DefaultCut.String()+")")
	f.StringSliceVar(&q.loads, "load", []string{spec.Number(spec.DefaultLoad)}, "`LOAD` from 0 to 1 (repeatable)")
	f.StringVar(&q.loadOf, "load-of", spec.DefaultLoadOf, "load 1 is the capacity of `BASE`: fabric (the links from leaves to spines), hosts (the sending hosts), or a rate")
	f.StringVar(&q.topology, "topology", spec.DefaultTopology, "the network: a `FILE` or a preset of p4lb topo presets")
	f.StringArrayVar(&q.fail, "fail", nil, "a `LINK` is down: one by a port, as in l1:3, or all between two nodes, as in l1-s1 (repeatable)")
	f.StringVar(&q.pattern, "pattern", spec.DefaultPattern, "the traffic pattern: "+strings.Join(spec.Patterns[:4], ", "))
	f.StringVar(&q.transport, "transport", "tcp", "what hosts send with: "+strings.Join(spec.Transports, ", "))
	f.StringVar(&q.ecn, "ecn", "", "switches mark from `N` packets on, none for never (default 65 with dctcp and dcqcn, or a quarter of a shorter queue; with uec by the bytes of a round trip; else none)")
	f.BoolVar(&q.pfc, "pfc", false, "links are lossless: PFC")
	f.DurationVar(&q.duration, "duration", 0, fmt.Sprintf("flows begin within this virtual `TIME` (default the time in which %d do)", spec.DefaultFlows))
	f.StringVar(&q.seeds, "seeds", fmt.Sprint(spec.DefaultSeeds), "run with the seeds 1 to `N`, or with a list such as 3,5,8-12")
	f.StringArrayVar(&q.set, "set", nil, "set a parameter of all schemes that have it, as `NAME=VALUE` (repeatable)")
	f.StringVar(&q.parameters, "parameters", "", "what parameters are that --set does not: `WHICH` of advised (p4lb advise, for the network) and default (the catalogue's) (default advised where there is advice)")
	cli.CompleteWith(cmd, "parameters", []string{spec.AdvisedValues, spec.DefaultValues})
	f.StringVar(&q.coeffs, "coeffs", "", "the polynomial of a fitted --scheme: a model's `FILE`, as p4lb fit writes it")
	f.StringSliceVar(&q.metrics, "metrics", nil, "`METRICS` of the table, of lab list metrics")
	f.BoolVar(&q.ipv6, "ipv6", false, "hosts have IPv6 addresses in place of IPv4 ones")
	f.StringVar(&q.like, "like", "", "where simulators differ, model as `WHAT` does: "+strings.Join(spec.Presets, ", ")+" (see lab defaults)")
	f.StringVar(&q.engine, "engine", spec.EngineP4, "run the switches with this `ENGINE`: p4, or native for the models, which is faster")
	cli.AddArchFlag(cmd, &q.arch, "the architecture of the programs, or drill@tna for one row (default v1model)")
	f.StringVar(&q.state, "state-path", "", "how queue state reaches ingress: recirc, recirc-cut (copies without payload, not on BMv2), shared, or for Tofino 2 ghost (default recirc)")
	cli.CompleteWith(cmd, "state-path", codegen.StatePaths)
	cli.CompleteLater(cmd, "scheme", codegen.Names)
	cli.CompleteLater(cmd, "vs", codegen.Names)
	cli.CompleteWith(cmd, "workload", spec.Workloads())
	cli.CompleteWith(cmd, "like", spec.Presets)
	cli.CompleteWith(cmd, "transport", spec.Transports)
	cli.CompleteWith(cmd, "engine", []string{spec.EngineP4, spec.EngineNative})
}

// experiment returns the experiment of the flags, with the defaults of a file.
func (q *labQuestion) experiment(cmd *cobra.Command) (*spec.Experiment, error) {
	switch {
	case q.scheme == "":
		return nil, cli.UsageError(cmd, "lab wants a --scheme, or a verb: run, paper or list")
	case q.duration < 0 || q.duration == 0 && cmd.Flags().Changed("duration"):
		return nil, cli.UsageError(cmd, "--duration %v: want a time above 0", q.duration)
	}
	x := &spec.Experiment{Name: "lab", Engine: q.engine, Arch: q.arch, State: q.state, Blocks: q.blocks, Metrics: q.metrics, Values: q.parameters}
	x.Topology.Name, x.Fail, x.IPv6 = q.topology, q.fail, q.ipv6
	var err error
	if x.Seeds, err = spec.ParseSeeds(q.seeds); err != nil {
		return nil, cli.UsageError(cmd, "--%w", err)
	}
	x.Traffic = []spec.Traffic{{Workload: q.workload, Pattern: q.pattern, LoadOf: q.loadOf}}
	if q.cut != "" {
		if err := x.Traffic[0].Cut.Parse(q.cut); err != nil {
			return nil, cli.UsageError(cmd, "--cut: %w", err)
		}
	}
	x.Transport.Kind, x.Duration = q.transport, spec.Time(q.duration)
	x.Like = q.like
	if q.pfc {
		x.Switches.PFC = &q.pfc
	}
	if q.ecn != "" {
		if err := x.Switches.ECN.Parse(q.ecn); err != nil {
			return nil, cli.UsageError(cmd, "--ecn: %w", err)
		}
	}
	for _, text := range q.loads {
		var l spec.LoadLevel
		if err := l.Parse(text); err != nil {
			return nil, cli.UsageError(cmd, "--load: %w", err)
		}
		x.Loads = append(x.Loads, l)
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
