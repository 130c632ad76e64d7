package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// bfrtPlan is a plan for switches that serve BfRt.
func bfrtPlan(t testing.TB, scheme string, topology *fabric.Topology) *plan.Plan {
	t.Helper()
	_, arch, _ := strings.Cut(scheme, "@")
	p := planFor(t, scheme, plan.DevicePorts(topology, arch))
	configs := map[*plan.Pipeline]bool{}
	for _, s := range p.Switches {
		if configs[s.Pipeline] {
			continue
		}
		configs[s.Pipeline] = true
		copied := &plan.Pipeline{Manifest: s.Pipeline.Manifest, P4Info: s.Pipeline.P4Info, Schema: s.Pipeline.Schema}
		a, err := tofino.Embedded(s.Pipeline)
		if err != nil {
			t.Fatal(err)
		}
		if copied.Config, err = a.Encode(); err != nil {
			t.Fatal(err)
		}
		old := s.Pipeline
		for _, other := range p.Switches {
			if other.Pipeline == old {
				other.Pipeline = copied
			}
		}
		configs[copied] = true
	}
	return p
}

// TestBfRt writes a plan over BfRt, including its objects other than tables, and reads it
// back; a second deployment writes nothing.
func TestBfRt(t *testing.T) {
	schemes := []string{"drill@tna", "conga@tna", "ecmp@tna", "dhlb@tna", "letflow+rlb@tna", "hermes@t2na"}
	if testing.Short() { // under the race detector each takes long
		schemes = schemes[:2]
	}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			target := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
			p := bfrtPlan(t, scheme, preset(t, "qall"))
			first := deploy(t, p, target, controller.DeployOptions{})
			if first.Written() == 0 || !first.Switches[0].Pushed {
				t.Errorf("the first deployment has written %d objects", first.Written())
			}
			second := deploy(t, p, target, controller.DeployOptions{})
			if n := second.Written(); n != 0 || second.Switches[0].Pushed {
				t.Errorf("the second deployment has written %d objects: %+v", n, second.Switches[0].Changes)
			}
		})
	}
}

// TestBfRtLinkFails: a changed plan writes only the differences.
func TestBfRtLinkFails(t *testing.T) {
	top := preset(t, "qall")
	target := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	deploy(t, bfrtPlan(t, "drill@tna", top), target, controller.DeployOptions{})
	links, err := top.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	p := bfrtPlan(t, "drill@tna", top.Fail(links...))
	second := deploy(t, p, target, controller.DeployOptions{})
	kinds := map[report.Kind]int{}
	for _, s := range second.Switches {
		for _, c := range s.Changes {
			kinds[c.Kind]++
		}
	}
	if second.Written() == 0 || kinds[report.Push] > 0 {
		t.Errorf("the changes are %v", kinds)
	}
	if third := deploy(t, p, target, controller.DeployOptions{}); third.Written() != 0 {
		t.Errorf("once more %d changes", third.Written())
	}
}

