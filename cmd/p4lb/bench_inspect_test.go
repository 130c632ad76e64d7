package main

import (
	"testing"

	"github.com/p4lb/p4lb/tools/bench"
)

// TestBenchInspect is here because it runs this program as p4lb. It measures once, and wants a figure for every way to registers
// and for a watch.
func TestBenchInspect(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures, which the race detector makes long: TestInspect and its like read by the same ways")
	}
	list, err := bench.Inspect(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range list {
		t.Logf("%s %.4g %s: %s", m.Name, m.Value, m.Unit, m.Detail)
		seen[m.Name] = m.Value > 0
	}
	for _, name := range []string{"inspect.embedded.direct", "inspect.embedded.thrift", "inspect.embedded.p4runtime", "inspect.watch"} {
		if !seen[name] {
			t.Errorf("no figure %s", name)
		}
	}
}
