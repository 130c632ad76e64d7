package embedded_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestPlanErrors: impossible plans are reported with a remedy.
func TestPlanErrors(t *testing.T) {
	qall := preset(t, "qall")
	load := func(text string) *fabric.Topology {
		topology, err := fabric.Load("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return topology
	}
	small := func(role fabric.Role) *plan.Pipeline {
		return compile(t, programKey{scheme: "ecmp", role: role, ports: 2, max: 20})
	}
	for _, test := range []struct {
		name      string
		topology  *fabric.Topology
		pipelines map[fabric.Role]*plan.Pipeline
		want      string // of the first error
		hint      string
	}{
		{"no program for a role", qall, map[fabric.Role]*plan.Pipeline{fabric.Leaf: pipelines(t, "ecmp", qall)[fabric.Leaf]},
			"s1: there is no program for the role spine", "--role spine"},
		{"more next hops than paths", qall, map[fabric.Role]*plan.Pipeline{fabric.Leaf: small(fabric.Leaf), fabric.Spine: small(fabric.Spine)},
			"l1: group 1 has 4 next hops, the program of the role leaf is for 2", "--ports 4"},
		{"a link at the controller's port", load("switches:\n  l1: {role: leaf}\nhosts:\n  h1: {ip: 10.0.1.1/24}\nlinks:\n  - {ends: [h1, l1:255], rate: 1G}\n"),
			map[fabric.Role]*plan.Pipeline{fabric.Leaf: small(fabric.Leaf)},
			"l1: port 255 has a link and is also the controller's port", "another port"},
		{"a link at a virtual port", load("switches:\n  l1: {role: leaf}\nhosts:\n  h1: {ip: 10.0.1.1/24}\nlinks:\n  - {ends: [h1, l1:500], rate: 1G}\n"),
			map[fabric.Role]*plan.Pipeline{fabric.Leaf: compile(t, programKey{scheme: "drill", role: fabric.Leaf, ports: 2})},
			"l1: port 500 has a link, and is one that no interface may be attached to", "another port"},
		{"no coefficients", qall, pipelines(t, "qall-poly5", qall),
			"l1: the program of qall-poly5 leaves its polynomial to the controller, and there is none", "--coeffs"},
		{"manifest of another program", qall, map[fabric.Role]*plan.Pipeline{
			fabric.Leaf:  {Manifest: pipelines(t, "drill", qall)[fabric.Leaf].Manifest, P4Info: small(fabric.Leaf).P4Info},
			fabric.Spine: small(fabric.Spine),
		}, "l1: the manifest of drill does not match its program: registers[0].name: the program has no register \"qe_clone\": it has none", "together"},
		{"no P4Info", qall, map[fabric.Role]*plan.Pipeline{fabric.Leaf: {}, fabric.Spine: small(fabric.Spine)},
			"l1: there is no P4Info", "together"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := plan.New(test.topology, test.pipelines, plan.Options{})
			var list plan.Errors
			if !errors.As(err, &list) {
				t.Fatalf("the error is %v", err)
			}
			if got := list[0].Error(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !strings.Contains(list[0].Hint, test.hint) {
				t.Errorf("the hint is %q", list[0].Hint)
			}
		})
	}
}

// TestUnknownWords: planning fails and names a table, register or group without a known
// purpose, instead of leaving it empty.
func TestUnknownWords(t *testing.T) {
	qall := preset(t, "qall")
	for name, change := range map[string]func(*manifest.Manifest){
		"group": func(m *manifest.Manifest) { m.MulticastGroups[0].Members = "the ports of next week" },
		"table": func(m *manifest.Manifest) {
			m.Tables = append(m.Tables, manifest.Table{Name: "LbIngress.arrival"})
			m.Tables = slices.Clone(m.Tables)
			for i := range m.Tables {
				if m.Tables[i].Name == "LbIngress.member" {
					m.Tables[i].Name = "tbl_unknown"
				}
			}
		},
		"register": func(m *manifest.Manifest) { m.Registers[0].Writer = "controller" },
	} {
		t.Run(name, func(t *testing.T) {
			all := map[fabric.Role]*plan.Pipeline{}
			for role := range pipelines(t, "hula", qall) {
				all[role] = compile(t, programKey{scheme: "hula", role: role, ports: 4, max: 20})
				if role == fabric.Leaf {
					change(&all[role].Manifest)
				}
			}
			_, err := plan.New(qall, all, plan.Options{})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestCut: unreachable nodes are reported and do not prevent a deployment.
func TestCut(t *testing.T) {
	topology := preset(t, "qall")
	if got := planFor(t, "ecmp", topology).Cut(); got != nil {
		t.Errorf("nobody is cut off: %q", got)
	}
	links, err := topology.FindLinks("l2-s1")
	if err != nil {
		t.Fatal(err)
	}
	more, err := topology.FindLinks("l2-s2")
	if err != nil {
		t.Fatal(err)
	}
	topology = topology.Fail(append(append(links, more...), 0)...)
	want := []string{"h1 at l1: its link is down", "the hosts of l2: no way from l1"}
	if got := planFor(t, "ecmp", topology).Cut(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestWeights: the weight of a path is its capacity to the destination, at the link
// and behind it.
func TestWeights(t *testing.T) {
	for name, want := range map[string]string{
		"qall":           "l1: weight_0=1 weight_1=1 weight_2=1 weight_3=1",
		"qall-asym":      "l1: weight_0=2 weight_1=2 weight_2=1 weight_3=1",
		"qdaps-8-asym":   "l1: weight_0=1 weight_1=5 weight_2=5 weight_3=5 weight_4=5 weight_5=5 weight_6=5 weight_7=5",
		"rlb-12x12-asym": "l1: weight_0=4 weight_1=1",
	} {
		t.Run(name, func(t *testing.T) {
			got := "l1:"
			for _, e := range planFor(t, "wcmp", preset(t, name)).Switch("l1").Entries {
				if e.Table == "LbIngress.candidates" {
					for _, a := range e.Args {
						if a.Value != 0 {
							got += fmt.Sprintf(" %s=%d", a.Name, a.Value)
						}
					}
					break
				}
			}
			if name == "rlb-12x12-asym" {
				got = got[:len(want)]
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestServed: real sockets, at free ports and at the topology's, one of which is
// taken.
func TestServed(t *testing.T) {
	topology := preset(t, "qall")
	p := planFor(t, "letflow", topology)
	to := newTarget(t, embedded.Options{AnyPort: true})
	deploy(t, p, to, controller.DeployOptions{})
	addresses := map[string]string{}
	for _, s := range p.Switches {
		e, err := to.Endpoint(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		addresses[s.Name] = e.Address
	}
	servers := target.NewServers(target.ServersOptions{Addresses: addresses})
	if n := deploy(t, p, servers, controller.DeployOptions{}).Written(); n != 0 {
		t.Errorf("%d changes over sockets", n)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text := strings.Replace(string(topology.YAML()), topology.Switch("s1").GRPC, taken.Addr().String(), 1)
	clash, err := fabric.Load("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = controller.Deploy(testContext(t), planFor(t, "letflow", clash), newTarget(t, embedded.Options{}), controller.DeployOptions{Timeout: short})
	if err == nil || !strings.Contains(err.Error(), "s1: cannot be reached: serving P4Runtime at "+taken.Addr().String()) {
		t.Errorf("the error is %v", err)
	}
}

// TestSameAddress: two switches at one address are an error in the topology, two devices
// of one server are not.
func TestSameAddress(t *testing.T) {
	topology := preset(t, "qall")
	one := target.NewServers(target.ServersOptions{Addresses: map[string]string{
		"l1": "192.0.2.1:9559", "l2": "192.0.2.1:9559",
	}})
	if err := one.Start(t.Context(), planFor(t, "ecmp", topology)); err != nil {
		t.Errorf("two devices of one server: %v", err)
	}
	same, err := fabric.Load("test.yaml", []byte(strings.Replace(string(topology.YAML()), "id: 2,", "id: 1,", 1)))
	if err != nil {
		t.Fatal(err)
	}
	err = one.Start(t.Context(), planFor(t, "ecmp", same))
	if err == nil || !strings.Contains(err.Error(), "l2: is the same as l1: both are 192.0.2.1:9559, device 1") {
		t.Errorf("two switches at one place: %v", err)
	}
}

// TestRegisters: P4Runtime reads and writes the registers of the switch.
func TestRegisters(t *testing.T) {
	p := planFor(t, "pdlb", preset(t, "qall"))
	target := newFaulty(t, p, "l1", &fault{}) // its registers by P4Runtime
	c := running(t, p, target, controller.DeployOptions{})
	r, err := c.Registers("l1")
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	if err := r.Write(ctx, "pd_gran", 1, 300, 7); err != nil {
		t.Fatal(err)
	}
	for _, span := range [][2]int{{0, 2}, {299, 301}, {0, 1024}, {5, 5}} {
		want, err := target.Device("l1").ReadRegister("pd_gran", span[0], span[1])
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Read(ctx, "pd_gran", span[0], span[1], []uint64{9})
		if err != nil || !slices.Equal(got, append([]uint64{9}, want...)) {
			t.Errorf("cells %v: %v (%v), want %v behind a 9", span, got, err, want)
		}
	}
	if _, err := r.Read(ctx, "pd_gran", 0, 1025, nil); err == nil || !strings.Contains(err.Error(), "outside 0..1023") {
		t.Errorf("a cell too far: %v", err)
	}
	if _, err := r.Read(ctx, "nothing", 0, 1, nil); err == nil || !strings.Contains(err.Error(), "no register nothing") {
		t.Errorf("an unknown register: %v", err)
	}
	if _, err := r.Clock(ctx); !errors.Is(err, registers.ErrNoClock) {
		t.Errorf("the clock: %v", err)
	}
	if _, err := c.Registers("l9"); err == nil {
		t.Error("there is no switch l9")
	}
}

// TestHardwarePlans: schemes that are built for Tofino have a plan, the draws of
// which always lead to a path. P4LB_ALL=1 tries the whole catalogue.
func TestHardwarePlans(t *testing.T) {
	topology := preset(t, "qall-asym")
	schemes := []string{"wcmp", "drill", "hula", "qall-poly3"}
	if os.Getenv("P4LB_ALL") != "" {
		schemes = codegen.Names()
	}
	for _, scheme := range schemes {
		row, err := codegen.Parse(scheme)
		if err != nil {
			t.Fatal(err)
		}
		all := map[fabric.Role]*plan.Pipeline{}
		for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
			g, err := codegen.Generate(row, codegen.Params{Arch: "tna", Ports: 5, MaxPort: 20, Role: string(role)})
			if err != nil {
				break // not built for it
			}
			c, err := p4.Check(fstest.MapFS{"x.p4": {Data: []byte(g.P4)}}, "x.p4", p4.Options{Arch: "tna"})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Describe(); err != nil {
				t.Fatal(err)
			}
			all[role] = &plan.Pipeline{Manifest: g.Manifest, P4Info: c.P4Info}
		}
		if len(all) < 2 {
			if len(schemes) < 10 {
				t.Errorf("%s is not built for Tofino", scheme)
			}
			continue
		}
		p, err := plan.New(topology, all, plan.Options{})
		if err != nil && strings.Contains(err.Error(), "leaves its polynomial to the controller") {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
			continue
		}
		members := 0
		for _, e := range p.Switch("l1").Entries {
			if e.Table == "LbIngress.member" {
				members++
			}
		}
		if members != 5 {
			t.Errorf("%s: %d members, want 5: a group of 4, and one more slot that leads along one of its paths", scheme, members)
		}
	}
}
