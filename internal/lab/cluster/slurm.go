package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
)

// slurm submits a job array. Tasks 1 to N are shards 1 to N; lab run reads the
// number from SLURM_ARRAY_TASK_ID.
type slurm struct{}

// Text returns the script for sbatch.
func (slurm) Text(j *Job) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	option := func(format string, args ...any) { fmt.Fprintf(&b, "#SBATCH --"+format+"\n", args...) }
	option("job-name=%s", j.Name)
	option("array=1-%d", j.Shards)
	option("ntasks=1")
	option("cpus-per-task=%d", j.Cores)
	option("mem=%dM", (j.Memory+1<<20-1)>>20)
	// Slurm's time limits are whole minutes.
	m := int(math.Ceil(j.Time.Minutes()))
	option("time=%d-%02d:%02d:00", m/1440, m/60%24, m%60)
	option("requeue") // finished runs are in the store
	option("signal=B:USR1@60")
	option("open-mode=append")
	if j.Partition != "" {
		option("partition=%s", j.Partition)
	}
	if j.Account != "" {
		option("account=%s", j.Account)
	}
	option("chdir=%s", slurmWord(j.Folder))
	option("output=%s", slurmWord(filepath.Join(j.Folder, j.Name+"-%A_%a.log")))
	fmt.Fprintf(&b, inTime, restarts, shellWords(j.Command))
	return b.String()
}

// restarts bounds how often a task is requeued after a timeout. A single run
// that takes longer than the time limit would never finish.
const restarts = 20

// inTime runs a command. When Slurm signals, one to two minutes before the time
// limit, the script requeues the task, which Slurm does not do by itself.
const inTime = `trap '[ "${SLURM_RESTART_COUNT:-0}" -ge %d ] || scontrol requeue "$SLURM_JOB_ID"' USR1
%s &
wait $!; code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
`

// slurmWord quotes a value with spaces, because Slurm splits options at them.
func slurmWord(text string) string {
	if strings.ContainsAny(text, " \t") {
		return `"` + text + `"`
	}
	return text
}

// shellWords quotes a command for sh.
func shellWords(words []string) string {
	var list []string
	for _, w := range words {
		if w == "" || strings.Trim(w, within+"/:=+,@") != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}

func (s slurm) Submit(ctx context.Context, j *Job) (string, error) {
	out, err := run(ctx, s.Text(j), "sbatch", "--parsable")
	id, _, _ := strings.Cut(out, ";") // the cluster's name follows the id
	return id, err
}

func (slurm) State(ctx context.Context, id string) (State, error) {
	out, err := run(ctx, "", "squeue", "--noheader", "--array", "--jobs="+id, "--format=%T|%r")
	var said *refusal
	if errors.As(err, &said) && strings.Contains(err.Error(), "Invalid job id") {
		return State{Gone: true}, nil
	}
	if err != nil {
		return State{}, err
	}
	return slurmState(out), nil
}

// slurmState counts the lines printed by squeue, one per task that has not
// ended long ago.
func slurmState(out string) (s State) {
	s.Gone = out == ""
	for line := range strings.Lines(out) {
		state, reason, _ := strings.Cut(strings.TrimSpace(line), "|")
		switch state {
		case "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SUSPENDED", "SPECIAL_EXIT":
			s.Pending++
			if reason != "None" && reason != "Priority" && reason != "Resources" {
				s.Reason = reason
			}
		case "RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT", "STOPPED":
			s.Running++
		case "COMPLETED":
			s.Done++
		default: // FAILED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL, CANCELLED …
			s.Failed++
			s.Reason = state
		}
	}
	return s
}

func (slurm) Cancel(ctx context.Context, id string) error {
	_, err := run(ctx, "", "scancel", id)
	var said *refusal
	if errors.As(err, &said) && strings.Contains(err.Error(), "Invalid job id") {
		return nil
	}
	return err
}
