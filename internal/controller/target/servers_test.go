package target_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

func planOf(t *testing.T, s1, s2 string) *plan.Plan {
	t.Helper()
	top, err := fabric.Load("x.yaml", []byte("switches:\n  s1: {role: leaf, "+s1+"}\n  s2: {role: leaf, "+s2+"}\nhosts:\n  h1: {ip: 10.0.1.1/24}\nlinks:\n  - {ends: [h1, s1], rate: 1G}\n  - {ends: [s1, s2], rate: 1G}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Plan{Topology: top}
}

// Running servers are found at the topology's addresses, or at the options' addresses.
func TestServers(t *testing.T) {
	secure := &tls.Config{}
	for name, test := range map[string]struct {
		make   func(target.ServersOptions) target.Target
		o      target.ServersOptions
		s1, s2 string
		called string
		want   string // address, device and limits of s2, or the error
		hint   string
	}{
		"P4Runtime": {func(o target.ServersOptions) target.Target { return target.NewServers(o) }, target.ServersOptions{},
			"id: 3, grpc: 127.0.0.1:1", "id: 4, grpc: 127.0.0.1:1", "p4runtime", "127.0.0.1:1 4 {false false false 0}", ""},
		"other addresses": {func(o target.ServersOptions) target.Target { return target.NewServers(o) }, target.ServersOptions{Addresses: map[string]string{"s2": "127.0.0.9:9"}},
			"id: 3, grpc: 127.0.0.1:1", "id: 3, grpc: 127.0.0.1:2", "p4runtime", "127.0.0.9:9 3 {false false false 0}", ""},
		"Stratum": {func(o target.ServersOptions) target.Target { return target.NewTofino(o) }, target.ServersOptions{},
			"grpc: 127.0.0.1:1", "id: 7, grpc: 127.0.0.1:2", "tofino", "127.0.0.1:2 7 {true false false 200}", ""},
		"Stratum with larger batches": {func(o target.ServersOptions) target.Target { return target.NewTofino(o) }, target.ServersOptions{Limits: target.Limits{Batch: 500}},
			"grpc: 127.0.0.1:1", "id: 7, grpc: 127.0.0.1:2", "tofino", "127.0.0.1:2 7 {true false false 500}", ""},
		"Intel's SDE has one device": {func(o target.ServersOptions) target.Target { return target.NewBfRt(o) }, target.ServersOptions{},
			"id: 3, grpc: 127.0.0.1:1", "id: 4, grpc: 127.0.0.1:2", "tofino", "127.0.0.1:2 0 {false false false 0}", ""},
		"two of Intel's at one address": {func(o target.ServersOptions) target.Target { return target.NewBfRt(o) }, target.ServersOptions{},
			"id: 3, grpc: 127.0.0.1:1", "id: 4, grpc: 127.0.0.1:1", "tofino", "s2: is the same as s1: both are 127.0.0.1:1, device 0", "own grpc address"},
		"BMv2": {func(o target.ServersOptions) target.Target { return target.AttachBMv2(o) }, target.ServersOptions{},
			"id: 1, grpc: 127.0.0.1:1", "id: 2, grpc: 127.0.0.1:2", "bmv2", "127.0.0.1:2 2 {true true false 0}", ""},
		"one device twice": {func(o target.ServersOptions) target.Target { return target.NewServers(o) }, target.ServersOptions{Addresses: map[string]string{"s2": "127.0.0.1:1"}},
			"id: 3, grpc: 127.0.0.1:1", "id: 3, grpc: 127.0.0.1:2", "p4runtime", "s2: is the same as s1: both are 127.0.0.1:1, device 3", "own grpc address"},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.TLS = secure
			to := test.make(test.o)
			if to.Name() != test.called {
				t.Errorf("called %s, want %s", to.Name(), test.called)
			}
			if _, err := to.Endpoint("s1"); err == nil {
				t.Error("a switch is found before the start")
			}
			err := to.Start(t.Context(), planOf(t, test.s1, test.s2))
			if err != nil {
				var hint *plan.Error
				if err.Error() != test.want || !errors.As(err, &hint) || hint.Hint == "" || !strings.Contains(hint.Hint, test.hint) {
					t.Errorf("error %v, want %s", err, test.want)
				}
				return
			}
			e, err := to.Endpoint("s2")
			if got := fmt.Sprint(e.Address, " ", e.Device, " ", e.Limits); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
			if byThrift := test.called == "bmv2"; e.TLS != secure || (e.Thrift != "") != byThrift || (e.Registers != nil) != byThrift || (e.Queues != nil) != byThrift {
				t.Errorf("endpoint %+v", e)
			}
			if _, err := to.Endpoint("s9"); err == nil || !strings.Contains(err.Error(), "no switch s9") {
				t.Errorf("an unknown switch: %v", err)
			}
			if err := to.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	p := planOf(t, "id: 1, grpc: 127.0.0.1:1", "id: 2, grpc: 127.0.0.1:2")
	p.Topology.Switches[1].GRPC = ""
	var hint *plan.Error
	if err := target.NewServers(target.ServersOptions{}).Start(t.Context(), p); !errors.As(err, &hint) || hint.Switch != "s2" || !strings.Contains(hint.Hint, "grpc: ") {
		t.Errorf("no address: %+v", err)
	}
}

// A BMv2 with an address for Thrift has registers and queues there, which outlive a new plan.
func TestAttachedThrift(t *testing.T) {
	to := target.AttachBMv2(target.ServersOptions{})
	p := planOf(t, "id: 1, grpc: 127.0.0.1:1, thrift: 127.0.0.1:3", "id: 2, grpc: 127.0.0.1:2")
	p.Topology.Switches[1].Thrift = ""
	if err := to.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first, err := to.Endpoint("s1")
	if err != nil || first.Thrift != "127.0.0.1:3" || first.Registers == nil || first.Queues == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	if e, err := to.Endpoint("s2"); err != nil || e.Thrift != "" || e.Registers != nil || e.Queues != nil {
		t.Errorf("without Thrift: %+v, %v", e, err)
	}
	if err := to.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if again, _ := to.Endpoint("s1"); again.Registers != first.Registers {
		t.Error("a second plan forgets the queues that it has set")
	}
	p.Topology.Switches[1].GRPC, p.Topology.Switches[1].ID = p.Topology.Switches[0].GRPC, p.Topology.Switches[0].ID
	if err := to.Start(t.Context(), p); err == nil {
		t.Error("one switch is accepted as two")
	}
	if err := to.Close(); err != nil {
		t.Error(err)
	}
}

// A session in another protocol replaces the client and the accesses of an endpoint.
func TestOpen(t *testing.T) {
	th := target.NewThrift("127.0.0.1:3")
	client := p4v1.NewP4RuntimeClient(nil)
	e := target.Endpoint{Registers: th, Queues: th, Speak: func(grpc.ClientConnInterface) target.Session { return target.Session{Client: client} }}
	if e.Open(nil) != client || e.Registers != nil || e.Queues != nil {
		t.Errorf("endpoint %+v", e)
	}
	e = target.Endpoint{Registers: th, Queues: th}
	if e.Open(nil) == nil || e.Registers == nil || e.Queues == nil {
		t.Errorf("P4Runtime: %+v", e)
	}
}

// A BMv2's queues are known only as this process has set them, until they are forgotten.
func TestKnownQueues(t *testing.T) {
	th := target.NewThrift("127.0.0.1:3")
	ctx := context.Background()
	if _, known, err := th.Queue(ctx, 1); known || err != nil {
		t.Errorf("a queue is known: %v", err)
	}
	for _, port := range []int{2, 1} {
		th.Assume([]plan.Queue{{Port: port, Rate: uint64(port) * 100, Depth: 8}})
	}
	if got := fmt.Sprint(th.KnownQueues()); !strings.Contains(got, "100") || !strings.Contains(got, "200") {
		t.Errorf("queues %s", got)
	}
	if q, known, err := th.Queue(ctx, 2); !known || err != nil || q.Rate != 200 {
		t.Errorf("queue %+v, %v, %v", q, known, err)
	}
	th.Forget()
	if _, known, _ := th.Queue(ctx, 2); known || len(th.KnownQueues()) > 0 {
		t.Error("a queue is known after a restart")
	}
}
