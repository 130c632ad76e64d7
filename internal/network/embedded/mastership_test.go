package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// running starts a deployment that keeps running.
func running(t *testing.T, p *plan.Plan, target target.Target, o controller.DeployOptions) *controller.Controller {
	t.Helper()
	c, err := controller.New(testContext(t), p, target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Deploy(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNotPrimary: a second controller is refused with a hint, whether its election id is
// equal, smaller, without the upper 64 bits, none, or larger.
func TestNotPrimary(t *testing.T) {
	p := planFor(t, "ecmp", preset(t, "qall"))
	to := newTarget(t, embedded.Options{Memory: true, Still: true})
	first := primary.ElectionID{High: 1, Low: 5}
	running(t, p, to, controller.DeployOptions{Election: first})
	for _, id := range []primary.ElectionID{first, {High: 1, Low: 4}, {Low: 6}, {}, {High: 2}} {
		_, err := controller.Deploy(testContext(t), p, to, controller.DeployOptions{Election: id})
		var e *plan.Error
		if !errors.Is(err, target.ErrNotPrimary) || !errors.As(err, &e) || !strings.Contains(e.Hint, "--takeover") {
			t.Errorf("election id %v: %v", id, err)
			continue
		}
		if !strings.Contains(err.Error(), "with election id 0x10000000000000005") {
			t.Errorf("election id %v: the error does not name the primary: %v", id, err)
		}
	}
	deploy(t, p, to, controller.DeployOptions{Election: primary.ElectionID{High: 2}, Takeover: true})
}

// TestTakeover: a takeover succeeds, and the previous primary no longer changes the
// switches.
func TestTakeover(t *testing.T) {
	p := planFor(t, "ecmp", preset(t, "qall"))
	other := planFor(t, "ecmp", preset(t, "qall").Fail(39))
	to := newTarget(t, embedded.Options{Memory: true, Still: true})
	c := running(t, p, to, controller.DeployOptions{})
	ctx, cancel := context.WithCancel(testContext(t))
	var kept sync.WaitGroup
	kept.Go(func() { c.Keep(ctx, nil) })
	r := deploy(t, other, to, controller.DeployOptions{Takeover: true})
	if r.Written() == 0 {
		t.Error("the plans are the same: the test is worth nothing")
	}
	if _, err := c.Deploy(testContext(t)); !errors.Is(err, target.ErrNotPrimary) {
		t.Errorf("the controller before: %v", err)
	}
	if err := c.PacketOut(testContext(t), "l1", []byte{1}); !errors.Is(err, target.ErrNotPrimary) {
		t.Errorf("a packet of the controller before: %v", err)
	}
	cancel()
	kept.Wait()
	settled(t, other, to)
}

// A told handler is a log handler that passes messages to the test.
type toldHandler struct{ messages chan string }

func (h toldHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h toldHandler) Handle(_ context.Context, r slog.Record) error {
	h.messages <- r.Message
	return nil
}

func (h toldHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h toldHandler) WithGroup(string) slog.Handler { return h }

// TestBackup: a backup waits until the primary disconnects, for any election ids, and
// reports it. Then it manages the switches and writes only differences.
func TestBackup(t *testing.T) {
	p := planFor(t, "ecmp", preset(t, "qall"))
	for name, id := range map[string]primary.ElectionID{"same id": {Low: 1}, "smaller id": {Low: 1}, "larger id": {Low: 50}, "largest id": {High: 7}} {
		t.Run(name, func(t *testing.T) {
			target := newTarget(t, embedded.Options{Memory: true, Still: true})
			first := primary.ElectionID{Low: 1}
			if name == "smaller id" {
				first.Low = 2
			}
			if name == "largest id" {
				first = primary.ElectionID{High: ^uint64(0), Low: ^uint64(0) - 1}
			}
			c := running(t, p, target, controller.DeployOptions{Election: first})
			log := toldHandler{make(chan string, 1000)}
			b, err := controller.New(testContext(t), p, target, controller.DeployOptions{Election: id, Backup: true, Log: slog.New(log)})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			ctx, cancel := context.WithCancel(testContext(t))
			told := make(chan report.Switch, len(p.Switches))
			var kept sync.WaitGroup
			kept.Go(func() { b.Keep(ctx, func(r report.Switch) { told <- r }) })
			for waiting := 0; waiting < len(p.Switches); {
				if <-log.messages == "another controller is primary: waiting until it disconnects" {
					waiting++
				}
			}
			if n := len(told); n != 0 {
				t.Errorf("the backup has looked at %d switches while there is a primary", n)
			}
			for _, s := range p.Switches {
				if err := c.PacketOut(testContext(t), s.Name, []byte{1}); err != nil {
					t.Errorf("%s: the primary is it no more: %v", s.Name, err)
				}
			}
			c.Close()
			for range p.Switches {
				if r := <-told; !r.Verified || r.Written != 0 {
					t.Errorf("%s: verified %v, %d written: %v", r.Name, r.Verified, r.Written, r.Err)
				}
			}
			cancel()
			kept.Wait()
		})
	}
}