// TestBfRtRegisters reads single cells, all cells, halves of cells, and port counters.
func TestBfRtRegisters(t *testing.T) {
	to := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	p := bfrtPlan(t, "letflow@tna", preset(t, "qall"))
	c, err := controller.New(testContext(t), p, to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	regs, err := c.Registers("l1")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Switch("l1").Pipeline.Manifest.Registers {
		most := uint64(1)<<r.Width - 1
		for _, span := range [][2]int{{1, 2}, {0, min(r.Size, 300)}} {
			value := most - uint64(span[0])
			if err := regs.Write(testContext(t), r.Name, span[0], span[1], value); err != nil {
				t.Fatal(err)
			}
			got, err := regs.Read(testContext(t), r.Name, span[0], span[1], nil)
			if err != nil || !slices.Equal(got, slices.Repeat([]uint64{value}, span[1]-span[0])) {
				t.Errorf("%s: %d cells begin with %v, %v; want %v", r.Name, len(got), got[:min(2, len(got))], err, value)
			}
		}
		if _, err := regs.Read(testContext(t), r.Name, 0, r.Size+1, nil); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("%s beyond its end: %v", r.Name, err)
		}
	}
	if _, err := regs.Read(testContext(t), "none", 0, 1, nil); err == nil || !strings.Contains(err.Error(), "no register none") {
		t.Errorf("the error is %v", err)
	}
	if _, err := regs.Clock(testContext(t)); !errors.Is(err, registers.ErrNoClock) {
		t.Errorf("the clock: %v", err)
	}
	counts, err := regs.(registers.Meter).PortCounts(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range p.Topology.Ports("l1") {
		if !slices.ContainsFunc(counts, func(c bmv2.PortCounts) bool { return c.Port == port.Number }) {
			t.Errorf("port %d is not counted", port.Number)
		}
	}
}

// An otherClient reaches the same switches by another number.
type otherClient struct {
	*embedded.Target
	speaker *tofino.Speaker
}

func (o *otherClient) Start(_ context.Context, p *plan.Plan) error { return o.speaker.Plan(p) }

func (o *otherClient) Endpoint(name string) (target.Endpoint, error) {
	e, err := o.Target.Endpoint(name)
	e.Speak = o.speaker.To(name, e.Device)
	return e, err
}

// TestBfRtLateBind: a bind of an earlier connection that arrives late does not block the
// bind of the current connection.
func TestBfRtLateBind(t *testing.T) {
	to := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	p := bfrtPlan(t, "ecmp@tna", preset(t, "qall"))
	deploy(t, p, to, controller.DeployOptions{})
	late := &lateBinds{otherClient: otherClient{Target: to, speaker: tofino.NewSpeaker()}, earlier: map[string]*wire.SetForwardingPipelineConfigRequest{}}
	for n := range 2 {
		if _, err := controller.Deploy(testContext(t), p, late, controller.DeployOptions{}); err != nil {
			t.Fatalf("deployment %d: %v", n+1, err)
		}
	}
	if late.repeated == 0 {
		t.Error("no bind was repeated")
	}
}

// lateBinds repeats the bind of the last connection before each bind of the present one.
type lateBinds struct {
	otherClient
	mu       sync.Mutex
	earlier  map[string]*wire.SetForwardingPipelineConfigRequest // by switch
	repeated int
}

func (l *lateBinds) Endpoint(name string) (target.Endpoint, error) {
	e, err := l.otherClient.Endpoint(name)
	speak := e.Speak
	e.Speak = func(conn grpc.ClientConnInterface) target.Session {
		return speak(&lateConn{conn, l, name})
	}
	return e, err
}

type lateConn struct {
	grpc.ClientConnInterface
	late *lateBinds
	name string
}

func (c *lateConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if m, ok := args.(*wire.SetForwardingPipelineConfigRequest); ok && m.GetAction() == wire.SetForwardingPipelineConfigRequest_BIND {
		c.late.mu.Lock()
		earlier := c.late.earlier[c.name]
		c.late.earlier[c.name] = m
		if earlier != nil {
			c.late.repeated++
		}
		c.late.mu.Unlock()
		if earlier != nil {
			c.ClientConnInterface.Invoke(ctx, method, earlier, new(wire.SetForwardingPipelineConfigResponse), opts...)
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// TestBfRtOtherProgram: the controller uses a switch with the right program as it is, and
// does not write to a switch with another program.
func TestBfRtOtherProgram(t *testing.T) {
	to := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	top := preset(t, "qall")
	deploy(t, bfrtPlan(t, "ecmp@tna", top), to, controller.DeployOptions{})
	loaded := bfrtPlan(t, "ecmp@tna", top)
	for _, s := range loaded.Switches {
		s.Pipeline.Config = nil
	}
	if r := deploy(t, loaded, to, controller.DeployOptions{}); r.Written() != 0 || r.Switches[0].Pushed {
		t.Errorf("%d changes of a program that is there", r.Written())
	}
	other := bfrtPlan(t, "drill@tna", top)
	for _, s := range other.Switches {
		s.Pipeline.Config = nil
	}
	_, err := controller.Deploy(testContext(t), other, to, controller.DeployOptions{})
	if err == nil || !strings.Contains(err.Error(), "it runs ecmp_") || !strings.Contains(err.Error(), "--device-config") {
		t.Errorf("the error is %v", err)
	}
	if r := deploy(t, loaded, to, controller.DeployOptions{}); r.Written() != 0 {
		t.Errorf("%d changes after the refusal", r.Written())
	}
}

// TestBfRtFrontPanel: a switch whose ports have other names than in the topology gets no
// entries.
func TestBfRtFrontPanel(t *testing.T) {
	to := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
	port := bfrtPlan(t, "ecmp@tna", preset(t, "qall")).Topology.Ports("l1")[0].Number
	for _, c := range []struct {
		name, want string
	}{
		{"70/0", fmt.Sprintf("front-panel port 70/0 is device port %d in the topology and 276 on the switch", port)},
		{"900/0", "front-panel port 900/0: the switch has none of this name"},
		{fmt.Sprintf("%d/%d", port/4+1, port%4), ""}, // the numbering of the embedded switch
	} {
		p := bfrtPlan(t, "ecmp@tna", preset(t, "qall")) // the sessions of the last one may still read it
		p.Topology.Switch("l1").Front = fabric.Front{c.name: port}
		r, err := controller.Deploy(testContext(t), p, to, controller.DeployOptions{})
		if c.want == "" {
			if err != nil || !r.Verified() {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
		for _, s := range r.Switches {
			if s.Name == "l1" && slices.ContainsFunc(s.Changes, func(c report.Change) bool { return c.Kind != report.Push }) {
				t.Errorf("%s: %+v was written", c.name, s.Changes)
			}
		}
	}
}
