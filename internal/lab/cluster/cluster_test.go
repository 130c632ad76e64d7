package cluster

import (
	"fmt"
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
		`{"spec":{"completions":5},"status":{"ready":1,"conditions":[{"type":"Failed","status":"False"},{"type":"Suspended","status":"True"}]}}`:                {Pending: 4, Running: 1},
		`{"spec":{"completions":5},"status":{"ready":1,"succeeded":2,"conditions":[{"type":"Failed","status":"True","reason":"DeadlineExceeded"}]}}`:            {Done: 2, Failed: 3, Reason: "DeadlineExceeded"},
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

// TestManifest compares whole manifests: with all options, and with none.
func TestManifest(t *testing.T) {
	const head = `apiVersion: batch/v1
kind: Job
metadata:
  name: p4lb-demo-1a2b3c4d
%s  labels: {app.kubernetes.io/name: p4lb}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimitPerIndex: 3
  maxFailedIndexes: 3
  podFailurePolicy:
    rules:
      - action: Ignore # draining a node is not a failure
        onPodConditions: [{type: DisruptionTarget}]
  template:
    metadata:
      labels: {app.kubernetes.io/name: p4lb}
    spec:
      restartPolicy: Never
      activeDeadlineSeconds: 5401
      containers:
        - name: p4lb
          image: "registry/p4lb:1"
          command:
            - "lab"
            - "it's \"x\""
          resources:
            requests: {cpu: "2", memory: %s}
            limits: {memory: %s}
%s`
	j := small()
	j.Image, j.Command = "registry/p4lb:1", []string{"lab", `it's "x"`}
	if d := cmp.Diff(fmt.Sprintf(head, "", "301Mi", "301Mi", ""), kubernetes{}.Text(j)); d != "" {
		t.Error(d)
	}
	j.Namespace, j.Secret, j.Volume, j.Mount, j.Memory = "net", "keys", "claim", "/shared", 300<<20
	const tail = `          envFrom: [{secretRef: {name: keys}}]
          volumeMounts: [{name: shared, mountPath: "/shared"}]
      volumes: [{name: shared, persistentVolumeClaim: {claimName: claim}}]
`
	if d := cmp.Diff(fmt.Sprintf(head, "  namespace: net\n", "300Mi", "300Mi", tail), kubernetes{}.Text(j)); d != "" {
		t.Error(d)
	}
	j.Memory, j.Time = 300<<20, 50*time.Hour+time.Minute
	if text := (slurm{}).Text(j); !strings.Contains(text, "#SBATCH --mem=300M\n#SBATCH --time=2-02:01:00\n") || strings.Contains(text, "partition") || strings.Contains(text, "account") {
		t.Errorf("no limits of 300 MB and 50 hours in\n%s", text)
	}
}

// TestCalls checks the commands of schedulers, with stand-ins for their tools that
// record the arguments and print a file.
func TestCalls(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, tool := range []string{"squeue", "scancel", "sbatch", "kubectl"} {
		script := "#!/bin/sh\necho " + tool + " \"$@\" >> " + dir + "/calls\ncat " + dir + "/answer >&2 2>/dev/null && exit 1\ncat " + dir + "/" + tool + ".out 2>/dev/null\nexit 0\n"
		if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	calls := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "calls"))
		os.Remove(filepath.Join(dir, "calls"))
		return string(text)
	}
	ctx, s := t.Context(), slurm{}
	put("sbatch.out", "17;cluster\n")
	if id, err := s.Submit(ctx, small()); err != nil || id != "17" || calls() != "sbatch --parsable\n" {
		t.Errorf("submitted as %q, %v", id, err)
	}
	put("squeue.out", "RUNNING|None\nPENDING|Priority\n")
	if state, err := s.State(ctx, "17"); err != nil || state != (State{Running: 1, Pending: 1}) || calls() != "squeue --noheader --array --jobs=17 --format=%T|%r\n" {
		t.Errorf("%+v, %v", state, err)
	}
	if err := s.Cancel(ctx, "17"); err != nil || calls() != "scancel 17\n" {
		t.Error(err)
	}
	put("answer", "slurm_load_jobs error: Invalid job id specified\n")
	if state, err := s.State(ctx, "17"); err != nil || !state.Gone {
		t.Errorf("a job that Slurm has forgotten: %+v, %v", state, err)
	}
	if err := s.Cancel(ctx, "17"); err != nil {
		t.Errorf("cancelling a job that Slurm has forgotten: %v", err)
	}
	put("answer", "no controller\n")
	if state, err := s.State(ctx, "17"); err == nil || err.Error() != "squeue: no controller" || state.Gone {
		t.Errorf("%+v, %v", state, err)
	}
	if err := s.Cancel(ctx, "17"); err == nil || err.Error() != "scancel: no controller" {
		t.Error(err)
	}
	put("answer", "")
	if err := s.Cancel(ctx, "17"); err == nil || err.Error() != "scancel: exit status 1" {
		t.Errorf("a failure without a message: %v", err)
	}
	os.Remove(filepath.Join(dir, "answer"))
	calls()

	k := kubernetes{namespace: "net"}
	const get, remove, create = "kubectl --namespace net get job p4lb-demo-1a2b3c4d --ignore-not-found -o json\n",
		"kubectl --namespace net delete job p4lb-demo-1a2b3c4d --ignore-not-found --cascade=foreground --wait=true\n", "kubectl --namespace net create -f -\n"
	if id, err := k.Submit(ctx, small()); err != nil || id != small().Name || calls() != get+create {
		t.Errorf("submitted as %q, %v", id, err)
	}
	put("kubectl.out", `{"spec":{"completions":3},"status":{"succeeded":3,"conditions":[{"type":"Complete","status":"True"}]}}`)
	if _, err := k.Submit(ctx, small()); err != nil || calls() != get+remove+create {
		t.Errorf("a finished job is not replaced: %v", err)
	}
	put("kubectl.out", `{"spec":{"completions":3},"status":{"ready":1,"succeeded":2}}`)
	if _, err := k.Submit(ctx, small()); err == nil || err.Error() != "job p4lb-demo-1a2b3c4d exists (1 running, 2 done): cancel it with lab cancel" || calls() != get {
		t.Errorf("a running job: %v", err)
	}
	if err := k.Cancel(ctx, small().Name); err != nil || calls() != remove {
		t.Error(err)
	}
	put("answer", "forbidden\n")
	if _, err := k.Submit(ctx, small()); err == nil || err.Error() != "kubectl: forbidden" || calls() != get {
		t.Errorf("an unreachable server: %v", err)
	}
	if err := k.Cancel(ctx, small().Name); err == nil || err.Error() != "kubectl: forbidden" {
		t.Error(err)
	}
	os.Remove(filepath.Join(dir, "answer"))
	calls()
	if _, err := (kubernetes{}).State(ctx, "a"); err != nil || calls() != "kubectl get job a --ignore-not-found -o json\n" {
		t.Error("the namespace is not the default one")
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
