package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A labJob runs experiments with the flags of the command line.
type labJob struct {
	c          *cli.Console
	dir        string
	cores      int
	within     int // cores for each run
	resume     bool
	observe    string
	record     string
	watch      bool
	page       view.PageServer
	pcap       string
	every      time.Duration
	everyGiven bool
	listenWait bool
	parquet    bool
	wide       bool
	worlds     []string
	overload   bool

	serve lab.Serve

	explain string // a figure, or spec.AllFigures; "" for none

	dirs []string // folders of the experiments

	store     string
	st        *store.Store
	shardText string
	shard     lab.Shard

	rounds    int
	maxEvents float64
	maxMemory cli.MemorySize

	strict bool
	junit  string
	suites []lab.JUnitSuite

	markdown string
	sections []byte
	command  string // the command that repeats an experiment, without the experiment's name
}

func (j *labJob) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&j.dir, "output", "o", "", "write the results into the folder `DIR` (default results/ and the experiment's name and digest)")
	addStoreFlag(cmd, &j.store)
	f.StringVar(&j.shardText, "shard", "", "run part `I/N` of the runs and keep them in the --store; /N if Slurm or Kubernetes numbers the parts")
	f.IntVar(&j.cores, "cores", 0, "run on `N` cores (default all)")
	f.IntVar(&j.within, "cores-per-run", 0, "split each run over `N` of the cores, in an experiment with ties: place (default: idle cores, for large networks)")
	f.BoolVar(&j.resume, "resume", false, "skip the runs that are in the folder already")
	f.BoolVar(&j.parquet, "parquet", false, "write flows and links as Parquet too")
	f.BoolVar(&j.wide, "wide", false, "show all metrics in one table, which may have more than 80 columns")
	f.StringSliceVar(&j.worlds, "on", []string{lab.Sim}, "run on these `SWITCHES`: sim (simulated, in virtual time), embedded or bmv2 (in real time, with hosts and the kernel's TCP on this machine)")
	f.BoolVar(&j.overload, "overload", false, "in real time: run even if the load exceeds this machine's capacity")
	cli.CompleteWith(cmd, "on", lab.Worlds)
	cli.AddRoundsFlag(cmd, &j.rounds)
	f.Float64Var(&j.maxEvents, "max-events", lab.DefaultEvents, "reject runs with more than `N` events, such as 1e12; 0: no limit")
	f.Var(&j.maxMemory, "max-memory", "reject runs that together need more than `SIZE` of memory, such as 4GiB; 0: no limit (default: the memory of this machine)")
	f.StringVar(&j.markdown, "markdown", "", "write the paper's numbers with their verdicts to `FILE` in Markdown")
	f.BoolVar(&j.strict, "strict", false, "exit with 1 if a target of the paper is not met, or if there is a warning that the experiment does not accept")
	f.StringVar(&j.junit, "junit", "", "write the results of all expectations (expect:), and with --strict of targets and warnings, to `FILE` as JUnit XML")
	f.StringVar(&j.observe, "observe", "", "write a dataset for p4lb fit to `FILE`.csv or .parquet, from the first run of the first scheme")
	f.StringVar(&j.record, "record", "", "record the registers of the switches in that run to `FILE`.csv or .parquet, for p4lb inspect --replay")
	f.BoolVarP(&j.watch, "watch", "w", false, "show the registers of the switches on the terminal during that run")
	cli.AddPcapFlag(cmd, &j.pcap, "in virtual time, for that run: ")
	j.page.AddFlags(cmd, "that run as it goes on, in virtual time")
	f.BoolVar(&j.listenWait, "listen-wait", false, "start that run when a browser has opened the page")
	f.StringVar(&j.serve.Address, "serve", "", "let your own controllers drive the switches of the first scheme: serve a list of the switches at `ADDR`, such as 127.0.0.1:9558, and their P4Runtime and Thrift servers at the following ports")
	f.BoolVar(&j.serve.BfRt, "serve-bfrt", false, "serve BfRt to these controllers instead of P4Runtime, for a scheme for Tofino")
	f.DurationVar(&j.serve.Every, "serve-every", 10*time.Millisecond, "stop the virtual clock every `TIME` for these controllers")
	f.IntVar(&j.serve.Wait, "serve-wait", 0, "continue when `N` controllers have called http://ADDR/next, instead of when real time catches up")
	f.Float64Var(&j.serve.Slow, "serve-slow", 1, "without --serve-wait: make virtual time `N` times slower than real time")
	f.DurationVar(&j.serve.Timeout, "serve-timeout", time.Second, "fail if a controller is silent for `TIME` while the clock waits for it")
	f.DurationVar(&j.every, "every", 10*time.Millisecond, "virtual `TIME` between readings for --observe, --record and --watch; collectives are shown more often by default")
}

