package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/p4lb/p4lb/internal/controller/primary"
)

// DeployOptions are how a plan is carried out. The zero value works.
type DeployOptions struct {
	// Election is the election id to become primary with, at least. The zero value
	// stands for 1. By itself it takes no switch from another controller.
	Election ElectionID
	// Takeover: where another controller is primary, exceed its election id.
	Takeover bool
	// Backup: where another controller is primary, wait until it is gone, at
	// first and whenever one takes over. Without it, a controller that has been
	// displaced leaves the switch to the other one for good.
	Backup bool
	// DryRun only finds the differences. It writes nothing and does not become
	// primary.
	DryRun bool
	// Atomic restores all switches if one fails.
	Atomic bool
	// Links has the state that the links must have; nil stands for the topology of
	// the plan. A link can be down that the plan still uses.
	Links *Topology
	// Parallel is the number of switches at a time; 0 stands for 16.
	Parallel int
	// Timeout is how long one request may go without an answer, and how long to
	// try to connect to a switch; 0 stands for 10 s.
	Timeout time.Duration
	// Progress is notified of every step of every switch, one at a time.
	Progress func(Progress)
	// Log receives events; nil discards them.
	Log *slog.Logger
}

// complete fills in defaults.
func (o *DeployOptions) complete() error {
	o.Parallel, o.Timeout = cmp.Or(o.Parallel, defaultParallel), cmp.Or(o.Timeout, defaultTimeout)
	if o.Parallel < 0 || o.Timeout < 0 {
		return fmt.Errorf("parallel %d, timeout %v: want positive numbers", o.Parallel, o.Timeout)
	}
	if o.Takeover && o.Backup {
		return errors.New("takeover and backup exclude each other")
	}
	if o.Election.IsZero() {
		o.Election.Low = 1
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return nil
}

// primary is how to become primary.
func (o *DeployOptions) primary() primary.Options {
	return primary.Options{Election: o.Election, Takeover: o.Takeover, Backup: o.Backup, DryRun: o.DryRun, Timeout: o.Timeout, Log: o.Log}
}

// A Progress is a step of a deployment.
type Progress struct {
	Switch string
	Step   string // connect, read, push, write, verify, roll back, done, failed
	Done   int    // switches that are done or failed
	Of     int
}

// Deploy configures the switches of a target according to a plan and verifies the
// result. The failure of one switch does not stop the others; the error names the
// failed switches, and the report describes each switch. Deploy starts the target but
// does not close it.
func Deploy(ctx context.Context, p *Plan, t Target, o DeployOptions) (*Report, error) {
	c, err := New(ctx, p, t, o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Deploy(ctx)
}
