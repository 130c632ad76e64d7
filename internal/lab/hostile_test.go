package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// hostile is an experiment with one line changed, or lines added.
func hostile(old, new string) string {
	const text = `name: x
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G}}
schemes: [ecmp, letflow]
engine: native
traffic: [{size: 10KB}]
duration: 2ms
`
	if old == "" {
		return text + new + "\n"
	}
	return strings.Replace(text, old, new, 1)
}

// TestRefused: experiments that would take a day, or overwrite other files, are refused
// before anything runs.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"the longest time", hostile("2ms", "2562047h"), `x.yaml:6: duration: time "2562047h": want 1000 hours at most`},
		{"a part of a seed", hostile("", "seeds: [1.5]"), "x.yaml:7: seeds: want a number of seeds"},
		{"a seed of 65 bits", hostile("", "seeds: [18446744073709551616]"), "x.yaml:7: seeds: want a number of seeds"},
		{"a seed twice", hostile("", "seeds: [3, 3]"), "x.yaml:7: seeds: want a number of seeds"},
		{"marking below nothing", hostile("", "switches: {ecn: -1}"), `x.yaml:7: switches.ecn: threshold "-1": want a number of packets, or none`},
		{"a queue below nothing", hostile("", "switches: {queue: -1}"), "x.yaml:7: switches: queue -1"},
		{"rows of one folder", hostile("[ecmp, letflow]", `[{scheme: ecmp, label: "a b"}, {scheme: letflow, label: a_b}]`), `the rows "a b" and "a_b" would both be kept in the folder a_b`},
		{"cases of one folder", hostile("", `cases: [{name: "../c"}, {name: "_./c"}]`), "would both be kept in the folder _._c"},
		{"cases of one name", hostile("", "cases: [{name: c}, {name: c}]"), `two cases are called "c"`},
		{"a list of flows that the pattern does not read", hostile("{size: 10KB}", "{pattern: halves, file: f.txt}"), "x.yaml:5: traffic[0]: pattern halves: file is of pattern list alone"},
		{"a list of flows with a time that is none", hostile("{size: 10KB}", "{file: f.txt}"), `x.yaml:5: traffic[0]: f.txt:1: start_s "nan"`},
		{"very many runs", hostile("", "seeds: 1000\nloads: ["+strings.Repeat("0.1, ", 99)+"0.2]"), "its cases, loads, rows and seeds are 200000 runs together: want at most 100000"},
		{"very many rows", hostile("[ecmp, letflow]", "["+strings.Repeat("ecmp, ", 1000)+"letflow]"), "x.yaml:3: schemes: 1001 rows: want at most 1000"},
		{"very many cases", hostile("", "cases: ["+strings.Repeat("{name: a}, ", 1000)+"{name: b}]"), "x.yaml:7: cases: 1001 cases: want at most 1000"},
		{"colons", hostile("", "a"+strings.Repeat(": ", 100000)), "x.yaml:7: nested too deeply"},
		{"brackets", hostile("", strings.Repeat("[", 100000)), "x.yaml:7: nested too deeply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := spec.Load("x.yaml", []byte(c.text), func(string) ([]byte, error) { return []byte("h1 h3 1000 nan\n"), nil }, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := spec.Load("x.yaml", []byte(hostile("", "seeds: [1, 18446744073709551615]")), nil, nil); err != nil {
		t.Errorf("the largest seed: %v", err)
	}
}

// TestLimits: a run beyond the limits reports its demand.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		limits           Limits
	}{
		{"events", hostile("2ms", "900h"), "events", Limits{Events: 1e9}},
		{"memory", hostile("10KB", "1"), "GiB of memory", Limits{Bytes: 1 << 20}},
		{"flows that wait", hostile("{size: 10KB}", strings.TrimSuffix(strings.Repeat("{size: 10KB}, ", 20), ", ")), "GiB of memory", Limits{Bytes: 4 << 20}},
		{"samples", hostile("", "interval: 1ns"), "GiB of memory", Limits{Bytes: 1 << 20}},
		{"enough room", hostile("", ""), "", Limits{Events: DefaultEvents, Bytes: 1 << 30}},
		{"no limit", hostile("", ""), "", Limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := spec.Load("x.yaml", []byte(c.text), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&Runner{Limits: c.limits, Cores: 2}).Run(context.Background(), x) // each core needs the memory of a run
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one about %s", err, c.want)
			}
		})
	}
}

// TestManyNetworks: the networks of all cases exist at the same time.
func TestManyNetworks(t *testing.T) {
	defer func(n int) { maxNodes = n }(maxNodes)
	maxNodes = 20
	x, err := spec.Load("x.yaml", []byte(hostile("", "cases: [{name: a}, {name: b}, {name: c}]")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "the networks of its first 3 cases have 24 hosts and switches together, more than 20"
	if _, err := (&Runner{}).Jobs(x); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestNoLinkUp: with all links between switches down, all numbers are valid JSON and
// the figures are drawn.
func TestNoLinkUp(t *testing.T) {
	x, err := spec.Load("x.yaml", []byte(strings.Replace(hostile("", "fail: [l1-s1, l1-s2, l2-s1, l2-s2]"), "{size: 10KB}", "{size: 10KB, load-of: hosts}", 1)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&Runner{Dir: t.TempDir()}).Run(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Results {
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		for name, v := range r.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s is %v", name, v)
			}
		}
	}
	for _, f := range c.Figures() {
		if data, err := f.Data(); err != nil || bytes.Contains(f.SVG(), []byte("NaN")) || bytes.Contains(f.PDF(), []byte("NaN")) {
			t.Errorf("%s: %s, %v", f.Name, data, err)
		}
	}
}

// TestForeignRuns: p4lb does not remove a foreign folder called runs, also next to a
// foreign manifest.json, nor foreign files among runs.
func TestForeignRuns(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "runs", "theirs", "result.txt")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(foreign, "precious")
	x, err := spec.Load("x.yaml", []byte(hostile("", "")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Dir: dir}
	for _, manifest := range []string{"", "{}", `{"format": "of something else", "runs": ["theirs"]}`} {
		if manifest != "" {
			write(filepath.Join(dir, manifestFile), manifest)
		}
		if _, err := r.Run(context.Background(), x); err == nil || !strings.Contains(err.Error(), "want another folder") {
			t.Errorf("beside manifest %q: error %v", manifest, err)
		}
	}
	write(filepath.Join(dir, manifestFile), `{"format": "`+manifestFormat+`", "runs": ["../runs/theirs/..", ".", "ecmp/load-0.7/seed-1"]}`)
	write(filepath.Join(dir, "runs/ecmp/load-0.7/seed-1/old.txt"), "")
	if _, err := r.Run(context.Background(), x); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(foreign); err != nil || string(text) != "precious" {
		t.Errorf("what was not ours is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs/ecmp/load-0.7/seed-1/old.txt")); err == nil {
		t.Error("a run of the experiment before is still there")
	}
	// A link leads out of the folder.
	elsewhere := filepath.Join(t.TempDir(), "load-0.7", "result.txt")
	write(elsewhere, "precious")
	if err := os.Symlink(filepath.Dir(filepath.Dir(elsewhere)), filepath.Join(dir, "runs", "link")); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, manifestFile), `{"format": "`+manifestFormat+`", "runs": ["link/load-0.7"]}`)
	if _, err := r.Run(context.Background(), x); err == nil || !strings.Contains(err.Error(), "removing "+filepath.Join(dir, "runs/link/load-0.7")) {
		t.Errorf("a run behind a link: error %v", err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "precious" {
		t.Errorf("what is elsewhere is %q, %v", text, err)
	}
}
