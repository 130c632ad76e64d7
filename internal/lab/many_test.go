package lab

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// BenchmarkManyRuns builds the report of a sweep of 10,000 stored runs, from the
// listing to the page, without flow tables. It reports the memory in use at the end.
func BenchmarkManyRuns(b *testing.B) {
	text := strings.Replace(strings.Replace(smallSweep, "seeds: 2", "seeds: 1000", 1), "loads: [0.4, 0.6]", "loads: [0.3, 0.4, 0.5, 0.6, 0.7]", 1)
	x, err := spec.Load("sweep.yaml", []byte(text), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	st, err := store.Open(b.Context(), b.TempDir(), true)
	if err != nil {
		b.Fatal(err)
	}
	r := &Runner{Store: st}
	jobs, err := r.Jobs(x)
	if err != nil {
		b.Fatal(err)
	}
	one, err := jobs[0].run(b.Context(), nil, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i, key := range lists.Map(jobs, (*Job).Key) {
		one.Spec, one.Seed, one.Load = key, jobs[i].Seed, jobs[i].Load
		one.Metrics["fct-mean"] = float64(i)
		text, err := json.Marshal(one)
		if err != nil {
			b.Fatal(err)
		}
		if err := st.Put(b.Context(), key, text, nil, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(jobs)), "runs")
	for b.Loop() {
		c, err := r.Collect(b.Context(), x)
		if err != nil {
			b.Fatal(err)
		}
		if missing, _ := c.Missing(); missing > 0 {
			b.Fatalf("%d runs are missing", missing)
		}
		if _, err := c.Keep(b.TempDir(), Origin{}); err != nil {
			b.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB")
		runtime.KeepAlive(c)
	}
}