func (j *labJob) check(cmd *cobra.Command) error {
	j.everyGiven = cmd.Flags().Changed("every")
	for _, f := range []struct{ flag, name string }{{"observe", j.observe}, {"record", j.record}} {
		if f.name != "" && cli.RecordFormat(f.name) == "" {
			return cli.UsageError(cmd, "--%s %s: want a name that ends in .%s", f.flag, f.name, strings.Join(inspect.RecordFormats, " or ."))
		}
	}
	for i, w := range j.worlds {
		if !slices.Contains(lab.Worlds, w) {
			return cli.UsageError(cmd, "--on %s: want one of %s", w, strings.Join(lab.Worlds, ", "))
		}
		if slices.Contains(j.worlds[:i], w) {
			return cli.UsageError(cmd, "--on %s: named twice", w)
		}
	}
	if err := cmp.Or(
		j.page.Check(cmd),
		cli.Requires(cmd, j.looks() > 0 && j.pcap == "", "--observe, --record, --watch or --listen", "every"),
		cli.Requires(cmd, j.page.Listen != "", "--listen", "listen-wait"),
		cli.Requires(cmd, j.serve.Address != "", "--serve", "serve-bfrt", "serve-every", "serve-wait", "serve-slow", "serve-timeout"),
		cli.Requires(cmd, !slices.Equal(j.worlds, []string{lab.Sim}), "--on embedded or bmv2: the simulator takes its time", "overload"),
	); err != nil {
		return err
	}
	switch {
	case j.store != "" && !slices.Equal(j.worlds, []string{lab.Sim}):
		return cli.UsageError(cmd, "--store keeps reproducible runs only: want runs in virtual time, not --on %s", strings.Join(j.worlds, ","))
	case j.store != "" && j.parquet:
		return cli.UsageError(cmd, "--parquet is for folders: p4lb results export writes it from a store")
	case j.store != "" && j.resume:
		return cli.UsageError(cmd, "--resume is for folders: runs in the --store are never repeated")
	case j.store == "" && j.shardText != "":
		return cli.UsageError(cmd, "--shard requires --store, which the shards share")
	case j.shardText != "" && (j.watch || j.observe != "" || j.record != "" || j.markdown != "" || j.dir != "" || j.page.Listen != ""):
		return cli.UsageError(cmd, "--shard only runs a part: lab report writes tables and reports")
	case j.watch && !slices.Equal(j.worlds, []string{lab.Sim}):
		return cli.UsageError(cmd, "--watch shows the simulator: p4lb deploy and p4lb inspect --watch show switches in real time")
	case j.looks() > 1:
		return cli.UsageError(cmd, "--observe, --record, --pcap, --watch and --listen exclude each other")
	case j.pcap != "" && !slices.Contains(j.worlds, lab.Sim):
		return cli.UsageError(cmd, "--pcap captures in the simulator: p4lb deploy --pcap does in real time")
	case j.page.Listen != "" && !slices.Contains(j.worlds, lab.Sim):
		return cli.UsageError(cmd, "--listen shows the simulator: p4lb deploy --listen shows switches in real time")
	case j.serve.Address != "" && (j.store != "" || j.resume):
		return cli.UsageError(cmd, "--serve: a run with a controller of your own cannot be repeated: want neither --store nor --resume")
	case j.serve.Address != "" && !slices.Equal(j.worlds, []string{lab.Sim}):
		return cli.UsageError(cmd, "--serve is for virtual time: p4lb deploy serves P4Runtime in real time")
	case j.serve.Address != "" && j.serve.Wait > 0 && cmd.Flags().Changed("serve-slow"):
		return cli.UsageError(cmd, "--serve-slow: not with --serve-wait, which replaces real time: want one of them")
	case j.watch && !cli.IsTerminal(os.Stdout):
		return cli.UsageError(cmd, "--watch requires a terminal; --record keeps the same in a file")
	case j.every <= 0:
		return cli.UsageError(cmd, "--every %v: want a time above 0", j.every)
	case j.rounds <= 0:
		return cli.UsageError(cmd, "--rounds %d: want at least 1", j.rounds)
	case !(j.maxEvents >= 0):
		return cli.UsageError(cmd, "--max-events %v: want a number, 0 for any", j.maxEvents)
	case j.cores < 0:
		return cli.UsageError(cmd, "--cores %d: want 1 or more", j.cores)
	case j.within < 0:
		return cli.UsageError(cmd, "--cores-per-run %d: want 1 or more, or 0 for the default", j.within)
	}
	return nil
}

