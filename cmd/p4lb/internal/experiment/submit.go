package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/cluster"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// A labSubmit submits experiments to a scheduler.
type labSubmit struct {
	c   *cli.Console
	q   labChoice
	url string

	on     string
	dryRun bool
	job    cluster.Job
	within int // cores of a task for each run
	time   time.Duration
	memory cli.MemorySize
	binary string
}

func newLabSubmit(c *cli.Console) *cobra.Command {
	s := &labSubmit{c: c}
	cmd := &cobra.Command{
		Use:   "submit " + choiceUse + " --on slurm|kubernetes --store URL",
		Short: "Submit the runs of experiments as jobs of Slurm or Kubernetes",
		Long: `Submit passes the missing runs to a scheduler: to Slurm as an array, to Kubernetes as
an Indexed Job, with a task for each shard. It estimates the requested time and memory
from the runs in the store. A task that fails or is preempted starts again,
continues with the missing runs, and takes over the runs of tasks that have died.

The experiment is written into the store, with the files that it names, so that
tasks need only the binary and the store: a folder that all nodes can access, or an
object store. Slurm passes on the environment of this command. Kubernetes takes
credentials from a Secret, and the binary from an --image or a --volume. --dry-run
prints the job description and submits nothing.

Submit calls the scheduler's tools: sbatch, squeue and scancel, or kubectl.
Lab status and lab wait show the progress, lab cancel ends the job, and lab report
writes the tables.`,
		Example: `  p4lb lab submit experiment.yaml --on slurm --store /shared/runs
  p4lb lab submit qall-bmv2 --on slurm --store runs --shards 16 && p4lb lab wait qall-bmv2 --store runs
  p4lb lab submit qall --full --on kubernetes --store s3://bucket/runs --image registry/p4lb --secret s3
  p4lb lab submit experiment.yaml --on slurm --store runs --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&s.on, "on", "", "the `SCHEDULER`: "+strings.Join(cluster.Schedulers, " or "))
	addStoreFlag(cmd, &s.url)
	f.BoolVar(&s.dryRun, "dry-run", false, "print the job description and submit nothing")
	f.IntVar(&s.job.Shards, "shards", 0, "number `N` of tasks (default from the estimate: ten minutes each, at most 64)")
	f.IntVar(&s.job.Cores, "cores", 1, "`N` cores for each task")
	f.IntVar(&s.within, "cores-per-run", 1, "cores `N` for each run: for large runs of an experiment with ties: place")
	f.DurationVar(&s.time, "time", 0, "`TIME` limit of a task (default three times the estimate, at least ten minutes)")
	f.Var(&s.memory, "memory", "`SIZE` of a task's memory, such as 2GiB (default from the estimate)")
	f.StringVar(&s.binary, "binary", "", "`PATH` of p4lb where the tasks run (default this one; p4lb for Kubernetes)")
	f.StringVar(&s.job.Partition, "partition", "", "Slurm's `PARTITION`")
	f.StringVar(&s.job.Account, "account", "", "Slurm's `ACCOUNT`")
	f.StringVar(&s.job.Image, "image", "", "Kubernetes' `IMAGE` with p4lb in it, or any where the --volume has it")
	f.StringVar(&s.job.Namespace, "namespace", "", "Kubernetes' `NAMESPACE`")
	f.StringVar(&s.job.Secret, "secret", "", "Kubernetes' `SECRET` with the variables of the store's credentials")
	f.StringVar(&s.job.Volume, "volume", "", "`CLAIM:/PATH` of a volume of Kubernetes that the tasks mount")
	s.q.addFlags(cmd)
	cli.AddRoundsFlag(cmd, &s.q.rounds)
	cli.CompleteWith(cmd, "on", cluster.Schedulers)
	return cmd
}

func (s *labSubmit) check(cmd *cobra.Command) error {
	switch {
	case s.url == "":
		return cli.UsageError(cmd, "lab submit requires --store, which the tasks share")
	case s.on == "":
		return cli.UsageError(cmd, "lab submit requires --on %s", strings.Join(cluster.Schedulers, " or --on "))
	case s.job.Shards < 0:
		return cli.UsageError(cmd, "--shards %d: want at least 1", s.job.Shards)
	case s.job.Cores < 1:
		return cli.UsageError(cmd, "--cores %d: want at least 1", s.job.Cores)
	case s.within < 1 || s.within > s.job.Cores:
		return cli.UsageError(cmd, "--cores-per-run %d: want 1 to the --cores of a task, %d", s.within, s.job.Cores)
	case s.time < 0:
		return cli.UsageError(cmd, "--time %v: want a time above 0", s.time)
	case s.on == "kubernetes" && s.job.Image == "":
		return cli.UsageError(cmd, "Kubernetes wants an --image")
	}
	if err := cmp.Or(
		cli.Requires(cmd, s.on != "kubernetes", "--on slurm", "partition", "account"),
		cli.Requires(cmd, s.on != "slurm", "--on kubernetes", "image", "namespace", "secret", "volume"),
	); err != nil {
		return err
	}
	if s.job.Volume != "" {
		claim, mount, ok := strings.Cut(s.job.Volume, ":")
		if !ok || claim == "" || !filepath.IsAbs(mount) {
			return cli.UsageError(cmd, "--volume %s: want CLAIM:/PATH", s.job.Volume)
		}
		s.job.Volume, s.job.Mount = claim, mount
	}
	return nil
}

func (s *labSubmit) run(cmd *cobra.Command, args []string) error {
	if err := s.check(cmd); err != nil {
		return err
	}
	scheduler, err := cluster.Named(s.on, s.job.Namespace)
	if err != nil {
		return cli.UsageError(cmd, "--on: %w", err)
	}
	st, err := openStore(cmd.Context(), s.url, !s.dryRun)
	if s.dryRun && errors.Is(err, store.ErrNone) {
		err = nil // Opening a missing store would create it.
	}
	if err != nil {
		return err
	}
	if s.job.Folder, err = os.Getwd(); err != nil {
		return err
	}
	if s.binary == "" && s.on == "slurm" {
		if s.binary, err = os.Executable(); err != nil {
			return err
		}
	} else if s.binary == "" {
		s.binary = "p4lb"
	}
	list, err := s.q.load(cmd, s.c, st, args)
	if err != nil {
		return err
	}
	for _, x := range list {
		if err := s.one(cmd.Context(), scheduler, st, x); err != nil {
			return err
		}
	}
	return nil
}

// one submits an experiment.
func (s *labSubmit) one(ctx context.Context, scheduler cluster.Scheduler, st *store.Store, x *spec.Experiment) error {
	r := &lab.Runner{Store: st, Rounds: s.q.rounds, Within: s.within, Read: cli.Besides(s.q.dirs...)}
	plan, err := r.Plan(ctx, x, max(1, s.job.Shards))
	if err != nil {
		return explainLab(err)
	}
	missing := plan.Runs - plan.There
	if missing == 0 {
		fmt.Fprintf(s.c.Out, "%s: the store has all %d runs\n", plan.Kept.ID(), plan.Runs)
		return nil
	}
	job := s.job
	if job.Shards == 0 {
		const each = 600 // seconds
		job.Shards = max(1, min(missing, 64, int(math.Ceil(plan.Seconds/each))))
		if plan, err = r.Plan(ctx, x, job.Shards); err != nil {
			return err
		}
	}
	job.Shards = min(job.Shards, missing)
	job.Name = jobName(plan.Kept)
	if job.Time = s.time; job.Time == 0 {
		job.Time = max(10*time.Minute, time.Duration(3*max(plan.Longest/float64(job.Cores), plan.Run)*float64(time.Second)))
	}
	if job.Memory = s.memory.Bytes; !s.memory.Given {
		job.Memory = 256<<20 + int64(2*plan.Bytes)*int64(job.Cores)
	}
	if err := s.reachable(plan.Kept, &job); err != nil {
		return err
	}
	job.Command = []string{
		s.binary, "lab", "run", plan.Kept.ID(), "--store", absolute(s.url), "--shard", fmt.Sprintf("/%d", job.Shards), "--cores", fmt.Sprint(job.Cores),
	}
	if s.within > 1 {
		job.Command = append(job.Command, "--cores-per-run", fmt.Sprint(s.within))
	}
	if s.q.rounds != dataplane.DefaultRounds {
		job.Command = append(job.Command, "--rounds", fmt.Sprint(s.q.rounds))
	}
	if err := job.Validate(); err != nil {
		return err
	}
	if s.dryRun {
		_, err := s.c.Out.WriteString(scheduler.Text(&job))
		return err
	}
	if err := r.KeepExperiment(ctx, plan.Kept); err != nil {
		return err
	}
	id, err := scheduler.Submit(ctx, &job)
	if err != nil {
		return &cli.Failure{Code: cli.ExitRefused, Err: err}
	}
	text, err := json.Marshal(submission{Scheduler: s.on, Job: id, Namespace: job.Namespace, Shards: job.Shards})
	if err != nil {
		return err
	}
	if err := st.PutText(ctx, fmt.Sprintf("submissions/%s/%s-%s.json", plan.Kept.ID(), s.on, id), text); err != nil {
		return fmt.Errorf("job %s of %s is submitted, but could not be recorded: %w", id, s.on, err)
	}
	fmt.Fprintf(s.c.Out, "%s: %d of %d runs in %d tasks, job %s of %s; about %v of one core\n", plan.Kept.ID(), missing, plan.Runs, job.Shards, id, s.on, roundedSeconds(plan.Seconds))
	return nil
}

// reachable checks that tasks can access the store, the files and the binary.
func (s *labSubmit) reachable(kept *lab.Kept, job *cluster.Job) error {
	if s.on != "kubernetes" {
		return nil
	}
	if folder := absolute(s.url); !strings.Contains(folder, "://") {
		if job.Volume == "" || !strings.HasPrefix(folder+"/", strings.TrimSuffix(job.Mount, "/")+"/") {
			return fmt.Errorf("the store %s is a folder of this machine: want an object store, or a --volume mounted there", folder)
		}
	}
	if _, err := kept.Experiment(nil); err != nil {
		return fmt.Errorf("%s needs files that tasks of Kubernetes do not have: %w", kept.ID(), err)
	}
	return nil
}

// absolute returns a store's address in a form that is valid in any folder.
func absolute(url string) string {
	if strings.Contains(url, "://") {
		return url
	}
	if abs, err := filepath.Abs(url); err == nil {
		return abs
	}
	return url
}

// jobName returns the name of an experiment's job for schedulers.
func jobName(k *lab.Kept) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(k.ID()))
	if len(id) > 50 {
		id = id[:40] + id[len(id)-9:]
	}
	return "p4lb-" + strings.Trim(id, "-")
}

func roundedSeconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d > time.Hour:
		return d.Round(time.Minute)
	case d > 10*time.Second:
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}
