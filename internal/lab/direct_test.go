package lab

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
)

// TestDirect runs every row with the controller and without: the results are the same,
// with a link that fails and comes back.
func TestDirect(t *testing.T) {
	names := codegen.Names()
	if testing.Short() {
		names = []string{"ecmp", "drill+rlb", "qall-poly3"}
	}
	for _, name := range names {
		text := `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 5us, host-delay: 5us, queue: 64}}
schemes: [` + name + `]
traffic: [{workload: websearch, cut: 200KB}]
loads: [0.6]
seeds: 1
duration: 15ms
faults:
  - {at: 4ms, until: 10ms, link: l1-s1, down: true}
`
		run := func(direct bool) (string, error) {
			x, err := spec.Load("experiment", []byte(text), spec.NoFiles, &scheme.Library{})
			if err != nil {
				return "", err
			}
			c, err := (&Runner{direct: direct}).Run(context.Background(), x)
			if err != nil {
				return "", err
			}
			out, err := json.Marshal(c.Rows[0].Runs)
			return string(out), err
		}
		want, wrong := run(false)
		got, err := run(true)
		switch {
		case wrong != nil && strings.Contains(wrong.Error(), "leaves its polynomial to the controller"):
			if err == nil {
				t.Errorf("%s: without P4Runtime it runs without a polynomial", name)
			}
		case wrong != nil || err != nil:
			t.Errorf("%s: with P4Runtime %v, without %v", name, wrong, err)
		case got != want:
			t.Errorf("%s: without P4Runtime\n%s\nwith it\n%s", name, got, want)
		}
	}
}
