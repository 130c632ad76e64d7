package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/lab"
)

func newLab(c *cli) *cobra.Command {
	j := &labJob{c: c}
	q := &labQuestion{}
	cmd := &cobra.Command{
		Use:   "lab --scheme S [--vs S,S…] [--workload W] [--load L]",
		Short: "Compare schemes in a simulated network that runs their programs",
		Long: `Lab runs schemes in a network in virtual time and compares them. Every switch
runs the generated P4 program, deployed by the controller over P4Runtime, with
byte-accurate queues, link rates and losses; hosts send with real transports. The
same seed gives the same result files, on any number of cores.

The flows of a run are drawn by its seed alone: every scheme gets the same ones.
Numbers are means over the seeds with 95 % confidence intervals, and the last
column is what the first scheme saves against a row, paired by seed.

-o names the folder of the results: report.html, the table, plots, manifest.json
with all that is needed to repeat the experiment, and for each run its flows and
links in CSV. An interrupted lab keeps the runs that are finished, and --resume
goes on from there.

  lab run FILE.yaml    an experiment with everything that can be set
  lab paper NAME       the experiments of a paper, and what it prints
  lab list             workloads, metrics and papers`,
		Example: `  p4lb lab --scheme qall-poly3 --vs ecmp,letflow,drill --workload websearch --load 0.7
  p4lb lab --scheme drill+rlb --vs drill --topology net.yaml --transport dcqcn --engine native
  p4lb lab run experiment.yaml -o results/mine
  p4lb lab paper qall fig10`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, "lab has no verb %q", args[0])
			}
			x, err := q.experiment(cmd)
			if err != nil {
				return err
			}
			return j.run(cmd, []*lab.Experiment{x})
		},
	}
	q.addFlags(cmd)
	j.addFlags(cmd)
	cmd.AddCommand(newLabRun(c), newLabPaper(c), newLabList(c))
	for _, verb := range cmd.Commands() {
		verb.Flags().SortFlags = false
		verb.DisableFlagsInUseLine = true
	}
	return cmd
}

func newLabRun(c *cli) *cobra.Command {
	j := &labJob{c: c}
	cmd := &cobra.Command{
		Use:   "run FILE.yaml…",
		Short: "Run experiments from files",
		Long: `Run runs the experiments of files. All that is not given has a default.

  name: quick
  topology: qall              # a preset or file, or a maker:
                              # {leaf-spine: {leaves: 2, spines: 4, hosts: 8, rate: 10G}}
  schemes:
    - qall-poly3
    - {scheme: drill, label: drill-4, set: {d: 4}}
  traffic:                    # several may go on at once
    - {workload: websearch, pattern: halves, load-of: hosts}
  loads: [0.5, 0.7]
  transport: dctcp            # tcp, dctcp, dcqcn, udp
  switches: {ecn: 65, pfc: false}
  seeds: 5                    # how many, or which: [3, 5]
  duration: 2s                # flows begin within it; then it goes on until they end
  warmup: 5%
  faults:
    - {at: 500ms, until: 1s, link: l1-s1, down: true}
    - {at: 1s, switch: s2, drop: 0.0035}
  engine: native              # the models in place of the programs: faster, same results
  metrics: [fct-mean, fct-p99:short, queue-variance]

Patterns are ` + strings.Join(lab.Patterns, ", ") + `.
A load is relative to what the hosts that send could send (load-of: hosts), what
the links between leaves and spines carry (fabric), or a rate. Files are found
from where p4lb runs.`,
		Example: `  p4lb lab run experiment.yaml
  p4lb lab run experiment.yaml --resume --cores 1`,
		Args: wantArgs(1, -1, "an experiment's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []*lab.Experiment
			for _, name := range args {
				text, err := c.readSource(name)
				if err != nil {
					return err
				}
				x, err := lab.Load(displayName(name), text, os.ReadFile)
				if err != nil {
					return err
				}
				if x.Name == "" {
					x.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
				}
				list = append(list, x)
			}
			return j.run(cmd, list)
		},
	}
	j.addFlags(cmd)
	return cmd
}

