package main

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sweepFile has 16 runs, long enough to kill some.
const sweepFile = `
name: sweep
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1Gbps}}
schemes: [qall-poly3, {scheme: drill, engine: native}]
traffic: [{workload: webserver}]
loads: [0.4, 0.6]
seeds: 4
duration: 10ms
`

// inSweep runs commands in a folder with the experiment.
type inSweep struct {
	t   *testing.T
	dir string
}

func newSweep(t *testing.T) *inSweep {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sweep.yaml"), []byte(sweepFile), 0o666); err != nil {
		t.Fatal(err)
	}
	return &inSweep{t, dir}
}

// command returns a command of p4lb, run as a separate process.
func (s *inSweep) command(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "p4lb", args...) // provided by TestMain
	cmd.Dir = s.dir
	return cmd
}

func (s *inSweep) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("p4lb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *inSweep) file(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// runs returns the objects of a store with results and rows.
func (s *inSweep) runs(store string) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, part := range []string{"runs", "tables"} {
		root := filepath.Join(s.dir, store)
		err := filepath.WalkDir(filepath.Join(root, part), func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(file)
			name, _ := filepath.Rel(root, file)
			all[name] = string(text)
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return all
}

// same requires that two stores contain equal runs, byte for byte.
func (s *inSweep) same(a, b string) {
	s.t.Helper()
	x, y := s.runs(a), s.runs(b)
	if len(x) != len(y) || len(x) < 16 {
		s.t.Errorf("%s has %d objects, %s %d", a, len(x), b, len(y))
	}
	for name, text := range x {
		if y[name] != text {
			s.t.Errorf("%s is another one in %s", name, b)
		}
	}
}

// TestShardsKilled runs five shards, kills one of them twenty times and
// restarts it. One process must give the same results, byte for byte, for any
// number of cores, and no finished run may be repeated.
func TestShardsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes, which the race detector does not see")
	}
	s := newSweep(t)
	s.run("lab", "run", "sweep.yaml", "--store", "one", "--cores", "1", "-o", "r1")
	s.run("lab", "run", "sweep.yaml", "--store", "two", "--cores", "2", "-o", "r2")
	s.same("one", "two")
	if s.file("r1/table.csv") != s.file("r2/table.csv") {
		t.Error("table.csv depends on the number of cores")
	}

	const shards, kills = 5, 20
	type running struct {
		cmd *exec.Cmd
		end chan error
		out *bytes.Buffer
	}
	begin := func(i int) *running {
		r := &running{s.command("lab", "run", "sweep.yaml", "--store", "shared", "--cores", "1", "--shard", string(rune('1'+i))+"/5", "-v"), make(chan error, 1), new(bytes.Buffer)}
		r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
		if err := r.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { r.end <- r.cmd.Wait() }()
		return r
	}
	var all []*running
	var logs []*bytes.Buffer
	for i := range shards {
		all = append(all, begin(i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	killed := 0
	for ; killed < kills; killed++ {
		i := random.IntN(shards)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(25+random.IntN(150))*time.Millisecond)
		select {
		case err := <-all[i].end: // ended before the kill
			if err != nil && killed == 0 {
				t.Errorf("shard %d: %v\n%s", i+1, err, all[i].out)
			}
		case <-ctx.Done():
			all[i].cmd.Process.Kill()
			<-all[i].end
		}
		cancel()
		logs = append(logs, all[i].out)
		all[i] = begin(i)
	}
	for i, r := range all {
		if err := <-r.end; err != nil {
			t.Errorf("shard %d: %v\n%s", i+1, err, r.out)
		}
		logs = append(logs, r.out)
	}
	s.same("one", "shared")
	s.run("lab", "report", "sweep.yaml", "--store", "shared", "-o", "r3")
	if s.file("r1/table.csv") != s.file("r3/table.csv") {
		t.Error("table.csv of shards is another one")
	}
	made := map[string]int{}
	for _, log := range logs {
		for line := range strings.Lines(log.String()) {
			if _, rest, ok := strings.Cut(line, "msg=run name="); ok && !strings.Contains(line, "hops=0") {
				name, _, _ := strings.Cut(rest, " ")
				made[name]++
			}
		}
	}
	for name, n := range made {
		if n > 1 {
			t.Errorf("%s was finished %d times", name, n)
		}
	}
	if len(made) < 16-kills {
		t.Errorf("the logs name %d runs: %v", len(made), made)
	}
	t.Logf("%d finished runs appear in the logs", len(made))
	if again := s.run("lab", "run", "sweep.yaml", "--store", "shared", "--shard", "1/5"); !strings.Contains(again, " 0 runs made, 16 found in the store") {
		t.Errorf("a shard that has nothing to do says %q", again)
	}
}