// looks returns the number of given flags that show or record the first run.
func (j *labJob) looks() int {
	return cli.Count(j.observe != "", j.record != "", j.pcap != "", j.watch, j.page.Listen != "")
}

// limits returns the limits of an experiment, from the flags or from this machine.
func (j *labJob) limits() lab.Limits {
	l := lab.Limits{Events: j.maxEvents, Bytes: float64(j.maxMemory.Bytes)}
	if !j.maxMemory.Given {
		l.Bytes = float64(cli.MemoryLimit())
	}
	return l
}

// open checks the flags, and opens the store.
func (j *labJob) open(cmd *cobra.Command) (err error) {
	if err := j.check(cmd); err != nil {
		return err
	}
	if j.store == "" || j.st != nil {
		return nil
	}
	from := ""
	if j.shard, from, err = labShard(j.shardText, os.Getenv); err != nil {
		return cli.UsageError(cmd, "%w", err)
	}
	if from != "" && !j.c.Quiet {
		fmt.Fprintf(j.c.Err, "shard %d of %d, by %s\n", j.shard.Index+1, j.shard.Of, from)
	}
	j.st, err = openStore(cmd.Context(), j.store, true)
	return err
}

func (j *labJob) run(cmd *cobra.Command, list []*spec.Experiment) error {
	if err := j.open(cmd); err != nil {
		return err
	}
	if err := j.page.Open(); err != nil {
		return err
	}
	if slices.ContainsFunc(j.worlds, func(world string) bool { return world != lab.Sim }) {
		cli.TidiesUp(cmd.Context())
	}
	folders := map[string]string{}
	for _, x := range list {
		folder := plain.Folder(x.Name)
		if other, taken := folders[folder]; taken {
			return fmt.Errorf("the experiments %q and %q would both be kept in the folder %s: want names that differ in letters and digits", other, x.Name, folder)
		}
		folders[folder] = x.Name
	}
	var outcomes []lab.Outcome
	began := time.Now()
	j.command = strings.Join(append([]string{cmd.CommandPath()}, cmd.Flags().Args()...), " ")
	if slices.Contains(j.worlds, lab.Embedded) && !hosts.Capable() {
		code, err := hosts.AsRoot()
		switch {
		case err != nil:
			return &cli.Failure{Code: cli.ExitRefused, Err: err}
		case code != 0:
			return &cli.Failure{Code: code}
		}
		return nil
	}
	document, err := j.document()
	if err != nil {
		return err
	}
	defer document(nil)
	for _, x := range list {
		var beside []*lab.Comparison
		for _, world := range j.worlds {
			comparison, err := j.one(cmd.Context(), x, world, len(list) > 1)
			if err != nil {
				return err
			}
			if j.shard.Of > 0 {
				continue // A shard prints no table: lab report combines the shards.
			}
			beside = append(beside, comparison)
			judged := j.judge(x, world, comparison, time.Since(began))
			outcomes = append(outcomes, judged...)
		}
		if len(beside) > 1 {
			fmt.Fprintln(j.c.Out)
			if err := cli.Show(j.c.Out, cli.Table, lab.SideBySide(beside), nil); err != nil {
				return err
			}
		}
	}
	if err := document(j.sections); err != nil {
		return err
	}
	if len(outcomes) > 0 {
		if err := j.showOutcomes(list, outcomes, time.Since(began)); err != nil {
			return err
		}
	}
	return j.failures()
}

// judge collects the checks of a finished experiment. In virtual time it also returns the
// verdicts on its targets.
func (j *labJob) judge(x *spec.Experiment, world string, c *lab.Comparison, took time.Duration) []lab.Outcome {
	s := lab.JUnitSuite{Experiment: x.Name, Checks: c.Checks(), Took: took}
	var outcomes []lab.Outcome
	if world == lab.Sim {
		outcomes = c.Judge()
	} else {
		s.Experiment += ", " + world
	}
	if j.strict {
		s.Checks = append(s.Checks, lab.AsChecks(outcomes)...)
		for _, w := range spec.Unaccepted(c.Warnings) {
			s.Checks = append(s.Checks, lab.Check{Name: "warning " + w.Rule, Why: w.Text})
		}
	}
	j.suites = append(j.suites, s)
	return outcomes
}

