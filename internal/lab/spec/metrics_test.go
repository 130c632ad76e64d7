package spec

import (
	"strings"
	"testing"
)

// A metric of one class of flows described itself as one of all flows.
func TestMetricOfAClassDescribesItsFlows(t *testing.T) {
	classes := []Class{{"short", 100e3}, {"medium", 1e6}, {"long", 0}}
	for name, want := range map[string]string{
		"fct-mean":        "mean over the flows",
		"fct-mean:short":  "only of short flows, of up to 100KB",
		"fct-mean:medium": "only of medium flows, of more than 100KB and up to 1MB",
		"fct-p99:long":    "only of long flows, of more than 1MB",
	} {
		m, err := MetricNamed(name, classes)
		if err != nil || !strings.HasSuffix(m.About, want) {
			t.Errorf("%s: %q, %v: want a text that ends in %q", name, m.About, err, want)
		}
	}
	if m, err := MetricNamed("fct-mean:all", []Class{{"all", 0}}); err != nil || !strings.HasSuffix(m.About, "only of all flows, of any size") {
		t.Errorf("a single class: %q, %v", m.About, err)
	}
}
