package lab

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/chart"
)

// ringText is a ring all-reduce of four hosts in two leaves, with and without failed
// links.
const ringText = `
name: ring
topology: {leaf-spine: {leaves: 2, spines: 4, hosts: 2, rate: 10G, host-rate: 10G, delay: 1us, host-delay: 1us, queue: 64}}
schemes: [ecmp, rps]
traffic: [{collective: all-reduce, size: 400KB, algorithm: ring, order: strided}]
transport: dctcp
metrics: [cct, cct-ratio]
engine: native
seeds: 2
cases:
  - {name: whole}
  - {name: slow, links: [{link: s1, rate: 2G}]}
  - {name: one, fail: [l1-s1]}
  - {name: later, faults: [{at: 100us, switch: s2, down: true}]}
`

func figure(t *testing.T, list []*chart.Chart, name string) *chart.Chart {
	t.Helper()
	i := slices.IndexFunc(list, func(f *chart.Chart) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no figure %s", name)
	}
	return list[i]
}

// TestCollectiveFigures draws the figures of collectives from a ring of four ranks: 2·(n-1)
// = 6 steps of n messages each.
func TestCollectiveFigures(t *testing.T) {
	c := run(t, &Runner{}, load(t, ringText))
	list := c.Figures()

	steps := figure(t, list, "steps-rps-whole")
	if got := strings.Join(steps.Y.Names, " "); got != "h1 h2 h3 h4" {
		t.Errorf("the senders are %s", got)
	}
	if len(steps.Series) != 6 {
		t.Fatalf("%d steps, want 6", len(steps.Series))
	}
	for k, s := range steps.Series {
		if len(s.X) != 4 {
			t.Errorf("step %d has %d messages, want 4", k, len(s.X))
		}
		for i := range s.X {
			if s.To[i] <= s.X[i] {
				t.Errorf("step %d: a message from %g to %g ms", k, s.X[i], s.To[i])
			}
			// A message begins when the message before has reached its sender.
			if k > 0 && s.X[i] < slices.Min(steps.Series[k-1].To)-1e-6 {
				t.Errorf("step %d begins at %g ms, before the end of any of step %d", k, s.X[i], k-1)
			}
		}
	}

	uses := figure(t, list, "links-rps-slow")
	slow := slices.Index(uses.Y.Names, "l1:3-s1")
	busiest := 0.0
	for i, y := range uses.Series[0].Y {
		if uses.Series[0].Shade[i] > 1 {
			t.Errorf("a link has the utilisation %g", uses.Series[0].Shade[i])
		}
		if int(y) == slow {
			busiest = max(busiest, uses.Series[0].Shade[i])
		}
	}
	if slow < 0 || busiest < 0.5 {
		t.Errorf("the slow link l1:3-s1 (place %d) is used to %g at most", slow, busiest)
	}

	ideal := figure(t, list, "ideal-whole")
	marks := ideal.Series[len(ideal.Series)-1]
	for i, y := range marks.Y {
		if cct := ideal.Series[i].Y[0]; y <= 0 || y > cct {
			t.Errorf("%s takes %g ms, its ideal %g", ideal.Series[i].Label, cct, y)
		}
	}

	failed := figure(t, list, "failed")
	if got := failed.Series[1].X; !slices.Equal(got, []float64{0, 1, 2}) {
		t.Errorf("the numbers of failed links are %v, want 0, 1, and 2 of the links of s2", got)
	}

	tail := figure(t, list, "tail-whole")
	for _, s := range tail.Series {
		if !slices.IsSorted(s.X) {
			t.Errorf("the tail of %s falls: %v", s.Label, s.X)
		}
	}
	for _, f := range list {
		if !bytes.HasPrefix(f.PDF(), []byte("%PDF-")) {
			t.Errorf("%s has no PDF", f.Name)
		}
		for form, text := range map[string][]byte{"SVG": f.SVG(), "PGF": f.PGF(), "CSV": f.CSV(), "page": []byte(f.Inline())} {
			if len(text) == 0 || bytes.Contains(text, []byte("NaN")) {
				t.Errorf("%s of %s is empty or contains NaN", form, f.Name)
			}
		}
	}
}
