package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/play"
)

// playground asks the engine of the playground as its page does.
func playground[A any](t *testing.T, name string, request any) (answer A) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	reply := play.Call(context.Background(), name, text, nil)
	var bad play.Error
	if json.Unmarshal(reply, &bad) == nil && bad.Message != "" {
		t.Fatalf("%s: %s", name, bad.Message)
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		t.Fatalf("%s: %v: %.200s", name, err, reply)
	}
	return answer
}

// TestPlaySame compares the files of the playground with the files of the command: generated
// programs with their manifests, and the report of an experiment.
func TestPlaySame(t *testing.T) {
	if testing.Short() {
		t.Skip("compares files of serial code: the race detector has nothing to see")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("p4lb", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "P4LB_PLAYGROUND=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("p4lb %s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, r := range []play.SchemeRequest{
		{Name: "qall-poly3"},
		{Name: "letflow", Paths: 8, Set: map[string]string{"gap": "200us"}},
		{Name: "drill", Arch: "tna"},
		{Name: "drill+rlb", Role: "spine"},
	} {
		g := playground[play.Generated](t, "generate", r)
		run(append(strings.Fields(g.Command)[1:], "-o", "gen")...)
		if len(g.Files) == 0 {
			t.Errorf("%s: no files", g.Command)
		}
		for _, f := range g.Files {
			if f.Text != read("gen/"+f.Name) {
				t.Errorf("%s: %s differs from the command's", g.Command, f.Name)
			}
		}
	}
	const experiment = `name: same
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 400M, host-rate: 1G}}
schemes: [qall-poly3, ecmp]
traffic: [{workload: websearch, cut: 100KB}]
loads: [0.5]
seeds: 2
duration: 10ms
`
	if err := os.WriteFile(filepath.Join(dir, "playground.yaml"), []byte(experiment), 0o666); err != nil {
		t.Fatal(err)
	}
	run("lab", "run", "playground.yaml")
	reports, err := filepath.Glob(filepath.Join(dir, "results/same-*/report.html"))
	if err != nil || len(reports) != 1 {
		t.Fatalf("reports %v, %v", reports, err)
	}
	got := playground[play.RunResult](t, "run", play.RunRequest{YAML: experiment}).Report
	made := regexp.MustCompile(`, \d{4}-\d\d-\d\d \d\d:\d\d UTC`) // the page omits the time
	if want := made.ReplaceAllString(read(strings.TrimPrefix(reports[0], dir)), ""); got != want {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("the report differs from the command's: %.300q, want %.300q", got[max(0, i-80):], want[max(0, i-80):])
	}
}
