package main

import (
	"testing"

	"github.com/p4lb/p4lb/tools/bench"
)

// TestBenchInspect is in this package as it runs this program as p4lb. It
// measures once and checks that there is a figure for each way to read
// registers and for watching.
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
