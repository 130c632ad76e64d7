package embedded_test

import (
	"context"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// TestRegisterWays reaches the registers and counts of a switch directly and by Thrift,
// and compares both.
func TestRegisterWays(t *testing.T) {
	topology := preset(t, "qall")
	p := planFor(t, "hula", topology)
	to := newTarget(t, embedded.Options{AnyPort: true})
	deploy(t, p, to, controller.DeployOptions{})
	e, err := to.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	thrift := target.NewThrift(e.Thrift)
	defer thrift.Close()
	ctx := testContext(t)
	if err := e.Registers.Write(ctx, "best_hop", 3, 5, 0x18001); err != nil { // of 16 bits
		t.Fatal(err)
	}
	if err := to.Device("l1").WriteRegister("u", 400, 401, 7); err != nil {
		t.Fatal(err)
	}
	for name, regs := range map[string]registers.Access{"direct": e.Registers, "Thrift": thrift} {
		for _, c := range []struct {
			register string
			from, to int
			want     []uint64
		}{
			{"best_hop", 2, 6, []uint64{0, 0x8001, 0x8001, 0}},
			{"best_hop", 3, 3, nil},
			{"u", 399, 402, []uint64{0, 7, 0}},
			{"u", 300, 402, append(make([]uint64, 100), 7, 0)},
		} {
			got, err := regs.Read(ctx, c.register, c.from, c.to, []uint64{42})
			if err != nil || !slices.Equal(got, append([]uint64{42}, c.want...)) {
				t.Errorf("%s: %s[%d:%d] is %v, error %v; want %v behind 42", name, c.register, c.from, c.to, got, err, c.want)
			}
		}
		for _, c := range []struct {
			register string
			from, to int
		}{{"best_hop", 1000, 1025}, {"best_hop", -1, 2}, {"worst_hop", 0, 1}} {
			if got, err := regs.Read(ctx, c.register, c.from, c.to, nil); err == nil {
				t.Errorf("%s: %s[%d:%d] is %v", name, c.register, c.from, c.to, got)
			}
		}
	}
	if empty, err := e.Registers.(interface {
		QueuesEmpty(context.Context) (bool, error)
	}).QueuesEmpty(ctx); err != nil || !empty {
		t.Errorf("queues empty: %v, error %v", empty, err)
	}
}

// TestSent counts the probes that a port sends, which all have the same length.
func TestSent(t *testing.T) {
	topology := preset(t, "qall")
	p := planFor(t, "hula", topology)
	to := newTarget(t, embedded.Options{AnyPort: true})
	ctx := testContext(t)
	c, err := controller.New(ctx, p, to, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(ctx); err != nil {
		t.Fatal(err)
	}
	tasks, err := task.ForPlan(p, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loop, cancel := context.WithCancel(ctx)
	done := make(chan controller.LoopReport)
	go func() { done <- c.Loop(loop, tasks, controller.LoopOptions{}) }()
	up := p.Switch("l1").Routes.Groups[0].Hops[0].Port
	for packets := uint64(0); packets < 3; packets = sentBy(to.Device("l1"), up) {
		if ctx.Err() != nil {
			t.Fatal("no probes go out")
		}
	}
	cancel()
	if report := <-done; report.Failed > 0 {
		t.Errorf("%+v", report)
	}
	regs, err := c.Registers("l1")
	if err != nil {
		t.Fatal(err)
	}
	e, err := to.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	thrift := target.NewThrift(e.Thrift)
	defer thrift.Close()
	const frame = 14 + 6 // Ethernet; origin and util
	for name, m := range map[string]registers.Meter{"controller": regs.(registers.Meter), "Thrift": thrift} {
		list, err := m.PortCounts(ctx)
		wired := 0 // beside the port of the CPU, by which probes come
		for _, p := range topology.Ports("l1") {
			if slices.ContainsFunc(list, func(c bmv2.PortCounts) bool { return c.Port == p.Number }) {
				wired++
			}
		}
		if err != nil || wired != len(topology.Ports("l1")) || len(list) > wired+1 {
			t.Fatalf("%s: counts of %d ports, %d of them with links, error %v; want those of %d", name, len(list), wired, err, len(topology.Ports("l1")))
		}
		for _, c := range list {
			switch {
			case c.Port == up && (c.OutBytes < 3*frame || c.OutBytes%frame != 0 || c.OutBytes != frame*c.OutPackets):
				t.Errorf("%s: port %d has sent %d bytes; want a multiple of %d", name, up, c.OutBytes, frame)
			case c.Port == 1 && c.OutBytes != 0:
				t.Errorf("%s: port 1 to a host has sent %d bytes", name, c.OutBytes)
			}
		}
	}
}

// sentBy returns the number of packets that a port has sent.
func sentBy(dev *p4rt.Device, port int) uint64 {
	for _, c := range dev.PortCounts() {
		if c.Port == port {
			return c.OutPackets
		}
	}
	return 0
}
