package embedded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// arrivals is an ingress control that counts frames by port and keeps the number and the
// time that the last one carries in ttl, sum, src and dst.
const arrivals = `register<bit<32>>(512) seen;
    register<bit<32>>(4) last;
    apply {
        bit<32> n;
        seen.read(n, (bit<32>) s.ingress_port);
        seen.write((bit<32>) s.ingress_port, n + 1);
        last.write(0, (bit<32>) h.ip.ttl);
        last.write(1, h.ip.src);
        last.write(2, (bit<32>) s.ingress_global_timestamp);
    }`

const probing = `tasks:
- {kind: send, period: 2ms, each: neighbour, roles: [spine], where: $below, in: $port, frame: ["0xffffffffffff:48", "$own-mac:48", "0x88b7:16", "0:64", "$sequence:8", "0:24", "$time:32", "$leaf:32"]}
version: 2`

// TestProbesAtPorts sends frames with the time and a number to the ports of spines.
func TestProbesAtPorts(t *testing.T) {
	_, p, err := foreignPlan(t, arrivals, writtenFabric(t), "version: 2", probing)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Switch("l1").Frames); n != 0 {
		t.Errorf("a leaf sends %d frames", n)
	}
	frames := p.Switch("s1").Frames
	if len(frames) != 2 || *frames[0].Port != 1 || *frames[1].Port != 2 || len(frames[0].Stamps) != 2 || len(frames[1].Bytes) != 14+20 || frames[1].Bytes[33] != 2 {
		t.Fatalf("%+v", frames)
	}
	target := embedded.New(embedded.Options{Memory: true})
	defer target.Close()
	c, err := controller.New(testContext(t), p, target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	tasks, err := task.ForPlan(p, task.Options{})
	if err != nil || len(tasks) != 4 {
		t.Fatal(len(tasks), err)
	}
	e, err := target.Endpoint("s1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			seen, err := e.Registers.Read(ctx, "I.seen", 0, 4, nil)
			if err != nil || min(seen[1], seen[2]) >= 5 {
				stop()
			}
		}
	}()
	c.Loop(ctx, tasks, controller.LoopOptions{})
	seen, err := e.Registers.Read(testContext(t), "I.seen", 0, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	last, err := e.Registers.Read(testContext(t), "I.last", 0, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The tasks of the two ports do not wait for each other.
	if seen[0] != 0 || seen[3] != 0 || min(seen[1], seen[2]) < 5 || last[0]+1 != seen[1] && last[0]+1 != seen[2] {
		t.Errorf("arrivals %v, number of the last %d", seen, last[0])
	}
	if took := last[2] - last[1]; last[1] == 0 || took > 10e6 { // both are of the switch's clock
		t.Errorf("sent at %d us, arrived at %d us", last[1], last[2])
	}
	if err := registers.Inject(testContext(t), e.Registers, 9, make([]byte, 60)); err == nil || err.Error() != "there is no port 9" {
		t.Error(err)
	}
	if err := registers.Inject(testContext(t), struct{ registers.Access }{e.Registers}, 1, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// TestProbesRefused: a frame for a port without a link, and facts that are known only
// when a frame is sent, in expressions, are errors that name the task.
func TestProbesRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"in: $port", "in: $port + 7", "s1: task 1 of the manifest: in: port 8 of s1 has no link: want one that has, or $cpu"},
		{"in: $port", "in: $host", "tasks[0].in: there is no $host here: it is one of each: port, host"},
		{`"$time:32"`, `"$time + 1:32"`, "tasks[0].frame[6]: $time + 1: $time and $sequence stand alone, because they are known when the frame is sent"},
		{"where: $below", "where: $time", "tasks[0].where: there is no $time here: it is one of the frames of a task"},
		{`"$leaf:32"`, `"$leaf:4"`, "s1: task 1 of the manifest: the frame is no whole number of bytes"},
		{"period: 2ms", "period: 0", "tasks[0].period: is missing: task send wants it"},
	} {
		_, _, err := foreignPlan(t, arrivals, writtenFabric(t), "version: 2", strings.Replace(probing, c.from, c.to, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.to, err, c.want)
		}
	}
}
