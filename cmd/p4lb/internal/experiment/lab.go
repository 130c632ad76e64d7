// Package experiment holds the verbs about experiments: running them here and on
// clusters, and showing their results.
package experiment

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// New returns the verb lab.
func New(c *cli.Console) *cobra.Command {
	j := &labJob{c: c}
	q := &labQuestion{}
	cmd := &cobra.Command{
		SuggestFor: []string{"simulate", "sim", "experiment", "compare"},
		Use:        "lab --scheme S [--vs S,S…] [--workload W] [--load L]",
		Short:      "Compare schemes in a simulated network that runs their programs",
		Long: `Lab runs schemes in a network in virtual time and compares them. Every switch
runs the generated P4 program, deployed by the controller over P4Runtime, with
byte-accurate queues, link rates and losses; hosts send with real transports. The
same seed gives the same result files, on any number of cores.

Programs can be for Tofino, in all rows (--arch tna, t2na) or in one (drill@tna). The
switches then are Tofinos, with queues in cells, mirrors and recirculation ports.

The flows of a run depend only on its seed, so every scheme forwards the same flows.
The table shows means over the seeds with 95 % confidence intervals. Its last column
compares the first scheme with each row, paired by seed. The sentences below it list
the significant differences, how many seeds the other differences would need, and the
bottleneck. If more than 1 % of the flows of a row do not finish, its completion times
are lower bounds (≥) and are not compared. A warning names rows that use only one of
several paths. p4lb lab list metrics defines the columns.

By default a run has about 1000 flows of web search up to 2 MB, at 70 % of
the capacity of the fabric of the preset leaf-spine, with the parameters that p4lb advise
computes for the network. With DCTCP, DCQCN and UEC, switches mark packets (ECN).
Experiment files have the same defaults.

-o names the folder of the results. The default is a folder in results/ with the
experiment's name and digest; the link results/NAME leads to it. The folder contains
report.html, the table, plots, manifest.json with everything needed to repeat the
experiment, and the flows and links of each run in CSV. An interrupted lab keeps
finished runs, and --resume continues from there.

--watch shows the registers of the switches of the first run on the terminal, as
p4lb inspect --watch does for real switches. If you pause the screen, virtual time
stops. --listen shows the registers in a browser. --pcap captures the packets of every
port, with full headers and the length of the payload.

--serve ADDR lets your own controllers drive the switches of the first scheme. p4lb
deploys the scheme; then any P4Runtime client may change tables or push a program. The
page at ADDR lists the switches with address, device id, P4Info and program. Thrift
clients such as simple_switch_CLI use the ports after P4Runtime's. --serve-bfrt
serves BfRt instead, for clients such as bfrt_grpc and schemes for Tofino. The clock
stops every --serve-every, and p4lb processes the requests of controllers. The clock
continues when real time catches up. With --serve-wait N it continues when N
controllers have called ADDR/next, which returns the time of the next stop: see
docs/p4runtime.md.

--store URL shares runs between users and machines: a run in the store is never
repeated, on one machine or on a cluster (lab submit).

  lab run FILE.yaml    run an experiment file, which can set more than the flags
  lab check FILE.yaml  report doubtful settings of an experiment
  lab paper NAME       run a paper's experiments and compare with its printed numbers
  lab report           write the table and the report of the runs in a store
  lab submit           submit the runs to Slurm or Kubernetes; then status, wait, cancel
  lab list             list workloads, metrics and papers
  lab defaults         list modelling choices, in which simulators differ`,
		Example: `  p4lb lab --scheme qall-poly3 --vs ecmp,letflow,drill --workload websearch --load 0.7
  p4lb lab --scheme drill+rlb --vs drill --topology net.yaml --transport dcqcn --engine native
  p4lb lab --scheme drill@tna --vs drill,ecmp@tna --load 0.7
  p4lb lab --scheme wcmp --serve 127.0.0.1:9558 --serve-every 10ms --serve-wait 1
  p4lb lab --scheme ecmp@tna --serve 127.0.0.1:9558 --serve-bfrt --serve-wait 1
  p4lb lab run experiment.yaml -o results/mine
  p4lb lab paper qall fig10`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownVerb(cmd, args[0])
			}
			x, err := q.experiment(cmd)
			if err != nil {
				return err
			}
			return j.run(cmd, []*spec.Experiment{x})
		},
	}
	q.addFlags(cmd)
	j.addFlags(cmd)
	cmd.AddCommand(newLabRun(c), newLabCheck(c), newLabPaper(c), newLabReport(c), newLabSubmit(c), newLabStatus(c), newLabWait(c), newLabCancel(c), newLabList(c), newLabFlows(c), newLabDefaults(c))
	return cmd
}

