package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// kubernetes submits an Indexed Job. Completion indexes 0 to N-1 are shards 1
// to N; lab run reads the index from JOB_COMPLETION_INDEX.
type kubernetes struct{ namespace string }

// retries is how often a failed shard is restarted.
const retries = 3

// Text returns the manifest.
func (kubernetes) Text(j *Job) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: batch/v1")
	line("kind: Job")
	line("metadata:")
	line("  name: %s", j.Name)
	if j.Namespace != "" {
		line("  namespace: %s", j.Namespace)
	}
	line("  labels: {app.kubernetes.io/name: p4lb}")
	line("spec:")
	line("  completionMode: Indexed")
	line("  completions: %d", j.Shards)
	line("  parallelism: %d", j.Shards)
	line("  backoffLimitPerIndex: %d", retries)
	line("  maxFailedIndexes: %d", j.Shards)
	line("  podFailurePolicy:")
	line("    rules:")
	line("      - action: Ignore # draining a node is not a failure")
	line("        onPodConditions: [{type: DisruptionTarget}]")
	line("  template:")
	line("    metadata:")
	line("      labels: {app.kubernetes.io/name: p4lb}")
	line("    spec:")
	line("      restartPolicy: Never")
	line("      activeDeadlineSeconds: %.0f", math.Ceil(j.Time.Seconds()))
	line("      containers:")
	line("        - name: p4lb")
	line("          image: %s", quoted(j.Image))
	line("          command:")
	for _, w := range j.Command {
		line("            - %s", quoted(w))
	}
	memory := fmt.Sprintf("%dMi", (j.Memory+1<<20-1)>>20)
	line("          resources:")
	line("            requests: {cpu: %q, memory: %s}", fmt.Sprint(j.Cores), memory)
	line("            limits: {memory: %s}", memory)
	if j.Secret != "" {
		line("          envFrom: [{secretRef: {name: %s}}]", j.Secret)
	}
	if j.Volume != "" {
		line("          volumeMounts: [{name: shared, mountPath: %s}]", quoted(j.Mount))
		line("      volumes: [{name: shared, persistentVolumeClaim: {claimName: %s}}]", j.Volume)
	}
	return b.String()
}

// quoted quotes a text for YAML, which accepts JSON strings.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // cannot happen: text is a string
	}
	return string(b)
}

// kubectl calls kubectl in the namespace.
func (k kubernetes) kubectl(ctx context.Context, text string, args ...string) (string, error) {
	if k.namespace != "" {
		args = append([]string{"--namespace", k.namespace}, args...)
	}
	return run(ctx, text, "kubectl", args...)
}

// Submit replaces a finished Job of the same name. It belongs to the same
// experiment, and the store has its runs.
func (k kubernetes) Submit(ctx context.Context, j *Job) (string, error) {
	state, err := k.State(ctx, j.Name)
	if err != nil {
		return "", err
	}
	if state.Active() > 0 {
		return "", fmt.Errorf("job %s exists (%v): cancel it with lab cancel", j.Name, state)
	}
	if !state.Gone {
		if err := k.Cancel(ctx, j.Name); err != nil {
			return "", err
		}
	}
	_, err = k.kubectl(ctx, k.Text(j), "create", "-f", "-")
	return j.Name, err
}

func (k kubernetes) State(ctx context.Context, id string) (State, error) {
	out, err := k.kubectl(ctx, "", "get", "job", id, "--ignore-not-found", "-o", "json")
	if err != nil {
		return State{}, err
	}
	return kubernetesState(out)
}

// kubernetesState parses the status of a Job.
func kubernetesState(out string) (State, error) {
	if out == "" {
		return State{Gone: true}, nil
	}
	var job struct {
		Spec   struct{ Completions int }
		Status struct {
			Active, Ready, Succeeded int
			FailedIndexes            string
			Conditions               []struct{ Type, Status, Reason string }
		}
	}
	if err := json.Unmarshal([]byte(out), &job); err != nil {
		return State{}, errors.New("kubectl: the output is not a job")
	}
	s := State{Running: job.Status.Ready, Done: job.Status.Succeeded, Failed: indexes(job.Status.FailedIndexes)}
	s.Pending = job.Spec.Completions - s.Running - s.Done - s.Failed
	for _, c := range job.Status.Conditions {
		if c.Status == "True" && (c.Type == "Failed" || c.Type == "Complete") {
			s.Pending, s.Running = 0, 0
			if c.Type == "Failed" {
				s.Reason = c.Reason
				s.Failed = job.Spec.Completions - s.Done
			}
		}
	}
	return s, nil
}

// indexes counts the elements of a list such as 1,3-5.
func indexes(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		var from, to int
		switch k, _ := fmt.Sscanf(part, "%d-%d", &from, &to); k {
		case 1:
			n++
		case 2:
			n += to - from + 1
		}
	}
	return n
}

func (k kubernetes) Cancel(ctx context.Context, id string) error {
	_, err := k.kubectl(ctx, "", "delete", "job", id, "--ignore-not-found", "--cascade=foreground", "--wait=true")
	return err
}
