package tofino_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// An otherClient reaches the same switches with another client number.
type otherClient struct {
	*embedded.Target
	speaker *tofino.Speaker
}

func otherThan(t *embedded.Target) *otherClient { return &otherClient{t, tofino.NewSpeaker()} }

func (o *otherClient) Start(_ context.Context, p *plan.Plan) error { return o.speaker.Plan(p) }

func (o *otherClient) Endpoint(name string) (target.Endpoint, error) {
	e, err := o.Target.Endpoint(name)
	e.Speak = o.speaker.To(name, e.Device)
	return e, err
}

// A messages handler passes on the messages of a log.
type messages chan string

func (messages) Enabled(context.Context, slog.Level) bool { return true }

func (m messages) Handle(_ context.Context, r slog.Record) error {
	m <- r.Message
	return nil
}

func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }

func (m messages) WithGroup(string) slog.Handler { return m }

// await waits for n messages that begin with text.
func (m messages) await(t *testing.T, text string, n int) {
	t.Helper()
	for n > 0 {
		select {
		case got := <-m:
			if strings.HasPrefix(got, text) {
				n--
			}
		case <-t.Context().Done():
			t.Fatalf("%d more messages %q", n, text)
		}
	}
}

// deployedTo is a controller that stays.
func deployedTo(t *testing.T, p *plan.Plan, to controller.Target, o controller.DeployOptions) *controller.Controller {
	t.Helper()
	c, err := controller.New(t.Context(), p, to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// A program has one client. Another client is refused, or waits until the first one
// disconnects.
func TestBound(t *testing.T) {
	to := embedded.New(embedded.Options{Memory: true, Still: true, BfRt: true})
	defer to.Close()
	p := chipPlan(t, "ecmp@tna")
	first := deployedTo(t, p, to, controller.DeployOptions{})
	other := otherThan(to)
	_, err := controller.Deploy(t.Context(), p, other, controller.DeployOptions{})
	if !errors.Is(err, target.ErrNotPrimary) || strings.Contains(err.Error(), "election") {
		t.Errorf("the second controller: %v", err)
	}
	log, done := make(messages, 1000), make(chan error, 1)
	go func() {
		_, err := controller.Deploy(t.Context(), p, other, controller.DeployOptions{Backup: true, Log: slog.New(log)})
		done <- err
	}()
	log.await(t, "another controller is primary: waiting", len(p.Switches))
	first.Close()
	if err := <-done; err != nil {
		t.Errorf("after the end of the first controller: %v", err)
	}
}

// A takeover reloads the program, which ends the other client. A switch that belongs to
// another client does not get another program; a switch without a client does.
func TestTakeover(t *testing.T) {
	to := embedded.New(embedded.Options{Memory: true, Still: true, BfRt: true})
	defer to.Close()
	p, letflow := chipPlan(t, "ecmp@tna"), chipPlan(t, "letflow@tna")
	log := make(messages, 1000)
	deployedTo(t, p, to, controller.DeployOptions{Log: slog.New(log)})
	_, err := controller.Deploy(t.Context(), letflow, otherThan(to), controller.DeployOptions{})
	if !errors.Is(err, target.ErrNotPrimary) {
		t.Errorf("another program while the first client is bound: %v", err)
	}
	second := deployedTo(t, p, otherThan(to), controller.DeployOptions{Takeover: true})
	if r, err := second.Deploy(t.Context()); err != nil || !r.Verified() || r.Written() > 0 {
		t.Errorf("again: %v, %d changes", err, r.Written())
	}
	log.await(t, "another controller has taken over", len(p.Switches))
	_, err = controller.Deploy(t.Context(), p, otherThan(to), controller.DeployOptions{})
	if !errors.Is(err, target.ErrNotPrimary) {
		t.Errorf("a third controller: %v", err)
	}
	third := deployedTo(t, p, otherThan(to), controller.DeployOptions{Takeover: true})
	second.Close()
	third.Close()
	if r, err := controller.Deploy(t.Context(), letflow, otherThan(to), controller.DeployOptions{Backup: true}); err != nil || !r.Verified() {
		t.Errorf("another program without a client: %v", err)
	}
}