func newLabRun(c *cli.Console) *cobra.Command {
	j, q := &labJob{c: c}, &labChoice{}
	cmd := &cobra.Command{
		Use:   "run " + choiceUse,
		Short: "Run experiments from files",
		Long: `Run runs experiments from files. Omitted keys have the same defaults as the flags of
p4lb lab. For a folder, run uses its experiment.yaml. Without an argument it uses the
experiment.yaml of the current folder. An argument can also be the name of a paper, of
an experiment of a paper, or of an experiment in the --store.

An experiment file looks like this:

  name: quick
  topology: leaf-spine        # a preset, a file, or a generator:
                              # {leaf-spine: {leaves: 2, spines: 4, hosts: 8, rate: 10G}}
                              # {rail: {rails: 8, servers: 4, spines: 4, planes: 2}}
  schemes:
    - qall-poly3
    - {scheme: drill, label: drill-4, set: {d: 4}}
    - {scheme: drill, arch: tna}    # the program for Tofino; drill@tna is the same
    - {scheme: rps, candidates: paths}    # more traffic for ports with more paths
    - ./mine                              # a program of your own: see p4lb new
  parameters: advised         # values of keys without set: advised (p4lb advise, for
                              # the network) or default (the catalogue)
  traffic:                    # may contain several
    - {workload: websearch, pattern: halves, load-of: fabric, cut: 2MB}    # cut: none
                              # {collective: all-reduce, size: 8MB, repeat: 3}
                              # {pattern: pairs, pairs: [h1-h9], connections: queue-pair}
  jobs:                       # training jobs, with or without other traffic
    - {name: train, placement: packed, ranks: 16, tensor: 4, iterations: 3, phases: [
       {compute: 1ms}, {collective: all-reduce, over: data, size: 8MB}]}    # see docs/formats.md
  loads: [0.5, 0.7]
  transport: dctcp            # tcp, dctcp, dcqcn, udp, uec, or with constants:
                              # {kind: dcqcn, rdma: {cut-interval: 50us, nack-every: 500us}}
                              # {kind: dcqcn, rdma: {nack: irn}}: IRN, in networks that reorder too
                              # {kind: tcp, max-dupacks: 300}: learns from reordering
                              # {kind: uec, entropy: reps, uec: {loss: trim}}
  switches: {ecn: 65, pfc: false}    # ecn: none
  like: ns3                   # modelling choices of this simulator for omitted keys:
                              # see lab defaults
  seeds: 5                    # number of seeds, or a list: [3, 5], or 3,5,8-12
  duration: 2s                # flows start within it (default: 1000 flows); then the
                              # run continues until they end
  warmup: 5%
  faults:
    - {at: 500ms, until: 1s, link: l1-s1, down: true}
    - {at: 1s, until: 1.5s, link: l1-s2, rate: 100Mbps}
    - {at: 1s, switch: s2, rate: 100Mbps, known: true}    # all its links; weights follow
    - {at: 1s, switch: s2, drop: 0.0035}
    - {at: 1s, link: l1-s2, bit-errors: 1e-8}
    - {at: 1s, plane: 2, down: true}    # all links of a plane: see rail and dual-tor
    - {at: 1s, until: 2s, server: h3, down: true}    # h3 leaves the pools of its services
    - {at: 1s, until: 1010ms, every: 100ms, times: 5, link: l1-s1, down: true}    # flaps
  ceiling: [keep-early, fast-core]    # bounds for the gain of any scheme, by removing reordering
                              # or congestion; also no-pauses, oracle
  vary:                       # open choices: --explain reports which choice changes which
    open: {transport.dupacks: [3, 8], set.gap: [100us, 500us]}   # target, by how much
    design: factorial         # combinations: one-at-a-time (none), factorial or morris
    seeds: 3
    at-most: 200              # runs
  engine: native              # models instead of programs: faster, same results
  metrics: [fct-mean, fct-p99:short, queue-variance]
  expect:                     # conditions: lab run exits with 1 if one is not met
    - fct-mean of qall-poly3 < 0.9 * ecmp
    - unfinished == 0         # of each row

An expectation is met if the whole 95 % confidence interval meets it. --junit
writes the checks for CI; --strict fails on warnings and on missed targets too.
Before an experiment runs, lab warns of its doubtful settings, as lab check does. The
warnings are in the report, in manifest.json and on the figures, unless the
experiment accepts them: accept: {hosts-limit: "the network of the paper"}.

A fault takes a link or switch down (the controller is notified), slows a link down
(rate), or makes a switch drop a share of all packets (drop) or all packets of a share
of the host pairs (black-hole), or a link spoil a share of all bits (bit-errors); the
controller is not notified of these. With known: true it learns a rate after latency,
and weights (wcmp) follow. A server leaves the pools of its services, or of service
alone: the controller sends it no new connections, and the host keeps answering. In
real time (--on) links, switches and servers can go down and come up; the other faults
need the simulator.
Programs are for the architecture arch: v1model, tna or t2na, of all rows or of
one. On Tofino probes come from the controller, or with probes: generator from
the packet generator.
With observe: {every: 1ms, test: 0.25} each run notes the traffic of the ports
between switches, their queues and the intervals between packets, and fits them,
for the metrics fit-….
Patterns are ` + strings.Join(spec.Patterns, ", ") + `.
A load is relative to the capacity of the sending hosts (load-of: hosts) or of the
links between leaves and spines (fabric), or to a rate. Files and programs
are found beside the experiment, files else from where p4lb runs.`,
		Example: `  p4lb lab run experiment.yaml
  p4lb lab run experiment.yaml --resume --cores 1
  p4lb lab run experiment.yaml --store s3://bucket/runs
  p4lb lab run experiment.yaml --store /shared/runs --shard 3/64`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := j.open(cmd); err != nil {
				return err
			}
			list, err := q.load(cmd, c, j.st, args)
			if err != nil {
				return err
			}
			j.dirs = q.dirs
			if j.explain != "" {
				for i, x := range list {
					if list[i], err = x.Only(j.explain); err != nil {
						return err
					}
				}
				return j.explainAll(cmd, list)
			}
			return j.run(cmd, list)
		},
	}
	q.addFlags(cmd)
	j.addFlags(cmd)
	j.addExplain(cmd)
	return cmd
}

