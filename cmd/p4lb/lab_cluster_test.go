package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wantPrograms skips a test if external programs are missing.
func wantPrograms(t *testing.T, names ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers: not with -short")
	}
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("there is no %s here", n)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventually repeats ask until it returns true. what describes the failure.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("in two minutes %s", what)
		}
	}
}

// background starts a program that runs until the test ends.
func background(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	log, err := os.CreateTemp(dir, name+"-*.out")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		end := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		end.Stop()
		log.Close()
	})
}

// TestShardsS3 runs shards that share a real S3 server. One process
// with a folder must give the same results, byte for byte.
func TestShardsS3(t *testing.T) {
	wantPrograms(t, "minio")
	s := newSweep(t)
	addr := freeAddress(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "p4lbtest")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "p4lb-test-secret")
	data := t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "bucket"), 0o777); err != nil { // a bucket is a folder
		t.Fatal(err)
	}
	background(t, t.TempDir(), []string{"MINIO_ROOT_USER=p4lbtest", "MINIO_ROOT_PASSWORD=p4lb-test-secret", "MINIO_BROWSER=off", "HOME=" + t.TempDir()}, "minio", "server", "--quiet", "--address", addr, data)
	eventually(t, "MinIO does not answer", func() bool {
		resp, err := http.Get("http://" + addr + "/minio/health/ready")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	url := "s3://bucket/some/place?endpoint=http://" + addr
	var shards []*exec.Cmd
	for i := range 2 {
		cmd := s.command("lab", "run", "sweep.yaml", "--store", url, "--cores", "1", "--shard", fmt.Sprintf("%d/2", i+1))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		shards = append(shards, cmd)
	}
	for _, cmd := range shards {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s.run("lab", "report", "sweep.yaml", "--store", url, "-o", "r1")
	s.run("lab", "run", "sweep.yaml", "--store", "folder", "-o", "r2")
	if s.file("r1/table.csv") != s.file("r2/table.csv") {
		t.Error("table.csv of S3 is another one")
	}
	s.run("results", "export", "sweep", "--store", url, "--table", "flows", "-o", "s3.csv")
	s.run("results", "export", "sweep", "--store", "folder", "--table", "flows", "-o", "folder.csv")
	if s.file("s3.csv") != s.file("folder.csv") {
		t.Error("the flows of S3 are others")
	}
	if out := s.run("results", "verify", "sweep", "--store", url, "--sample", "1"); !strings.Contains(out, "16 of 16 runs are there; 1 were made again; 0 are wrong") {
		t.Error(out)
	}
}

// slurmConf configures a Slurm cluster of two nodes on this machine, run by the
// current user.
const slurmConf = `
ClusterName=p4lb
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%[2]s
SlurmUser=%[5]s
SlurmdUser=%[5]s
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.sock
CredType=cred/munge
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=%[1]s/%%n
SlurmctldPidFile=%[1]s/slurmctld.pid
SlurmdPidFile=%[1]s/%%n.pid
SlurmctldLogFile=%[1]s/slurmctld.log
SlurmdLogFile=%[1]s/%%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=%[3]s CPUs=1 RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=%[4]s CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
`

// startSlurm starts a cluster of two nodes with all files in one folder.
func startSlurm(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "p4lb-slurm") // the path of a socket is limited in length
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var ports []any
	for range 3 {
		_, port, _ := net.SplitHostPort(freeAddress(t))
		ports = append(ports, port)
	}
	user, err := exec.Command("id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(slurmConf, append(append([]any{dir}, ports...), strings.TrimSpace(string(user)))...)
	for _, f := range []struct{ name, text string }{{"slurm.conf", conf}, {"munge.key", strings.Repeat("a key for a test", 8)}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"state", "n1", "n2"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // munged checks that others can reach its socket
		t.Fatal(err)
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	in := func(name string) string { return filepath.Join(dir, name) }
	background(t, dir, nil, "munged", "--foreground", "--force", "--socket="+in("munge.sock"), "--key-file="+in("munge.key"), "--pid-file="+in("munged.pid"), "--log-file="+in("munged.log"), "--seed-file="+in("munge.seed"))
	eventually(t, "munged has no socket", func() bool { _, err := os.Stat(in("munge.sock")); return err == nil })
	background(t, dir, nil, "slurmctld", "-D", "-i")
	for _, n := range []string{"n1", "n2"} {
		background(t, dir, nil, "slurmd", "-D", "-N", n)
	}
	eventually(t, "Slurm has not two nodes that are idle", func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--Node", "--format=%T").Output()
		return err == nil && strings.Count(string(out), "idle") == 2
	})
}

// TestSlurm submits, watches and awaits an array on two nodes. One process
// must give the same results, byte for byte.
func TestSlurm(t *testing.T) {
	wantPrograms(t, "munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "scancel")
	startSlurm(t)
	s := newSweep(t)
	p4lb, err := exec.LookPath("p4lb")
	if err != nil {
		t.Fatal(err)
	}
	submit := []string{"lab", "submit", "sweep.yaml", "--on", "slurm", "--store", "shared", "--binary", p4lb}
	if out := s.run(append(submit, "--shards", "4")...); !strings.Contains(out, ": 16 of 16 runs in 4 tasks, job 1 of slurm; about ") {
		t.Error(out)
	}
	out, err := s.command("lab", "wait", "sweep.yaml", "--store", "shared", "--every", "200ms").CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(s.dir, "p4lb-*.log"))
		for _, l := range logs {
			text, _ := os.ReadFile(l)
			out = append(out, text...)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	if out := s.run("lab", "status", "sweep.yaml", "--store", "shared"); !strings.Contains(out, "  16    16    0s ") {
		t.Error(out)
	}
	s.run("lab", "run", "sweep.yaml", "--store", "one", "-o", "r1")
	s.run("lab", "report", "sweep.yaml", "--store", "shared", "-o", "r2")
	s.same("one", "shared")
	if s.file("r1/table.csv") != s.file("r2/table.csv") {
		t.Error("table.csv of Slurm is another one")
	}
	if out := s.run(submit...); !strings.Contains(out, "the store has all 16 runs") {
		t.Error(out)
	}

	// Another experiment is submitted and cancelled.
	long := strings.Replace(sweepFile, "duration: 10ms", "duration: 20s", 1)
	if err := os.WriteFile(filepath.Join(s.dir, "sweep.yaml"), []byte(long), 0o666); err != nil {
		t.Fatal(err)
	}
	s.run(append(submit, "--shards", "2", "--memory", "300MiB")...)
	if out := s.run("lab", "cancel", "sweep.yaml", "--store", "shared"); !strings.Contains(out, "ended job ") {
		t.Error(out)
	}
	eventually(t, "the job that was ended is at work", func() bool {
		return strings.Contains(s.run("lab", "status", "sweep.yaml", "--store", "shared"), "ended")
	})
	if out, err := s.command("lab", "wait", "sweep.yaml", "--store", "shared", "--every", "100ms").CombinedOutput(); err == nil || !strings.Contains(string(out), "no job is running, but 16 of 16 runs are missing") {
		t.Errorf("%v\n%s", err, out)
	}
}
