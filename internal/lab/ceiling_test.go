package lab

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

const ceilingText = chosenRDMA + `
seeds: 3
metrics: [fct-mean, paused, out-of-order]
`

// TestCeilings: each ceiling removes its effect, and rows without a comparison do not
// run there.
func TestCeilings(t *testing.T) {
	leftToPlainRun(t)
	text := strings.Replace(ceilingText, "schemes: [drill]", "schemes: [rps, ecmp]", 1)
	text = strings.Replace(text, "pfc: true", "pfc: true, pfc-threshold: 20KB", 1)
	x := load(t, text+"ceiling: [no-pauses, keep-early, fast-core, oracle]\ntargets:\n - {name: a, metric: fct-mean, of: ecmp, against: rps, printed: 99, load: 0.8}\n")
	c := run(t, &Runner{}, x)
	base := c.Row("", "rps", 0.8)
	if base.Estimate("paused").Mean == 0 || base.Estimate("out-of-order").Mean == 0 {
		t.Fatal("nothing is paused or reordered: the flows show nothing")
	}
	for kind, metric := range map[string]string{spec.NoPauses: "paused", spec.KeepEarly: "retransmitted"} {
		row := c.Row(kind, "rps", 0.8)
		if row == nil || row.Estimate(metric).Mean != 0 {
			t.Errorf("%s: %s is not 0", kind, metric)
		}
	}
	if e, err := c.Row(spec.FastCore, "rps", 0.8).against(base, "fct-mean"); err != nil || e.low() < 5 {
		t.Errorf("a core ten times as fast saves %v %% (%v)", e, err)
	}
	if e, err := c.Row(spec.Oracle, spec.OracleRow, 0.8).against(c.Row(spec.KeepEarly, "rps", 0.8), "fct-mean"); err != nil || e.Mean <= 0 {
		t.Errorf("the oracle saves %v %% of random packets (%v)", e, err)
	}
	if c.Row(spec.NoPauses, "ecmp", 0.8) != nil || c.Row("", spec.OracleRow, 0.8) != nil {
		t.Error("rows have run that tell nothing")
	}
	if o := c.Judge()[0]; o.Verdict != outOfReach || !strings.Contains(o.Note, "the best ceiling") {
		t.Errorf("99 %% less is %q: %s", o.Verdict, o.Note)
	}
}

// TestCeilingKeepsNotices: senders are notified of marks on early packets that are
// kept and not acknowledged.
func TestCeilingKeepsNotices(t *testing.T) {
	x := load(t, strings.Replace(ceilingText, "engine: native", "engine: native\nlike: ns3", 1)+"ceiling: [keep-early]\n")
	for i := range x.Cases {
		r := &x.Cases[i].Transport.RDMA
		if want := map[bool]string{true: "", false: "answered"}[r.Nack == "none"]; r.Notices != want {
			t.Errorf("case %q: nack %q, notices %q, want %q", x.Cases[i].Name, r.Nack, r.Notices, want)
		}
	}
	if len(x.Cases) != 2 {
		t.Errorf("%d cases", len(x.Cases))
	}
}

// TestFastCoreFlows: in a faster core the flows are the same, also where the load is
// of the fabric.
func TestFastCoreFlows(t *testing.T) {
	for _, of := range []string{spec.OfHosts, spec.OfFabric} {
		x := load(t, strings.Replace(tiny, "pattern: halves", "pattern: halves, load-of: "+of, 1)+"ceiling: [fast-core]\n")
		jobs, err := (&Runner{}).Jobs(x)
		if err != nil {
			t.Fatal(err)
		}
		flows := map[string]string{}
		for _, j := range jobs {
			list, err := spec.Generate(j.setup.topo, j.Case.Traffic, j.Load, j.Case.Length(), 1)
			if err != nil {
				t.Fatal(err)
			}
			flows[j.Case.Name] = string(spec.FlowList(list, j.setup.topo))
		}
		if a, b := flows[""], flows[spec.FastCore]; a == "" || a != b {
			t.Errorf("load of %s: %d bytes of flows, %d in the faster core, or others", of, len(a), len(b))
		}
	}
}

// TestCeilingsRefused: impossible ceilings are refused before anything runs.
func TestCeilingsRefused(t *testing.T) {
	for _, c := range []struct{ old, text, want string }{
		{"", "ceiling: [no-loss]\n", `ceiling[0]: "no-loss": want each once of no-pauses, keep-early, fast-core, oracle`},
		{"", "ceiling: [oracle, oracle]\n", "want each once"},
		{"pfc: true, ", "ceiling: [no-pauses]\n", "without pfc nothing is paused"},
		{"transport: {kind: dcqcn}", "transport: udp\nceiling: [keep-early]\n", "transport udp repeats nothing"},
		{"rate: 10G, ", "ceiling: [fast-core]\n", "does not say how fast its core is"},
	} {
		_, err := spec.Load("exp.yaml", []byte(strings.Replace(ceilingText, c.old, "", 1)+c.text), nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", c.text, err, c.want)
		}
	}
	qall := strings.Replace(ceilingText, "topology: {leaf-spine", "topology: qall # {leaf-spine", 1)
	if _, err := spec.Load("exp.yaml", []byte(qall+"ceiling: [fast-core]\n"), nil, nil); err == nil || !strings.Contains(err.Error(), "is a file or preset") {
		t.Errorf("a preset: %v", err)
	}
}
