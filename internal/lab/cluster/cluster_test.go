package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// small returns a job with words that need quoting.
func small() *Job {
	return &Job{
		Name: "p4lb-demo-1a2b3c4d", Command: []string{"/opt/p4lb's/p4lb", "lab", "run", "demo-1a2b3c4d", "--store", "s3://b/p?endpoint=http://h:9000&region=r", "--shard", "/3"},
		Shards: 3, Cores: 2, Memory: 300<<20 + 1, Time: 90*time.Minute + time.Second, Folder: "/shared/my work",
	}
}

func TestSlurmText(t *testing.T) {
	j := small()
	j.Partition, j.Account = "long", "net"
	const want = `#!/bin/sh
#SBATCH --job-name=p4lb-demo-1a2b3c4d
#SBATCH --array=1-3
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=301M
#SBATCH --time=0-01:31:00
#SBATCH --requeue
#SBATCH --signal=B:USR1@60
#SBATCH --open-mode=append
#SBATCH --partition=long
#SBATCH --account=net
#SBATCH --chdir="/shared/my work"
#SBATCH --output="/shared/my work/p4lb-demo-1a2b3c4d-%A_%a.log"
trap '[ "${SLURM_RESTART_COUNT:-0}" -ge 20 ] || scontrol requeue "$SLURM_JOB_ID"' USR1
'/opt/p4lb'\''s/p4lb' lab run demo-1a2b3c4d --store 's3://b/p?endpoint=http://h:9000&region=r' --shard /3 &
wait $!; code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
`
	if d := cmp.Diff(want, slurm{}.Text(j)); d != "" {
		t.Error(d)
	}
}

// TestKubernetesText: the manifest is valid YAML for arbitrary texts and has
// the expected content. TestAPIServer checks that a server accepts it.
func TestKubernetesText(t *testing.T) {
	j := small()
	j.Image, j.Namespace, j.Secret, j.Volume, j.Mount = "registry/p4lb:1", "net", "keys", "claim", "/shared"
	var m struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			CompletionMode       string `yaml:"completionMode"`
			Completions          int
			Parallelism          int
			BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
			Template             struct {
				Spec struct {
					RestartPolicy         string `yaml:"restartPolicy"`
					ActiveDeadlineSeconds int    `yaml:"activeDeadlineSeconds"`
					Containers            []struct {
						Image     string
						Command   []string
						Resources struct{ Requests, Limits map[string]string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(kubernetes{}.Text(j)), &m); err != nil {
		t.Fatal(err)
	}
	pod := m.Spec.Template.Spec
	if m.Kind != "Job" || m.Metadata.Namespace != "net" || m.Spec.CompletionMode != "Indexed" || m.Spec.Completions != 3 || m.Spec.BackoffLimitPerIndex != retries ||
		pod.RestartPolicy != "Never" || pod.ActiveDeadlineSeconds != 5401 || len(pod.Containers) != 1 {
		t.Errorf("%+v", m)
	}
	if d := cmp.Diff(j.Command, pod.Containers[0].Command); d != "" {
		t.Error(d)
	}
	if r := pod.Containers[0].Resources; r.Requests["cpu"] != "2" || r.Limits["memory"] != "301Mi" {
		t.Errorf("%+v", r)
	}
}

func TestStates(t *testing.T) {
	const squeue = "PENDING|Priority\nPENDING|QOSMaxCpuPerUserLimit\nRUNNING|None\nCOMPLETING|None\nCOMPLETED|None\nTIMEOUT|TimeLimit"
	if s := slurmState(squeue); s.Pending != 2 || s.Running != 2 || s.Done != 1 || s.Failed != 1 || s.Active() != 4 || s.Gone || s.String() != "2 running, 2 pending, 1 done, 1 failed (TIMEOUT)" {
		t.Errorf("%+v: %v", s, s)
	}
	if s := slurmState(""); !s.Gone || s.String() != "ended" {
		t.Errorf("%+v: %v", s, s)
	}
	for text, want := range map[string]State{
		"": {Gone: true},
		`{"spec":{"completions":5},"status":{"active":3,"ready":2,"succeeded":1,"failedIndexes":"4"}}`:                                                          {Pending: 1, Running: 2, Done: 1, Failed: 1},
		`{"spec":{"completions":5},"status":{"succeeded":5,"conditions":[{"type":"Complete","status":"True"}]}}`:                                                {Done: 5},
		`{"spec":{"completions":9},"status":{"succeeded":5,"failedIndexes":"1,3-5","conditions":[{"type":"Failed","status":"True","reason":"FailedIndexes"}]}}`: {Done: 5, Failed: 4, Reason: "FailedIndexes"},
	} {
		if got, err := kubernetesState(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	if _, err := kubernetesState("no"); err == nil {
		t.Error("invalid JSON was accepted as a job")
	}
}

// TestSubmitted: notes in a store are untrusted.
func TestSubmitted(t *testing.T) {
	for _, c := range []struct {
		scheduler, namespace, id string
		good                     bool
	}{
		{"slurm", "", "1234", true},
		{"kubernetes", "lab", "p4lb-demo-1a2b3c4d", true},
		{"slurm", "", "--me", false},
		{"slurm", "", "", false},
		{"slurm", "", "1 2", false},
		{"slurm", "", "1,2", false},
		{"kubernetes", "", "--all", false},
		{"kubernetes", "", "job/other", false},
		{"kubernetes", "--all-namespaces", "demo", false},
		{"pbs", "", "1", false},
	} {
		if _, err := Submitted(c.scheduler, c.namespace, c.id); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTools: the error message of a tool is reported in one line, and a missing
// tool by its name.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, name := range Schedulers {
		s, err := Named(name, "net")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Submit(t.Context(), small()); err == nil || !strings.Contains(err.Error(), "not found: run this on a machine that can submit jobs") {
			t.Errorf("%s without its tools: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sbatch"), []byte("#!/bin/sh\necho 'sbatch: error: Batch job\n  refused' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (slurm{}).Submit(t.Context(), small()); err == nil || err.Error() != "sbatch: sbatch: error: Batch job refused" {
		t.Error(err)
	}
	if _, err := Named("pbs", ""); err == nil || !strings.Contains(err.Error(), "want slurm or kubernetes") {
		t.Error(err)
	}
	for _, j := range []*Job{{Shards: 0, Cores: 1, Command: []string{"x"}}, {Shards: 20000, Cores: 1, Command: []string{"x"}}, {Shards: 1, Command: []string{"x"}}, {Shards: 1, Cores: 1}} {
		if j.Validate() == nil {
			t.Errorf("%+v is valid", j)
		}
	}
}