func newLabPaper(c *cli.Console) *cobra.Command {
	j := &labJob{c: c}
	q := &labChoice{}
	var show, recorded bool
	cmd := &cobra.Command{
		Use:   "paper NAME [FIGURE]",
		Short: "Run the experiments of a paper and compare them with its printed numbers",
		Long: `Paper runs the experiments of a paper and compares each printed number or order with
the measured one:

  within band            within a quarter of the printed number, or in the printed range
  ordering holds         the rows are significantly in the printed order
  same sign, other size  the difference is significant, with the printed sign
  out of reach here      a ceiling shows that no scheme could save as much here
  decided by an open choice  a detail that the paper omits changes the verdict
  not comparable         the paper's quantity is defined differently
  not as printed         no significant difference, and the interval excludes the number
  contrary               significantly the opposite, or a significantly different value
  undecided              the interval is too wide; the note states the needed seeds

It also lists its assumptions. Before it runs anything it prints the recorded results
(with --recorded only these). For a paper these are each figure, table and headline
number with its verdicts or the reason for having none, and the run time of all
experiments. For a FIGURE, or an experiment such as rlb-fct, they are the rows. If the
paper's setting takes hours, the experiment is smaller and states the difference;
--full runs the paper's setting.

--explain FIGURE varies details that the paper omits, and reports how much each changes
each number. It also prints why numbers differ from the paper's, with counters of the
recorded runs.

The papers are ` + strings.Join(lab.Papers(), ", ") + `.`,
		Example: `  p4lb lab paper qall fig10
  p4lb lab paper qdaps --full --resume
  p4lb lab paper rlb --recorded
  p4lb lab paper rlb fig14 --recorded
  p4lb lab paper rlb --explain fig14
  p4lb lab paper rlb --explain fig14 --recorded
  p4lb lab paper rlb --show > rlb.yaml`,
		Args: cli.WantArgs(1, 2, "a paper: "+strings.Join(lab.Papers(), ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			figure := ""
			switch {
			case len(args) > 1 && j.explain != "":
				return cli.UsageError(cmd, "--explain %s and %s: want one figure", j.explain, args[1])
			case j.explain != "" && (q.full || q.engine != "" || q.seeds != ""):
				return cli.UsageError(cmd, "--explain runs the settings of vary: omit --full, --engine and --seeds")
			case len(args) > 1:
				figure = args[1]
			case j.explain != spec.AllFigures:
				figure = j.explain
			}
			list, err := lab.Paper(args[0], figure, q.full)
			if err != nil {
				return err
			}
			if show {
				return showPaper(c, list)
			}
			if err := q.adjust(cmd, list); err != nil {
				return err
			}
			if !c.Quiet || recorded {
				if err := showRecorded(c, args[0], figure, list, recorded); err != nil {
					return err
				}
			}
			if j.explain != "" {
				if err := j.tellMechanisms(list); err != nil {
					return err
				}
			}
			if recorded {
				return nil
			}
			if j.explain != "" {
				return j.explainAll(cmd, list)
			}
			if figure == "" {
				c.Say("running %d experiments; --recorded prints the recorded results and runs nothing", len(list))
			}
			return j.run(cmd, list)
		},
		ValidArgs: lab.Papers(),
	}
	j.addFlags(cmd)
	j.addExplain(cmd)
	cmd.Flags().BoolVar(&recorded, "recorded", false, "print the recorded results (with --explain the reasons) and run nothing")
	cmd.Flags().BoolVar(&show, "show", false, "print the experiments' files instead of running them")
	q.addFlags(cmd)
	return cmd
}

// showRecorded prints recorded results. Of a paper it prints the coverage with the
// verdicts, in full also the summary; of an experiment or figure it prints each row.
func showRecorded(c *cli.Console, name, figure string, list []*spec.Experiment, full bool) error {
	defer c.Out.Flush()
	if text, err := lab.Recorded(name); err == nil && figure == "" {
		text = strings.ReplaceAll("Recorded: "+strings.TrimSpace(text), `\*`, "*") // remove the escapes of Markdown
		paragraphs := strings.Split(text, "\n\n")
		fmt.Fprintf(c.Out, "%s\n", strings.Join(plain.Wrap(paragraphs[0], 80), "\n"))
		covered, err := lab.Covered(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s\n\n", strings.Join(plain.Wrap("Printed: "+covered.Summary(), 80), "\n"))
		if err := cli.Show(c.Out, cli.Table, cli.Grid(covered.Screen()), nil); err != nil {
			return err
		}
		fmt.Fprintln(c.Out)
		if full {
			for _, paragraph := range paragraphs[1:] {
				fmt.Fprintf(c.Out, "%s\n\n", strings.Join(plain.Wrap(paragraph, 80), "\n"))
			}
		}
		return nil
	}
	for _, x := range list {
		if rows := lab.RecordedRows(x.File, figure); len(rows) > 0 {
			fmt.Fprintf(c.Out, "recorded of %s:\n", x.File)
			for _, r := range rows {
				fmt.Fprintf(c.Out, "\n%s: %s\n", r.Figure, r.Target)
				text := fmt.Sprintf("printed %s, measured %s: %s", r.Printed, r.Measured, r.Verdict)
				fmt.Fprintf(c.Out, "  %s\n", strings.Join(plain.Wrap(text, 78), "\n  "))
			}
			fmt.Fprintln(c.Out)
		}
	}
	return nil
}

func showPaper(c *cli.Console, list []*spec.Experiment) error {
	for i, x := range list {
		text, err := lab.PaperFile(x.File)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(c.Out, documentMark)
		}
		c.Out.Write(text)
	}
	return nil
}