// failures writes the file of --junit and prints which checks failed.
func (j *labJob) failures() error {
	if j.junit != "" {
		text, err := lab.JUnit(j.suites)
		if err == nil {
			err = os.WriteFile(j.junit, text, 0o666)
		}
		if err != nil {
			return cli.CannotWrite(j.junit, err)
		}
	}
	failed, of := 0, 0
	for _, s := range j.suites {
		for _, k := range s.Checks {
			of++
			if !k.Met {
				failed++
				fmt.Fprintf(j.c.Out, "not met: %s: %s: %s\n", s.Experiment, k.Name, k.Why)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks not met", failed, of)
	}
	if of > 0 {
		fmt.Fprintf(j.c.Out, "%d of %d checks met\n", of, of)
	}
	return nil
}

// one runs an experiment in one world, virtual or real time, and shows its results,
// even if the run was interrupted.
func (j *labJob) one(ctx context.Context, x *spec.Experiment, world string, several bool) (*lab.Comparison, error) {
	dir, under := j.dir, ""
	switch {
	case j.shard.Of > 0:
	case dir == "":
		under = resultsDir
	case several:
		dir = filepath.Join(dir, plain.Folder(x.Name))
	}
	if dir != "" && world != lab.Sim {
		dir += "-" + world
	}
	r := &lab.Runner{
		Dir: dir, Under: under, Store: j.st, Shard: j.shard, Cores: j.cores, Within: j.within, Resume: j.resume, Parquet: j.parquet, Read: cli.Besides(j.dirs...), Limits: j.limits(), Rounds: j.rounds,
		World: world, Real: lab.RealOptions{Overload: j.overload},
	}
	finish, err := j.recorder(r)
	if err != nil {
		return nil, err
	}
	if err := warn(j.c, x, r.Read); err != nil {
		return nil, err
	}
	if j.serve.Address != "" {
		r.Serve, j.serve.Warnings = &j.serve, j.c.Log
		r.Serve.Log = func(text string) { fmt.Fprintln(j.c.Err, text) }
	}
	bar := newLabProgress(j.c, x.Name)
	r.Progress = bar.ended
	r.Log = func(text string) {
		bar.End() // a warning has a line of its own
		j.c.Warning("%s", text)
	}
	leave := func() error { return nil }
	if j.pcap != "" && world == lab.Sim {
		r.Record = lab.Capture(j.pcap, j.c.CaptureFailed)
	}
	if j.page.Listener != nil && world == lab.Sim {
		leave = j.show(ctx, r, x)
		j.page.Listener = nil // use the page only for one experiment
	}
	if j.watch {
		leave = j.screen(ctx, r, x, bar)
	}
	began := time.Now()
	comparison, err := r.Run(ctx, x)
	err = errors.Join(err, leave())
	bar.close()
	err = errors.Join(explainLab(err), finish(err == nil))
	if comparison == nil {
		return nil, err
	}
	return j.report(ctx, x, world, comparison, r.Dir, time.Since(began), err)
}

// report prints the outcome of an experiment in a world, after runs that ended with err,
// and writes its report into the folder dir.
func (j *labJob) report(ctx context.Context, x *spec.Experiment, world string, comparison *lab.Comparison, dir string, took time.Duration, err error) (*lab.Comparison, error) {
	if j.shard.Of > 0 {
		fmt.Fprintf(j.c.Out, "shard %d of %d of %s: %d runs made, %d found in the store, %d left to other shards\n", j.shard.Index+1, j.shard.Of, x.Name, comparison.Made, comparison.Taken, comparison.Left)
		return comparison, err
	}
	if done := slices.ContainsFunc(comparison.Results, func(r *lab.Result) bool { return r != nil }); !done {
		if err == nil {
			err = fmt.Errorf("%s: none of its runs has finished, and none is stored", x.Name)
		}
		return nil, err
	}
	if e := j.showTable(comparison); e != nil {
		return nil, e
	}
	j.c.Out.Flush()
	if ctx.Err() != nil {
		again := "p4lb lab … --resume"
		if j.st != nil {
			again = "the same command"
		}
		fmt.Fprintf(j.c.Err, "%s %s continues with the missing runs\n", j.c.Paint.Bold("hint:"), again)
		return nil, ctx.Err()
	}
	if errors.Is(err, lab.ErrDiskFull) {
		return nil, err // A disk without room for the results has no room for a report either.
	}
	j.sections = append(j.sections, comparison.Markdown(j.command, took)...)
	report, e := comparison.Keep(dir, origin())
	if err == nil && e == nil {
		linkLatest(dir, x.Name, world)
		fmt.Fprintf(j.c.Out, "\n%s\n", report)
	}
	return comparison, errors.Join(err, e)
}

// origin returns the command, version and date of a report. The variable
// SOURCE_DATE_EPOCH sets the date, so that two runs write equal folders.
func origin() lab.Origin {
	at := time.Now()
	if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		at = time.Unix(s, 0)
	}
	return lab.Origin{Command: plain.Shell(append([]string{"p4lb"}, os.Args[1:]...)), Version: provenance.This().String(), Date: at.UTC().Format("2006-01-02 15:04 UTC"), Playground: os.Getenv("P4LB_PLAYGROUND")}
}

// columns is the width of tables. It fits any terminal.
const columns = 80

// showTable prints the results of the runs, and the conclusions in sentences.
func (j *labJob) showTable(c *lab.Comparison) error {
	tables := c.Brief(columns)
	if j.wide {
		tables = [][][]string{c.Table()}
	}
	for i, table := range tables {
		if i > 0 {
			fmt.Fprintln(j.c.Out)
		}
		if err := cli.Show(j.c.Out, cli.Table, table, nil); err != nil {
			return err
		}
	}
	lines := c.Conclusion()
	if len(lines) > 0 {
		fmt.Fprintln(j.c.Out)
	}
	for _, line := range lines {
		fmt.Fprintln(j.c.Out, strings.Join(plain.Wrap(line, columns), "\n"))
	}
	return nil
}

// document creates the file of --markdown before the runs, so that an error cannot
// lose their results. The returned function writes the file, or removes it if text
// is nil.
func (j *labJob) document() (finish func(text []byte) error, err error) {
	if j.markdown == "" {
		return func([]byte) error { return nil }, nil
	}
	file, err := plain.Create(j.markdown)
	if err != nil {
		return nil, cli.CannotWrite(j.markdown, err)
	}
	return func(text []byte) error {
		defer file.Discard()
		if text == nil {
			return nil
		}
		_, err := file.Write(text)
		if err == nil {
			err = file.Place()
		}
		if err != nil {
			return cli.CannotWrite(j.markdown, err)
		}
		return nil
	}, nil
}

// recorder returns the observers of the first run. The returned function moves
// their file into place, or removes it.
func (j *labJob) recorder(r *lab.Runner) (finish func(bool) error, err error) {
	target, look := j.observe, lab.Observe
	if j.record != "" {
		target, look = j.record, lab.Record
	}
	if target == "" {
		return func(bool) error { return nil }, nil
	}
	file, err := plain.Create(target)
	if err != nil {
		return nil, cli.CannotWrite(target, err)
	}
	r.Record = look(file, cli.RecordFormat(target), j.every)
	return func(good bool) error {
		defer file.Discard()
		if !good {
			return nil
		}
		if err := file.Place(); err != nil {
			return cli.CannotWrite(target, err)
		}
		return nil
	}, nil
}

// explainLab adds a hint to an error for which there is a remedy.
func explainLab(err error) error {
	switch {
	case errors.Is(err, lab.ErrSame):
		return cli.Hinted(err, "give rows another scheme, --set or engine")
	case errors.Is(err, lab.ErrTooLarge):
		return cli.Hinted(err, "a shorter duration or larger flows; or --max-events and --max-memory")
	case errors.Is(err, store.ErrFull):
		return cli.Hinted(err, "finished runs are kept: free some space, then repeat the command")
	case errors.Is(err, lab.ErrDiskFull):
		return cli.Hinted(err, "finished runs are kept: free some space, then repeat the command with --resume")
	}
	return explainStore(err)
}

// showOutcomes prints which targets of papers were reached.
func (j *labJob) showOutcomes(list []*spec.Experiment, outcomes []lab.Outcome, took time.Duration) error {
	rows := cli.Grid{{"", "TARGET", "PRINTED", "MEASURED", "VERDICT"}}
	for _, o := range outcomes {
		rows = append(rows, []string{o.Figure, o.Name, o.Printed, o.Measured, string(o.Verdict)})
	}
	fmt.Fprintln(j.c.Out)
	if err := cli.Show(j.c.Out, cli.Table, rows, nil); err != nil {
		return err
	}
	fmt.Fprintln(j.c.Out)
	if line := lab.Corrected(outcomes); line != "" {
		fmt.Fprintln(j.c.Out, line)
	}
	for _, x := range list {
		for _, a := range x.Assumed {
			fmt.Fprintf(j.c.Out, "assumed: %s\n", a)
		}
		if x.Scaled != "" {
			fmt.Fprintf(j.c.Out, "smaller than in the paper: %s\n", x.Scaled)
		}
	}
	if !j.c.Quiet && took > 0 {
		fmt.Fprintf(j.c.Err, "took %v\n", took.Round(time.Second))
	}
	return nil
}
