package lab

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab/dataset"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestObserve: p4lb fit accepts the dataset, it contains only the first run, from the end of the
// warm-up to the end, and its values are consistent.
func TestObserve(t *testing.T) {
	var b bytes.Buffer
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[ecmp]", 1)+"warmup: 1ms\n")
	run(t, &Runner{Record: Observe(&b, "csv", 500*time.Microsecond)}, x)
	rows := new(fitting.Rows)
	if _, err := dataset.Read(t.Context(), dataset.File{Name: "obs.csv", Reader: bytes.NewReader(b.Bytes())}, dataset.Options{}, rows); err != nil {
		t.Fatal(err)
	}
	if n := rows.Len(); n < 50 || n > 20*8 {
		t.Errorf("%d rows", n)
	}
	for r := range rows.All() {
		// A link of 1 Gbps, packets of up to 1,514 bytes.
		if packets := 500 / r.T; r.Y > 1.05e6 || r.Y > packets*1514*8/0.0005/1e3*1.01 {
			t.Errorf("%+v: more than the link, or the packets, carry", r)
		}
	}
	lines, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if first, last := lines[1][0], lines[len(lines)-1][0]; first != "1000" || last != "10000" {
		t.Errorf("rows from %s µs to %s µs, want 1000 to 10000", first, last)
	}
}

// TestObserveFails: sampling ends with the first error of the dataset's writer, and the run
// reports it.
func TestObserveFails(t *testing.T) {
	s := idleSampler(t, "")
	full, samples := errors.New("disk full"), 0
	o := &observing{every: 100 * time.Microsecond, keep: func([]inspect.Observation) error {
		if samples++; samples == 3 {
			return full
		}
		return nil
	}}
	o.plan(s.r.view())
	if err := s.r.net.Run(3 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := o.End(); samples != 3 || !errors.Is(err, full) {
		t.Errorf("%d samples, %v: want 3 and the error", samples, err)
	}
}

func TestRecord(t *testing.T) {
	var b bytes.Buffer
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[qall-pkt]", 1))
	run(t, &Runner{Record: Record(&b, "csv", time.Millisecond)}, x)
	rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 100 || !strings.Contains(b.String(), "q_L") {
		t.Errorf("%d rows", len(rows))
	}
	recording, err := inspect.OpenRecording("r.csv", bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := recording.Round()
	if err != nil || len(list) != 4 || list[0].Clock != time.Millisecond {
		t.Errorf("a round of %d switches, %v", len(list), err)
	}
}

// TestWatch: a watcher receives all switches, moment by moment of virtual time, and
// can end the run with an error.
func TestWatch(t *testing.T) {
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[qall-pkt]", 1))
	var at []time.Duration
	enough := errors.New("enough")
	_, err := (&Runner{Dir: t.TempDir(), Cores: 1, Record: Watch(time.Millisecond, nil, func(list []*inspect.Snapshot) error {
		if len(list) != 4 || list[0].Scheme != "qall-pkt" || len(list[3].Readings) == 0 {
			t.Errorf("%d snapshots", len(list))
		}
		if at = append(at, list[0].Time); len(at) == 3 {
			return enough
		}
		return nil
	})}).Run(t.Context(), x)
	if !errors.Is(err, enough) {
		t.Errorf("the run ended with %v", err)
	}
	if want := []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond}; !slices.Equal(at, want) {
		t.Errorf("looked at %v", at)
	}
}

// The end of a recording is a snapshot if the run has collectives and no snapshot has
// failed.
func TestLastSnapshot(t *testing.T) {
	s := idleSampler(t, "")
	full := errors.New("disk full")
	progress := func() *CollectiveProgress { return nil }
	for _, c := range []struct {
		progress func() *CollectiveProgress
		before   error // of earlier snapshots
		at       error // of the last one
		taken    int
	}{{nil, nil, nil, 0}, {progress, nil, nil, 1}, {progress, nil, full, 1}, {progress, full, nil, 0}, {nil, full, nil, 0}} {
		taken := 0
		l := &looking{view: &View{Net: s.r.net, Progress: c.progress}, failed: c.before, each: func([]*inspect.Snapshot) error {
			taken++
			return c.at
		}}
		want := cmp.Or(c.before, c.at)
		if err := l.End(); taken != c.taken || err != want {
			t.Errorf("%+v: %d snapshots, %v; want %d, %v", c, taken, err, c.taken, want)
		}
	}
}

// TestRecordChangesNothing: recording a run does not change it.
func TestRecordChangesNothing(t *testing.T) {
	leftToPlainRun(t)
	a := run(t, &Runner{}, load(t, tiny))
	b := run(t, &Runner{Record: Record(new(bytes.Buffer), "csv", time.Millisecond)}, load(t, tiny))
	for name, v := range a.Results[0].Metrics {
		if w := b.Results[0].Metrics[name]; v != w {
			t.Errorf("%s is %g, and %g when it is looked at", name, v, w)
		}
	}
}

// TestExamples reads the experiments among the examples.
func TestExamples(t *testing.T) {
	leftToPlainRun(t)
	text, err := os.ReadFile("../../examples/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x, err := spec.Load("lab.yaml", text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Cases[0].Seeds = spec.Seeds{1}
	c := run(t, &Runner{}, x)
	for _, row := range c.Table()[1:] {
		for i, v := range row[1 : len(row)-1] {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				t.Errorf("%s has no %s: %q", row[0], x.Metrics[i], v)
			}
		}
	}
}

func TestReport(t *testing.T) {
	leftToPlainRun(t)
	dir := t.TempDir()
	c := run(t, &Runner{Dir: dir}, load(t, strings.Replace(tiny, "loads: [0.6]", "loads: [0.3, 0.6]", 1)+`
about: "<b> & 5 > 3"
cases: [{name: a}, {name: "b c", fail: [l1-s1]}]
targets: [{name: "drill below ecmp", metric: fct-mean, case: a, order: [drill, ecmp]}]
`))
	name, err := c.Keep(dir, Origin{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, want := range []string{"&lt;b&gt; &amp; 5 &gt; 3", "drill below ecmp", "qall-poly3, leaf", "<svg", `src="data:image/svg`, "from the start of a flow", "max(MTU·8/C, tau/10)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %s", want)
		}
	}
	if n := strings.Count(page, "<figure"); n != 13 {
		t.Errorf("%d figures, want 6 for each case and one over failed links", n)
	}
	// The page must not need other files.
	for _, bad := range []string{"<script src", "<link", "url(http", "@import", `src="http`} {
		if strings.Contains(page, bad) {
			t.Errorf("the report has %s", bad)
		}
	}
	for _, f := range []string{"plots/load-a.svg", "plots/load-b_c.pdf", "plots/sizes-a.csv", "plots/shares-a.svg"} {
		if _, err := os.Stat(dir + "/" + f); err != nil {
			t.Error(err)
		}
	}
}