func newLabPaper(c *cli) *cobra.Command {
	j := &labJob{c: c}
	var full, show bool
	var engine string
	var seeds int
	cmd := &cobra.Command{
		Use:   "paper NAME [FIGURE]",
		Short: "Run the experiments of a paper and hold them against what it prints",
		Long: `Paper runs the experiments of a paper and says of each number or order that the
paper prints how it fared:

  within band      the value is met within the stated band
  ordering holds   the sign or order is, beyond the 95 % interval; the value is not
  not reproduced   neither

and what had to be assumed. Where the paper's setting takes hours, the experiment
is a smaller one that says so; --full takes the paper's. The papers are ` + strings.Join(lab.Papers(), ", ") + `.`,
		Example: `  p4lb lab paper qall fig10
  p4lb lab paper qdaps --full --resume
  p4lb lab paper rlb --show > rlb.yaml`,
		Args: wantArgs(1, 2, "a paper: "+strings.Join(lab.Papers(), ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			figure := ""
			if len(args) > 1 {
				figure = args[1]
			}
			list, err := lab.Paper(args[0], figure, full)
			if err != nil {
				return err
			}
			if show {
				return showPaper(c, list)
			}
			for _, x := range list {
				if err := x.Adjust(engine, seeds); err != nil {
					return usageError(cmd, "%w", err)
				}
			}
			return j.run(cmd, list)
		},
		ValidArgs: lab.Papers(),
	}
	j.addFlags(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "as large as the paper has it")
	cmd.Flags().BoolVar(&show, "show", false, "print the experiments' files instead of running them")
	cmd.Flags().StringVar(&engine, "engine", "", "what the switches run: p4 or native (default as the file says)")
	cmd.Flags().IntVar(&seeds, "seeds", 0, "run with the seeds 1 to `N` (default as the file says)")
	return cmd
}

func showPaper(c *cli, list []*lab.Experiment) error {
	for _, x := range list {
		text, err := lab.PaperFile(x.File)
		if err != nil {
			return err
		}
		c.out.Write(text)
	}
	return nil
}

func newLabList(c *cli) *cobra.Command {
	var form format
	cmd := &cobra.Command{
		Use:   "list [workloads|metrics|papers]",
		Short: "List workloads, metrics and the papers' experiments",
		Long: `List lists the distributions of flow sizes that come with p4lb, what can be
measured, or the experiments of the papers.`,
		Example:   `  p4lb lab list metrics`,
		Args:      wantArgs(0, 1, "at most one of workloads, metrics and papers"),
		ValidArgs: []string{"workloads", "metrics", "papers"},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "papers"
			if len(args) > 0 {
				what = args[0]
			}
			return listLab(cmd, c, form, what)
		},
	}
	addFormat(cmd, &form, formatTable, formatJSON, formatCSV)
	return cmd
}

func listLab(cmd *cobra.Command, c *cli, form format, what string) error {
	var rows grid
	switch what {
	case "workloads":
		rows = grid{{"WORKLOAD", "MEAN BYTES", "WHAT"}}
		for _, name := range lab.Workloads() {
			w, err := lab.WorkloadNamed(name)
			if err != nil {
				return err
			}
			about, _, _ := strings.Cut(w.About, " bytes p,")
			rows = append(rows, []string{name, fmt.Sprintf("%.0f", w.Mean()), about})
		}
	case "metrics":
		rows = grid{{"METRIC", "UNIT", "BY CLASS", "WHAT"}}
		for _, m := range lab.Metrics() {
			byClass := ""
			if m.ByClass {
				byClass = "yes"
			}
			rows = append(rows, []string{m.Name, m.Unit, byClass, m.About})
		}
	case "papers":
		rows = grid{{"PAPER", "EXPERIMENT", "FIGURES", "TARGETS", "WHAT"}}
		for _, paper := range lab.Papers() {
			list, err := lab.Paper(paper, "", false)
			if err != nil {
				return err
			}
			for _, x := range list {
				rows = append(rows, []string{paper, x.Name, strings.Join(x.Figures, " "), fmt.Sprint(len(x.Targets)), x.About})
			}
		}
	default:
		return usageError(cmd, "list %s: want workloads, metrics or papers", what)
	}
	return show(c.out, form, rows, objects(rows))
}

