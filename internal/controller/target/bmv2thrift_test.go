package target_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A thriftSwitch is a server's side of a switch with a single register.
type thriftSwitch struct {
	thrift.Target
	cells  []uint64
	queues []string
	most   int // cells that were read at once
}

func (s *thriftSwitch) RegisterSize(name string) (int, bool) { return len(s.cells), name == "r" }

func (s *thriftSwitch) ReadRegister(_ string, from, to int) ([]uint64, error) {
	s.most = max(s.most, to-from)
	return s.cells[from:to], nil
}

func (s *thriftSwitch) WriteRegister(_ string, from, to int, value uint64) error {
	for i := from; i < to; i++ {
		s.cells[i] = value
	}
	return nil
}

func (s *thriftSwitch) SetQueueDepth(port, priority, packets int) error {
	s.queues = append(s.queues, fmt.Sprintf("%d,%d: depth %d", port, priority, packets))
	return nil
}

func (s *thriftSwitch) SetQueueRate(port, priority int, pps uint64) error {
	s.queues = append(s.queues, fmt.Sprintf("%d,%d: rate %d", port, priority, pps))
	return nil
}

func (s *thriftSwitch) Elapsed() time.Duration { return 5 * time.Second }

// serveThrift serves the switch at the address until the function is called.
func serveThrift(t *testing.T, s *thriftSwitch, address string) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := thrift.NewServer(s, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	return l.Addr().String(), func() {
		server.Close()
		<-served
	}
}

func TestThrift(t *testing.T) {
	ctx := t.Context()
	sw := &thriftSwitch{cells: make([]uint64, 100)}
	address, stop := serveThrift(t, sw, "127.0.0.1:0")
	c := target.NewThrift(address)
	defer c.Close()

	if err := c.Write(ctx, "r", 10, 13, 7); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, to int
		want     string
	}{{10, 11, "[1 7]"}, {9, 13, "[1 0 7 7 7]"}, {8, 14, "[1 0 0 7 7 7 0]"}, {5, 5, "[1]"}} {
		got, err := c.Read(ctx, "r", tt.from, tt.to, []uint64{1})
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("cells %d to %d: %v, %v, want %s", tt.from, tt.to, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name     string
		from, to int
	}{{"r", 99, 101}, {"r", 90, 101}, {"x", 0, 1}, {"x", 0, 10}} {
		if got, err := c.Read(ctx, tt.name, tt.from, tt.to, nil); err == nil || errors.Is(err, target.ErrUnreachable) {
			t.Errorf("cells %d to %d of %s: %v, %v", tt.from, tt.to, tt.name, got, err)
		}
	}
	// Many cells are read with the whole register.
	for _, tt := range []struct{ from, to, most int }{{1, 65, 1}, {1, 66, 100}, {0, 100, 100}} {
		sw.most = 0
		got, err := c.Read(ctx, "r", tt.from, tt.to, nil)
		if err != nil || len(got) != tt.to-tt.from || got[10-tt.from] != 7 || got[9-tt.from] != 0 || sw.most != tt.most {
			t.Errorf("cells %d to %d: %d cells, %v, %d at once, want %d", tt.from, tt.to, len(got), err, sw.most, tt.most)
		}
	}
	if _, err := c.Read(ctx, "r", 0, 101, nil); err == nil || err.Error() != "cells 0 to 100 of r, which has 100" {
		t.Errorf("beyond the register: %v", err)
	}
	if now, err := c.Clock(ctx); err != nil || now != 5*time.Second {
		t.Errorf("clock %v, %v", now, err)
	}

	// A switch that has restarted is found again; a stopped one is not.
	stop()
	_, stop = serveThrift(t, sw, address)
	if got, err := c.Read(ctx, "r", 12, 13, nil); err != nil || fmt.Sprint(got) != "[7]" {
		t.Errorf("after the server has come back: %v, %v", got, err)
	}
	stop()
	if _, err := c.Clock(ctx); !errors.Is(err, target.ErrUnreachable) {
		t.Errorf("after the server has gone: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Clock(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// TestThriftQueues: the lengths and rates of queues are known as long as the switch is the
// same.
func TestThriftQueues(t *testing.T) {
	ctx := t.Context()
	sw := &thriftSwitch{}
	address, stop := serveThrift(t, sw, "127.0.0.1:0")
	defer stop()
	c := target.NewThrift(address)
	defer c.Close()
	known := func(port int) string {
		q, ok, err := c.Queue(ctx, port)
		return fmt.Sprint(q.Rate, q.Depth, ok, err)
	}
	if got := known(3); got != "0 0 false <nil>" {
		t.Errorf("before anything was set: %s", got)
	}
	for _, q := range []plan.Queue{{Port: 5, Rate: 100, Depth: 20}, {Port: 3, Rate: 200, Depth: 10}} {
		if err := c.SetQueue(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(sw.queues), "[5,-1: depth 20 5,-1: rate 100 3,-1: depth 10 3,-1: rate 200]"; got != want {
		t.Errorf("set %s, want %s", got, want)
	}
	list := c.KnownQueues()
	if len(list) != 2 || list[0].Port != 3 || list[1].Port != 5 || known(3) != "200 10 true <nil>" {
		t.Errorf("known are %v", list)
	}
	c.Forget()
	if got := known(3); got != "0 0 false <nil>" {
		t.Errorf("of another switch: %s", got)
	}
	c.Assume(list)
	if got := known(5); got != "100 20 true <nil>" {
		t.Errorf("taken over: %s", got)
	}
}
