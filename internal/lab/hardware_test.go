package lab

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/scheme"
)

// onHardware is an experiment of rows for both architectures.
const onHardware = `
name: hardware
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
traffic: [{workload: webserver, pattern: halves}]
loads: [0.6]
seeds: 1
duration: 10ms
schemes: [%s]
`

// hardwareRows are the rows that exist for an architecture; of QALL's
// polynomials, which differ in the entries of a table, it is one. Two more have
// leaves alone choose, with a guard in all switches.
func hardwareRows(arch string) []string {
	if made, ok := onceRows.Load(arch); ok {
		return made.([]string)
	}
	var list []string
	for _, row := range codegen.RowsFor(arch) {
		if row.Signal != "fitted" || row.Name == "qall-poly3" {
			list = append(list, row.Name)
		}
	}
	list = append(list, "clove+rlb", "pdlb+rlb")
	onceRows.Store(arch, list)
	return list
}

// onceRows caches the rows by architecture.
var onceRows sync.Map

// loadOnce is load with schemes that generate each program only once.
func loadOnce(t testing.TB, text string) *spec.Experiment {
	t.Helper()
	x, err := spec.Load("t.yaml", []byte(text), nil, &scheme.Library{Sources: []scheme.Source{madeOnce}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// madeOnce is the catalogue of loadOnce.
func madeOnce(name string) (scheme.Scheme, error) {
	s, err := (&scheme.Library{}).Find(name)
	if err != nil {
		return nil, err
	}
	return onceScheme{s}, nil
}

type onceScheme struct{ scheme.Scheme }

// onceMade caches programs by name and parameters.
var onceMade sync.Map

func (s onceScheme) Build(p codegen.Params) (*scheme.Program, error) {
	if p.Coeffs != nil || p.Provenance != nil { // pointers, which compare unequal
		return s.Scheme.Build(p)
	}
	key := fmt.Sprintf("%s %+v", s.Name(), p)
	if made, ok := onceMade.Load(key); ok {
		return made.(*scheme.Program), nil
	}
	made, err := s.Scheme.Build(p)
	if err == nil {
		onceMade.Store(key, made)
	}
	return made, err
}

// ranOnce returns the run of a row, which all tests share.
func ranOnce(t testing.TB, name string) *Result {
	t.Helper()
	if made, ok := onceRan.Load(name); ok {
		return made.(*Result)
	}
	made := run(t, &Runner{}, loadOnce(t, fmt.Sprintf(onHardware, name))).Row("", name, 0.6).Runs[0]
	onceRan.Store(name, made)
	return made
}

// onceRan caches results by the name of the row.
var onceRan sync.Map

// TestHardwareRuns: every row that exists for Tofino runs in a network of Tofinos, and
// completes flows about as fast as its program for software switches. TestDecisionDelay
// checks that runs are deterministic. The simulator itself checks that every lost byte has
// a reason.
func TestHardwareRuns(t *testing.T) {
	leftToPlainRun(t)
	for _, arch := range []string{"tna", "t2na"} {
		rows := hardwareRows(arch)
		if len(rows) < 15 {
			t.Errorf("only %d rows exist for %s", len(rows), arch)
		}
		for _, scheme := range rows {
			t.Run(arch+"/"+scheme, func(t *testing.T) { runOnHardware(t, scheme, arch) })
		}
	}
}

func runOnHardware(t *testing.T, scheme, arch string) {
	name := scheme + "@" + arch
	here, soft := ranOnce(t, name), ranOnce(t, scheme)
	if here.Arch != arch || here.Scheme != scheme {
		t.Errorf("the result is that of %s for %q", here.Scheme, here.Arch)
	}
	if here.Flows != soft.Flows || here.Metrics["unfinished"] != 0 {
		t.Errorf("%d flows, %g of them not finished; %d by the other program", here.Flows, here.Metrics["unfinished"], soft.Flows)
	}
	if a, b := here.Metrics["fct-mean"], soft.Metrics["fct-mean"]; !(a > b/1.5 && a < 1.5*b) {
		t.Errorf("flows take %.3f ms on average, by the program for v1model %.3f", a, b)
	}
	for _, share := range here.Plots.Shares {
		if !(share > 0) {
			t.Errorf("some path is never taken: %v", here.Plots.Shares)
			break
		}
	}
	if here.Lost["no port"] != 0 {
		t.Errorf("packets were sent to ports that are not there: %v", here.Lost)
	}
	agreeOnHardware(t, name, *here)
}

// agreeOnHardware: the model of a program for Tofino gives the same run.
func agreeOnHardware(t *testing.T, name string, program Result) {
	x := loadOnce(t, fmt.Sprintf(onHardware, name)+"engine: native\n")
	c := run(t, &Runner{}, x)
	native := *c.Row("", name, 0.6).Runs[0]
	native.Engine, native.Spec = program.Engine, program.Spec
	if a, b := written(t, &program), written(t, &native); a != b {
		t.Errorf("the engines differ:\n%s\n%s", a, b)
	}
}

func written(t *testing.T, r *Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestGenerator: probes of the packet generator give the same information.
func TestGenerator(t *testing.T) {
	leftToPlainRun(t)
	for _, scheme := range []string{"hula", "dhlb", "pdlb"} {
		text := fmt.Sprintf(onHardware, scheme+"@tna")
		a := run(t, &Runner{}, load(t, text)).Row("", scheme+"@tna", 0.6).Runs[0]
		b := run(t, &Runner{}, load(t, text+"probes: generator\n")).Row("", scheme+"@tna", 0.6).Runs[0]
		if a.Spec == b.Spec {
			t.Errorf("%s: the results cannot be told apart", scheme)
		}
		if n, m := a.Lost["consumed"], b.Lost["consumed"]; n == 0 || m < n*9/10 || m > n*11/10 {
			t.Errorf("%s: %d probes and reports have ended, %d where the controller sends them", scheme, m, n)
		}
		if x, y := a.Metrics["fct-mean"], b.Metrics["fct-mean"]; !(y > x/1.5 && y < x*1.5) {
			t.Errorf("%s: flows take %.3f ms, %.3f where the controller sends probes", scheme, y, x)
		}
	}
}

// TestArch: rows can state their architecture in every form that files allow.
func TestArch(t *testing.T) {
	x := load(t, fmt.Sprintf(onHardware, "drill, ecmp@t2na, {scheme: drill, arch: t2na}, {scheme: ecmp, arch: v1model}")+"arch: tna\n")
	var got []string
	for _, s := range x.Schemes {
		got = append(got, s.Label+" "+s.Arch)
	}
	// The experiment's architecture applies to rows without one.
	if want := "drill@tna tna, ecmp@t2na t2na, drill@t2na t2na, ecmp "; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// TestGhost: queue lengths by the ghost thread do as well as by reports, of
// which there are none then, and model and program agree.
func TestGhost(t *testing.T) {
	leftToPlainRun(t)
	for _, scheme := range []string{"drill", "qdaps"} {
		t.Run(scheme, func(t *testing.T) {
			const ghost = "{scheme: %s, arch: t2na, state-path: ghost, label: ghost}"
			text := fmt.Sprintf(onHardware, fmt.Sprintf(ghost+", %[1]s@t2na", scheme))
			c := run(t, &Runner{}, load(t, text))
			here, reports := c.Row("", "ghost", 0.6).Runs[0], c.Row("", scheme+"@t2na", 0.6).Runs[0]
			if here.Flows != reports.Flows || here.Metrics["unfinished"] != 0 {
				t.Errorf("%d flows, %g of them not finished; %d with reports", here.Flows, here.Metrics["unfinished"], reports.Flows)
			}
			if a, b := here.Metrics["fct-mean"], reports.Metrics["fct-mean"]; !(a > b/1.5 && a < 1.5*b) || a == b {
				t.Errorf("flows take %.3f ms on average, with reports %.3f", a, b)
			}
			if n := here.Lost["consumed"]; n != 0 || reports.Lost["consumed"] == 0 {
				t.Errorf("%d reports have ended, %d where there are some", n, reports.Lost["consumed"])
			}
			x := load(t, fmt.Sprintf(onHardware, fmt.Sprintf(ghost, scheme))+"engine: native\n")
			native := *run(t, &Runner{}, x).Row("", "ghost", 0.6).Runs[0]
			native.Engine, native.Spec = here.Engine, here.Spec
			if a, b := written(t, here), written(t, &native); a != b {
				t.Errorf("the engines differ:\n%s\n%s", a, b)
			}
		})
	}
}

// TestHardwareEngines: program and model agree on every packet in difficult cases. HULA
// compares utilisations of several links, so a utilisation that differs by 1 leads to
// another path. After a failure, packets return to their leaf with another leaf's header;
// program and model must forward or drop them with the same random draws.
func TestHardwareEngines(t *testing.T) {
	leftToPlainRun(t)
	for name, text := range map[string]string{
		"three tiers": `
topology: {fat-tree: {k: 4, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [hula@tna]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.8]
duration: 4ms
`,
		"a restored link, one path left": `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 500M, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [qdaps-star@t2na]
traffic: [{workload: websearch, load-of: hosts}]
transport: dctcp
loads: [0.5]
seeds: [837]
duration: 10ms
faults: [{at: 4ms, until: 6ms, link: l2-s1, down: true}]
`,
		"a restored link, two paths left": `
topology: {leaf-spine: {leaves: 3, spines: 3, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [conga@t2na, qdaps-star@t2na]
traffic: [{workload: webserver, load-of: hosts}]
loads: [0.5]
seeds: [818]
duration: 10ms
faults: [{at: 4ms, until: 5ms, link: l1-s3, down: true}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			p4, native := t.TempDir(), t.TempDir()
			run(t, &Runner{Dir: p4}, load(t, text))
			run(t, &Runner{Dir: native}, load(t, text+"engine: native\n"))
			sameTrees(t, tree(t, filepath.Join(p4, "runs")), tree(t, filepath.Join(native, "runs")), resultFile)
		})
	}
}