// objects are the rows of a grid as JSON shows them, named by its head.
func objects(rows grid) []map[string]string {
	list := []map[string]string{}
	for _, row := range rows[1:] {
		o := map[string]string{}
		for i, v := range row {
			o[strings.ReplaceAll(strings.ToLower(rows[0][i]), " ", "_")] = v
		}
		list = append(list, o)
	}
	return list
}

// A labQuestion is an experiment asked by flags.
type labQuestion struct {
	scheme, topology, workload, pattern, transport, engine, coeffs string
	vs, fail, set, metrics                                         []string
	loads                                                          []string
	seeds                                                          int
	duration, drain                                                time.Duration
	ecn                                                            int
	pfc                                                            bool
}

func (q *labQuestion) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.scheme, "scheme", "", "the `SCHEME`, such as qall-poly3 or drill+rlb")
	f.StringSliceVar(&q.vs, "vs", nil, "compare with these `SCHEMES`")
	f.StringVar(&q.workload, "workload", "websearch", "flow sizes: a `NAME` of lab list workloads, or a file of lines \"bytes p\"")
	f.StringSliceVar(&q.loads, "load", []string{"0.7"}, "`LOAD` of what the sending hosts could send (repeatable)")
	f.StringVar(&q.topology, "topology", "qall", "the network: a `FILE` or a preset of p4lb topo presets")
	f.StringArrayVar(&q.fail, "fail", nil, "a `LINK` is down: one by a port, as in l1:3, or all between two nodes, as in l1-s1 (repeatable)")
	f.StringVar(&q.pattern, "pattern", lab.Halves, "who sends to whom: "+strings.Join(lab.Patterns[:4], ", "))
	f.StringVar(&q.transport, "transport", "tcp", "what hosts send with: "+strings.Join(lab.Transports, ", "))
	f.IntVar(&q.ecn, "ecn", 0, "switches mark from `N` packets on (default 65 with dctcp, else never)")
	f.BoolVar(&q.pfc, "pfc", false, "links are lossless: PFC")
	f.DurationVar(&q.duration, "duration", 2*time.Second, "flows begin within this virtual `TIME`")
	f.IntVar(&q.seeds, "seeds", 3, "run with the seeds 1 to `N`")
	f.StringArrayVar(&q.set, "set", nil, "set a parameter of all schemes that have it, as `NAME=VALUE` (repeatable)")
	f.StringVar(&q.coeffs, "coeffs", "", "the polynomial of a fitted --scheme: a model's `FILE`, as p4lb fit writes it")
	f.StringSliceVar(&q.metrics, "metrics", nil, "`METRICS` of the table, of lab list metrics")
	f.StringVar(&q.engine, "engine", lab.EngineP4, "what the switches run: p4, or native for the models, which is faster")
	completeWith(cmd, "scheme", codegen.Names())
	completeWith(cmd, "vs", codegen.Names())
	completeWith(cmd, "workload", lab.Workloads())
	completeWith(cmd, "transport", lab.Transports)
	completeWith(cmd, "engine", []string{lab.EngineP4, lab.EngineNative})
}

