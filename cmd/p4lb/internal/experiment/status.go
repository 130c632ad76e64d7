package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/cluster"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// A submission is the record of a job in the store.
type submission struct {
	Scheduler string `json:"scheduler"`
	Job       string `json:"job"`
	Namespace string `json:"namespace,omitempty"`
	Shards    int    `json:"shards"`
}

// A labFollow queries the store and the schedulers about the progress of experiments.
type labFollow struct {
	c   *cli.Console
	q   labChoice
	url string

	st    *store.Store
	plans []*lab.Plan
}

func (l *labFollow) addFlags(cmd *cobra.Command) {
	addStoreFlag(cmd, &l.url)
	l.q.addFlags(cmd)
	cli.AddRoundsFlag(cmd, &l.q.rounds)
}

func (l *labFollow) open(cmd *cobra.Command, args []string) (err error) {
	if l.url == "" {
		return cli.UsageError(cmd, "%s wants the --store of the runs", cmd.CommandPath())
	}
	if l.st, err = openStore(cmd.Context(), l.url, false); err != nil {
		return err
	}
	list, err := l.q.load(cmd, l.c, l.st, args)
	if err != nil {
		return err
	}
	for _, x := range list {
		r := &lab.Runner{Store: l.st, Rounds: l.q.rounds, Read: cli.Besides(l.q.dirs...)}
		plan, err := r.Plan(cmd.Context(), x, 1)
		if err != nil {
			return err
		}
		l.plans = append(l.plans, plan)
	}
	return nil
}

// A standing describes the progress of an experiment.
type standing struct {
	Experiment string     `json:"experiment"`
	Runs       int        `json:"runs"`
	Done       int        `json:"done"`
	Seconds    float64    `json:"seconds_left"` // remaining seconds on one core
	Jobs       []jobState `json:"jobs"`
}

type jobState struct {
	submission
	State  cluster.State `json:"state"`
	Active int           `json:"active"`
}

func (s *standing) active() (n, running int) {
	for _, j := range s.Jobs {
		n += j.Active
		running += j.State.Running
	}
	return n, running
}

// look queries the store and the schedulers.
func (l *labFollow) look(ctx context.Context) ([]*standing, error) {
	have, err := l.st.Has(ctx)
	if err != nil {
		return nil, explainStore(err)
	}
	var list []*standing
	for _, p := range l.plans {
		s := &standing{Experiment: p.Kept.ID(), Runs: p.Runs, Done: p.Kept.Done(have)}
		if left := p.Runs - p.There; left > 0 {
			s.Seconds = p.Seconds * float64(s.Runs-s.Done) / float64(left)
		}
		if s.Jobs, err = l.jobs(ctx, p.Kept); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// jobs queries the state of each job of an experiment.
func (l *labFollow) jobs(ctx context.Context, k *lab.Kept) ([]jobState, error) {
	notes, err := l.st.List(ctx, "submissions/"+k.ID()+"/")
	if err != nil {
		return nil, err
	}
	list := []jobState{}
	for _, o := range notes {
		text, err := l.st.Text(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		var j jobState
		if json.Unmarshal(text, &j.submission) != nil {
			l.c.Warning("%s of the store does not describe a job", o.Name)
			continue
		}
		scheduler, err := cluster.Submitted(j.Scheduler, j.Namespace, j.Job)
		if err != nil {
			l.c.Warning("%s of the store does not describe a job: %v", o.Name, err)
			continue
		}
		if j.State, err = scheduler.State(ctx, j.Job); err != nil {
			return nil, &cli.Failure{Code: cli.ExitRefused, Err: err}
		}
		j.Active = j.State.Active()
		list = append(list, j)
	}
	return list, nil
}

func newLabStatus(c *cli.Console) *cobra.Command {
	l := &labFollow{c: c}
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "status " + choiceUse + " --store URL",
		Short: "Show the progress of experiments in a store and of their jobs",
		Long: `Status shows how many runs of experiments the store has, the state of jobs from
lab submit, and an estimate of the remaining work.`,
		Example: `  p4lb lab status qall-bmv2 --store runs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.open(cmd, args); err != nil {
				return err
			}
			list, err := l.look(cmd.Context())
			if err != nil {
				return err
			}
			rows := cli.Grid{{"EXPERIMENT", "RUNS", "DONE", "WORK LEFT", "JOBS"}}
			for _, s := range list {
				jobs := lists.Map(s.Jobs, func(j jobState) string { return fmt.Sprintf("%s %s: %v", j.Scheduler, j.Job, j.State) })
				if len(jobs) == 0 {
					jobs = []string{"none submitted"}
				}
				rows = append(rows, []string{s.Experiment, fmt.Sprint(s.Runs), fmt.Sprint(s.Done), roundedSeconds(s.Seconds).String(), strings.Join(jobs, "; ")})
			}
			return cli.Show(c.Out, form, rows, list)
		},
	}
	l.addFlags(cmd)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func newLabWait(c *cli.Console) *cobra.Command {
	l := &labFollow{c: c}
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "wait " + choiceUse + " --store URL",
		Short: "Wait until the store has all runs of experiments",
		Long: `Wait shows a progress bar for all runs of the experiments with the remaining time, and
ends when the store has all of them. It fails if runs are missing and no job is active.`,
		Example: `  p4lb lab wait qall-bmv2 --store runs && p4lb lab report qall-bmv2 --store runs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every <= 0 {
				return cli.UsageError(cmd, "--every %v: want a time above 0", every)
			}
			if err := l.open(cmd, args); err != nil {
				return err
			}
			return l.wait(cmd.Context(), every)
		},
	}
	l.addFlags(cmd)
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "check every `TIME`")
	return cmd
}

