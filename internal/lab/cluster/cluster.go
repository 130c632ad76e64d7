// Package cluster submits the shards of an experiment to a site's scheduler as
// one job with many tasks: a Slurm job array or a Kubernetes Indexed Job. It
// writes the job description, calls the scheduler's command-line tools, and
// queries the job's state. The scheduler decides when and where tasks run.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A Job is a set of shards, each executed by one task.
type Job struct {
	Name    string // letters, digits and hyphens, as schedulers require
	Command []string
	Shards  int
	Cores   int           // per task
	Memory  int64         // per task, in bytes
	Time    time.Duration // time limit of a task
	Folder  string        // Slurm: working directory, also for the tasks' output

	// Options for Kubernetes.
	Image     string
	Namespace string
	Secret    string // its entries become the tasks' environment
	Volume    string // a claim that is mounted at Mount
	Mount     string

	// Options for Slurm.
	Partition string
	Account   string
}

// A State counts the tasks of a job by state. Slurm forgets tasks some time
// after they end.
type State struct {
	Pending, Running, Done, Failed int
	Gone                           bool // the scheduler no longer knows the job
	Reason                         string
}

// Active returns the number of tasks that may still execute runs.
func (s State) Active() int { return s.Pending + s.Running }

func (s State) String() string {
	var list []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Running, "running"}, {s.Pending, "pending"}, {s.Done, "done"}, {s.Failed, "failed"}} {
		if p.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(list) == 0 {
		list = []string{"ended"}
	}
	text := strings.Join(list, ", ")
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// A Scheduler accepts jobs.
type Scheduler interface {
	// Text returns the job description to submit.
	Text(j *Job) string
	// Submit submits the job and returns the scheduler's id for it.
	Submit(ctx context.Context, j *Job) (string, error)
	State(ctx context.Context, id string) (State, error)
	Cancel(ctx context.Context, id string) error
}

// Schedulers lists the supported schedulers.
var Schedulers = []string{"slurm", "kubernetes"}

// Named returns a scheduler by name; namespace applies to Kubernetes.
func Named(name, namespace string) (Scheduler, error) {
	switch name {
	case "slurm":
		return slurm{}, nil
	case "kubernetes":
		return kubernetes{namespace}, nil
	}
	return nil, fmt.Errorf("scheduler %q: want %s", name, strings.Join(Schedulers, " or "))
}

// Submitted returns the scheduler of a submitted job from a note in the store.
// It validates the id: an id starting with a hyphen would be an option for the
// scheduler's tools, and the note could be forged (scancel --me ends all jobs
// of the user).
func Submitted(name, namespace, id string) (Scheduler, error) {
	if !isWord(id) || namespace != "" && !isWord(namespace) {
		return nil, fmt.Errorf("job %q in namespace %q: want letters, digits, and within them -, _ and dots", id, namespace)
	}
	return Named(name, namespace)
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	within  = letters + "-_."
)

func isWord(text string) bool {
	return text != "" && strings.Contains(letters, text[:1]) && strings.Trim(text, within) == ""
}

// run calls a tool of the scheduler with the given standard input and returns
// its output.
func run(ctx context.Context, text, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdin = strings.NewReader(text)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s not found: run this on a machine that can submit jobs", tool)
	}
	if err != nil {
		said := strings.Join(strings.Fields(errs.String()), " ")
		if said == "" {
			said = err.Error()
		}
		return "", &refusal{fmt.Errorf("%s: %s", tool, said)}
	}
	return strings.TrimSpace(out.String()), nil
}

// A refusal is an error message of a scheduler's tool.
type refusal struct{ error }

// Validate reports options that no scheduler accepts.
func (j *Job) Validate() error {
	switch {
	case j.Shards < 1 || j.Shards > 10000:
		return fmt.Errorf("%d shards: want 1 to 10000", j.Shards)
	case j.Cores < 1:
		return fmt.Errorf("%d cores for a shard: want at least 1", j.Cores)
	case len(j.Command) == 0:
		return errors.New("there is no command to run")
	}
	return nil
}