// experiment is what the flags ask for.
func (q *labQuestion) experiment(cmd *cobra.Command) (*lab.Experiment, error) {
	switch {
	case q.scheme == "":
		return nil, usageError(cmd, "lab wants a --scheme, or a verb: run, paper or list")
	case q.seeds < 1 || q.seeds > 1000:
		return nil, usageError(cmd, "--seeds %d: want 1 to 1000", q.seeds)
	case q.duration <= 0:
		return nil, usageError(cmd, "--duration %v: want a time above 0", q.duration)
	}
	x := &lab.Experiment{Name: "lab", Engine: q.engine, Seeds: lab.FirstSeeds(q.seeds), Metrics: q.metrics}
	x.Topology.Name, x.Fail = q.topology, q.fail
	x.Traffic = []lab.Traffic{{Workload: q.workload, Pattern: q.pattern}}
	x.Transport.Kind, x.Duration = q.transport, lab.Time(q.duration)
	x.Switches.ECN, x.Switches.PFC = q.ecn, &q.pfc
	if q.ecn == 0 && q.transport == "dctcp" {
		x.Switches.ECN = 65
	}
	for _, text := range q.loads {
		var l lab.LoadLevel
		if err := l.Parse(text); err != nil {
			return nil, usageError(cmd, "--load: %w", err)
		}
		x.Loads = append(x.Loads, l)
	}
	set := map[string]string{}
	for _, s := range q.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usageError(cmd, "--set %s: want NAME=VALUE", s)
		}
		set[name] = value
	}
	x.Cases = []lab.Case{{Set: set}}
	for i, name := range append([]string{q.scheme}, q.vs...) {
		s := lab.Scheme{Scheme: name}
		if i == 0 {
			s.Coeffs = q.coeffs
			if q.coeffs != "" {
				s.Label = name + "-fitted"
			}
		}
		x.Schemes = append(x.Schemes, s)
	}
	x.About = fmt.Sprintf("%s against %s: %s at load %s in %s", q.scheme, strings.Join(q.vs, ", "), q.workload, strings.Join(q.loads, ", "), q.topology)
	return x, x.Complete("the experiment", os.ReadFile)
}

// A labJob is the running of experiments.
type labJob struct {
	c       *cli
	dir     string
	cores   int
	resume  bool
	observe string
	record  string
	every   time.Duration
	parquet bool
}

func (j *labJob) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&j.dir, "output", "o", "", "write the results into the folder `DIR` (default results/ and the experiment's name)")
	f.IntVar(&j.cores, "cores", 0, "run on `N` cores (default all)")
	f.BoolVar(&j.resume, "resume", false, "take the runs that the folder has for done")
	f.BoolVar(&j.parquet, "parquet", false, "write flows and links as Parquet too")
	f.StringVar(&j.observe, "observe", "", "write the dataset for p4lb fit to `FILE`.csv or .parquet, from the first scheme's first run")
	f.StringVar(&j.record, "record", "", "keep what the switches remember in `FILE`.csv or .parquet, for p4lb inspect --replay; of the same run")
	f.DurationVar(&j.every, "every", 10*time.Millisecond, "observe and record every `TIME`")
}

func (j *labJob) check(cmd *cobra.Command) error {
	for _, f := range []struct{ flag, name string }{{"observe", j.observe}, {"record", j.record}} {
		if f.name != "" && recordFormat(f.name) == "" {
			return usageError(cmd, "--%s %s: want a name that ends in .%s", f.flag, f.name, strings.Join(controller.RecordFormats, " or ."))
		}
	}
	switch {
	case j.observe != "" && j.record != "":
		return usageError(cmd, "--observe and --record exclude each other")
	case j.every <= 0:
		return usageError(cmd, "--every %v: want a time above 0", j.every)
	case j.cores < 0:
		return usageError(cmd, "--cores %d: want 1 or more", j.cores)
	}
	return nil
}

func (j *labJob) run(cmd *cobra.Command, list []*lab.Experiment) error {
	if err := j.check(cmd); err != nil {
		return err
	}
	var outcomes []lab.Outcome
	began := time.Now()
	for _, x := range list {
		more, err := j.one(cmd.Context(), x, len(list) > 1)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, more...)
	}
	if len(outcomes) > 0 {
		return j.showOutcomes(list, outcomes, time.Since(began))
	}
	return nil
}