// idleLooks is the number of consecutive checks without an active job after which wait gives up.
// The last runs may reach the store just when their task ends.
const idleLooks = 2

func (l *labFollow) wait(ctx context.Context, every time.Duration) error {
	o := live.ProgressOptions{Out: l.c.Err, Terminal: cli.IsTerminal(l.c.Err) && !l.c.LogJSON, What: "runs", Unit: "runs"}
	if l.c.Quiet {
		o.Out = io.Discard
	}
	bar := live.NewProgress(o)
	defer bar.End()
	first, idle := -1, 0
	for {
		list, err := l.look(ctx)
		if err != nil {
			return err
		}
		total, done, active, running, jobs := 0, 0, 0, 0, 0
		for _, s := range list {
			a, r := s.active()
			total, done, active, running, jobs = total+s.Runs, done+s.Done, active+a, running+r, jobs+len(s.Jobs)
		}
		if first < 0 {
			first = done
		}
		bar.Of(total, first)
		bar.Set(done, fmt.Sprintf("%d tasks at work", running))
		if done == total {
			return nil
		}
		if idle++; active > 0 || jobs == 0 {
			idle = 0
		}
		if idle >= idleLooks {
			return cli.Hinted(fmt.Errorf("no job is running, but %d of %d runs are missing", total-done, total), "see the tasks' logs; lab submit submits the missing runs")
		}
		if err := plain.Pause(ctx, every); err != nil {
			return err
		}
	}
}

func newLabCancel(c *cli.Console) *cobra.Command {
	l := &labFollow{c: c}
	cmd := &cobra.Command{
		Use:   "cancel " + choiceUse + " --store URL",
		Short: "Cancel the running jobs of experiments",
		Long: `Cancel ends jobs from lab submit through their schedulers. Finished runs stay in the
store.`,
		Example: `  p4lb lab cancel qall-bmv2 --store runs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.open(cmd, args); err != nil {
				return err
			}
			list, err := l.look(cmd.Context())
			if err != nil {
				return err
			}
			ended := 0
			for _, s := range list {
				for _, j := range s.Jobs {
					if j.Active == 0 {
						continue
					}
					scheduler, err := cluster.Submitted(j.Scheduler, j.Namespace, j.Job)
					if err == nil {
						err = scheduler.Cancel(cmd.Context(), j.Job)
					}
					if err != nil {
						return &cli.Failure{Code: cli.ExitRefused, Err: err}
					}
					ended++
					fmt.Fprintf(c.Out, "ended job %s of %s\n", j.Job, j.Scheduler)
				}
			}
			if ended == 0 {
				return errors.New("no job is at work")
			}
			return nil
		},
	}
	l.addFlags(cmd)
	return cmd
}
