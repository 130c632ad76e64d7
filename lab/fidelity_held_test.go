package lab

import (
	"fmt"
	"strings"
	"testing"
)

// fidelityHeld are flows and fabrics that were written down before anything of them
// had been run, here or in ns-3; docs/fidelity.md has the others of them, with all four
// schemes. IRN is without PFC, with selective Nacks and a window.
var fidelityHeld = []struct {
	name, fabric string
	lists        int
	schemes      []string // "one-path": there is nothing to balance
}{
	{"wide", "leaves: 8, spines: 2, hosts: 4, rate: 100G, host-rate: 100G", 3, []string{"ecmp", "drill"}},
	{"answers", fabricRLB, 3, []string{"ecmp", "drill", "letflow", "conga"}},
	{"mixed", "leaves: 4, spines: 2, hosts: 8, rate: 100G, host-rate: 25G", 3, []string{"ecmp"}},
	{"sixteen@IRN", onePath, 2, []string{"one-path"}},
	{"twentyfour@IRN", onePath, 2, []string{"one-path"}},
	{"search@IRN", fourPaths, 3, []string{"ecmp"}},
	{"stagger", onePath, 2, []string{"one-path"}},
	{"narrow", onePath, 3, []string{"one-path"}},
}

// fidelityIRN is the setting without PFC.
var fidelityIRN = strings.NewReplacer("pfc: true", "pfc: false", "nack-every: 4us", "nack: selective, window: 104KB").Replace(fidelitySetting)

// heldAnswers are those of all lists of a case, here and there.
func heldAnswers(t *testing.T, name, fabric, scheme string, lists int) (got, want []answers) {
	t.Helper()
	name, irn := strings.CutSuffix(name, "@IRN")
	setting, mark := fidelitySetting, ""
	if irn {
		setting, mark = fidelityIRN, "@IRN"
	}
	row := fidelityRows["ecmp"]
	if r, ok := fidelityRows[scheme]; ok {
		row = r
	}
	seeds := 1
	if fabric == onePath || name == "answers" { // a few flows: who loses a packet moves the average by a tenth
		seeds = 6
	}
	for i := range lists {
		list := fmt.Sprintf("%s-%d", name, i+1)
		there := spread(t, list+mark, scheme)
		got = append(got, labAnswersWith(t, setting, fabric, row, seeds, otherFlows(t, list))...)
		want = append(want, answers{averaged: over(there, (*answers).mean), tail: over(there, (*answers).p99)})
		t.Logf("%s: mean FCT %.1f us, there %.1f", list, over(got[len(got)-seeds:], (*answers).mean), want[i].mean())
	}
	return got, want
}

// TestFidelityHeld holds what was not looked at before, with one seed for each list, or six where flows are few.
func TestFidelityHeld(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range fidelityHeld {
		for _, scheme := range c.schemes {
			t.Run(c.name+"/"+scheme, func(t *testing.T) {
				got, want := heldAnswers(t, c.name, c.fabric, scheme, c.lists)
				within(t, "mean FCT", over(got, (*answers).mean), over(want, (*answers).mean), 5)
				within(t, "p99 FCT", over(got, (*answers).p99), over(want, (*answers).p99), 15)
			})
		}
	}
}