// one runs an experiment and shows what it came to, also if it was cut short.
func (j *labJob) one(ctx context.Context, x *lab.Experiment, several bool) ([]lab.Outcome, error) {
	dir := j.dir
	switch {
	case dir == "":
		dir = filepath.Join("results", x.Name)
	case several:
		dir = filepath.Join(dir, x.Name)
	}
	r := &lab.Runner{Dir: dir, Cores: j.cores, Resume: j.resume, Parquet: j.parquet, Read: os.ReadFile}
	finish, err := j.recorder(r)
	if err != nil {
		return nil, err
	}
	bar := newLabProgress(j.c, x.Name)
	r.Progress = bar.ended
	comparison, err := r.Run(ctx, x)
	bar.close()
	err = errors.Join(explainLab(err), finish(err == nil))
	if comparison == nil {
		return nil, err
	}
	if done := slices.ContainsFunc(comparison.Results, func(r *lab.Result) bool { return r != nil }); !done {
		return nil, err
	}
	if e := show(j.c.out, formatTable, comparison.Table(), nil); e != nil {
		return nil, e
	}
	j.c.out.Flush()
	if ctx.Err() != nil {
		fmt.Fprintf(j.c.err, "%s p4lb lab … --resume goes on with the runs that are missing\n", j.c.paint.bold("hint:"))
		return nil, ctx.Err()
	}
	report, e := comparison.Keep(dir)
	if err == nil && e == nil {
		fmt.Fprintf(j.c.out, "\n%s\n", report)
	}
	return comparison.Judge(), errors.Join(err, e)
}

// recorder sets up what looks at the first run. The function that it returns
// puts the file in place, or throws it away.
func (j *labJob) recorder(r *lab.Runner) (finish func(bool) error, err error) {
	target, look := j.observe, lab.Observe
	if j.record != "" {
		target, look = j.record, lab.Record
	}
	if target == "" {
		return func(bool) error { return nil }, nil
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+"-")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", target, bareError(err))
	}
	r.Record = look(temp, recordFormat(target), j.every)
	return func(good bool) error {
		err := temp.Close()
		if !good || err != nil {
			os.Remove(temp.Name())
			return err
		}
		return errors.Join(os.Chmod(temp.Name(), 0o644), os.Rename(temp.Name(), target))
	}, nil
}

// explainLab adds a way out where there is one.
func explainLab(err error) error {
	switch {
	case errors.Is(err, lab.ErrSame):
		return hinted(err, "rows must differ in what they run: another scheme, --set or engine")
	case errors.Is(err, lab.ErrDiskFull):
		return hinted(err, "what was finished is kept: make room, then --resume")
	}
	return withHint(err)
}

// showOutcomes prints how the targets of papers fared.
func (j *labJob) showOutcomes(list []*lab.Experiment, outcomes []lab.Outcome, took time.Duration) error {
	rows := grid{{"", "TARGET", "PRINTED", "MEASURED", "VERDICT"}}
	for _, o := range outcomes {
		rows = append(rows, []string{o.Figure, o.Name, o.Printed, o.Measured, string(o.Verdict)})
	}
	fmt.Fprintln(j.c.out)
	if err := show(j.c.out, formatTable, rows, nil); err != nil {
		return err
	}
	fmt.Fprintln(j.c.out)
	for _, x := range list {
		for _, a := range x.Assumed {
			fmt.Fprintf(j.c.out, "assumed: %s\n", a)
		}
		if x.Scaled != "" {
			fmt.Fprintf(j.c.out, "smaller than in the paper: %s\n", x.Scaled)
		}
	}
	if !j.c.quiet {
		fmt.Fprintf(j.c.err, "took %v\n", took.Round(time.Second))
	}
	return nil
}
