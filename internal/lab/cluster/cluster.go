// Package cluster hands an experiment's shards to a scheduler that a site has,
// as one job of many tasks: an array of Slurm, an Indexed Job of Kubernetes. It
// writes what these know, calls their own command-line tools, and asks them how it
// goes. It schedules nothing itself.
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

// A Job is shards to be run, each by one task.
type Job struct {
	Name    string // letters, digits and hyphens, as schedulers take them
	Command []string
	Shards  int
	Cores   int           // of a task
	Memory  int64         // bytes, of a task
	Time    time.Duration // that a task may take
	Folder  string        // to run in, and for what tasks print: Slurm

	// Of Kubernetes.
	Image     string
	Namespace string
	Secret    string // whose entries become the tasks' environment
	Volume    string // a claim that is mounted at Mount
	Mount     string

	// Of Slurm.
	Partition string
	Account   string
}

// A State is how many tasks of a job do what. Slurm forgets those that have ended.
type State struct {
	Pending, Running, Done, Failed int
	Gone                           bool // the scheduler does not know the job any more
	Reason                         string
}

// Active is how many tasks may still make runs.
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

// A Scheduler takes jobs.
type Scheduler interface {
	// Text is what is submitted.
	Text(j *Job) string
	// Submit hands it over, and returns the name that the scheduler gives it.
	Submit(ctx context.Context, j *Job) (string, error)
	State(ctx context.Context, id string) (State, error)
	Cancel(ctx context.Context, id string) error
}

// Schedulers lists those that there are.
var Schedulers = []string{"slurm", "kubernetes"}

// Named finds a scheduler; namespace is Kubernetes'.
func Named(name, namespace string) (Scheduler, error) {
	switch name {
	case "slurm":
		return slurm{}, nil
	case "kubernetes":
		return kubernetes{namespace}, nil
	}
	return nil, fmt.Errorf("scheduler %q: want %s", name, strings.Join(Schedulers, " or "))
}

// Submitted finds the scheduler that a job was submitted to, by a note of it. Who
// may write notes would otherwise have a say in what the tools do: they take a word
// that begins with a hyphen for an option, and scancel --me ends all jobs of one's.
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

// run calls a tool of the scheduler, with text on its standard input, and returns
// what it prints.
func run(ctx context.Context, text, tool string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdin = strings.NewReader(text)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("there is no %s on the path: this wants a machine from which jobs are submitted", tool)
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

// A refusal is what a tool of the scheduler has said.
type refusal struct{ error }

// Validate says what is wrong with a job, whoever is to run it.
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
