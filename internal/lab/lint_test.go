package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// oneSeed is an experiment with one warning.
const oneSeed = `
topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 8, rate: 250Mbps, host-rate: 1G, delay: 5us, queue: 200}}
schemes: [drill, ecmp]
traffic: [{workload: websearch, cut: 500KB}]
loads: [0.7]
engine: native
seeds: 1
duration: 30ms
`

// TestWarningsKept: the report, the manifest and the figures have the warnings.
func TestWarningsKept(t *testing.T) {
	x, err := spec.Load("x.yaml", []byte(oneSeed), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := run(t, &Runner{Dir: dir}, x)
	if _, err := c.Keep(dir, Origin{}); err != nil {
		t.Fatal(err)
	}
	const want = "one seed gives no confidence interval"
	for file, text := range map[string]string{
		"report.html": "<b>Warning</b> few-seeds: " + want, "plots/cdf.svg": "Warnings: few-seeds", "plots/schemes.pdf": "Warnings: few-seeds",
	} {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil || !strings.Contains(string(got), text) {
			t.Errorf("%s has no %q (%v)", file, text, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	var m record
	if err := json.Unmarshal(text, &m); err != nil || len(m.Warnings) != 1 || m.Warnings[0].Rule != "few-seeds" {
		t.Errorf("%+v, %v", m.Warnings, err)
	}
	if !strings.Contains(string(c.Markdown("p4lb", 0)), want) {
		t.Error("the section of a document has no warning")
	}
}

// TestShippedClean: experiments that come with p4lb have no warning that they do not
// accept.
func TestShippedClean(t *testing.T) {
	for _, paper := range Papers() {
		for _, full := range []bool{false, true} {
			list, err := Paper(paper, "", full)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				noWarnings(t, x, nil)
			}
		}
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("../../examples/own/*/experiment.yaml")
	if err != nil || len(files) < 4 || len(own) < 3 {
		t.Fatalf("%d examples, %d own programs, %v", len(files), len(own), err)
	}
	for _, name := range append(files, own...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		read := func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(name), file)) }
		rows := strings.Replace(string(text), "schemes: [., ", "schemes: [wcmp, ", 1) // programs of one's own have no advice either
		x, err := spec.Load(name, []byte(rows), read, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.Name = name
		noWarnings(t, x, read)
	}
}

func noWarnings(t *testing.T, x *spec.Experiment, read spec.Reader) {
	t.Helper()
	list, err := x.Lint(read)
	if err != nil || len(spec.Unaccepted(list)) > 0 {
		t.Errorf("%s: %v, %v", x.Name, fmt.Sprint(spec.Unaccepted(list)), err)
	}
}
