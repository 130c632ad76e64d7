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

// A labQuestion contains the flags that describe an experiment without a file.
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
	f.StringVar(&q.cut, "cut", "", "limit flow sizes to `SIZE`, so that a single flow does not dominate a short run; none for no limit (default "+spec.DefaultCut.String()+")")
	f.StringSliceVar(&q.loads, "load", []string{spec.Number(spec.DefaultLoad)}, "`LOAD` from 0 to 1 (repeatable)")
	f.StringVar(&q.loadOf, "load-of", spec.DefaultLoadOf, "a load of 1 is the capacity of `BASE`: fabric (the links from leaves to spines), hosts (the sending hosts), or a rate")
	f.StringVar(&q.topology, "topology", spec.DefaultTopology, "the network: a `FILE` or a preset of p4lb topo presets")
	f.StringArrayVar(&q.fail, "fail", nil, "take down a `LINK`: the one at a port, such as l1:3, or all between two nodes, such as l1-s1 (repeatable)")
	f.StringVar(&q.pattern, "pattern", spec.DefaultPattern, "the traffic pattern: "+strings.Join(spec.Patterns[:4], ", "))
	f.StringVar(&q.transport, "transport", "tcp", "transport of the hosts: "+strings.Join(spec.Transports, ", "))
	f.StringVar(&q.ecn, "ecn", "", "switches mark from `N` queued packets on; none: never (default 65 with dctcp and dcqcn, or a quarter of a shorter queue; with uec from the bandwidth-delay product; otherwise none)")
	f.BoolVar(&q.pfc, "pfc", false, "make links lossless with PFC")
	f.DurationVar(&q.duration, "duration", 0, fmt.Sprintf("flows start within this virtual `TIME` (default: the time in which %d flows start)", spec.DefaultFlows))
	f.StringVar(&q.seeds, "seeds", fmt.Sprint(spec.DefaultSeeds), "run with the seeds 1 to `N`, or with a list such as 3,5,8-12")
	f.StringArrayVar(&q.set, "set", nil, "set a parameter of all schemes that have it, as `NAME=VALUE` (repeatable)")
	f.StringVar(&q.parameters, "parameters", "", "values of parameters without --set: `WHICH` is advised (computed by p4lb advise for the network) or default (the catalogue's) (default advised if available)")
	cli.CompleteWith(cmd, "parameters", []string{spec.AdvisedValues, spec.DefaultValues})
	f.StringVar(&q.coeffs, "coeffs", "", "polynomial of a fitted --scheme: a model `FILE` written by p4lb fit")
	f.StringSliceVar(&q.metrics, "metrics", nil, "show these `METRICS`; lab list metrics lists all")
	f.BoolVar(&q.ipv6, "ipv6", false, "give hosts IPv6 addresses instead of IPv4 addresses")
	f.StringVar(&q.like, "like", "", "use the modelling choices of `WHAT`: "+strings.Join(spec.Presets, ", ")+" (see lab defaults)")
	f.StringVar(&q.engine, "engine", spec.EngineP4, "run the switches with this `ENGINE`: p4 (programs), or native (models, faster)")
	cli.AddArchFlag(cmd, &q.arch, "architecture `ARCH` of the programs: v1model, tna or t2na (default v1model); drill@tna sets it for one row")
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
		return nil, cli.UsageError(cmd, "lab requires --scheme, or a verb such as run, paper or list")
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

// about describes the question in one line.
func (q *labQuestion) about() string {
	text := q.scheme
	if len(q.vs) > 0 {
		text += " against " + strings.Join(q.vs, ", ")
	}
	return text + fmt.Sprintf(": %s at load %s of the %s in %s", q.workload, strings.Join(q.loads, ", "), q.loadOf, q.topology)
}
