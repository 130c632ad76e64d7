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

// DeployOptions configure a deployment. The zero value works.
type DeployOptions struct {
	// Election is the smallest election id to use; zero: 1. This alone does not
	// displace another controller.
	Election ElectionID
	// Takeover: if another controller is primary, use a higher election id.
	Takeover bool
	// Backup: if another controller is primary, wait until it disconnects, both
	// at first and later. Without it, a controller that was displaced never tries
	// again.
	Backup bool
	// DryRun only finds the differences. It writes nothing and does not become
	// primary.
	DryRun bool
	// Atomic restores all switches if one fails.
	Atomic bool
	// Links is the wanted state of the links; nil: the topology of the plan. A link may be down
	// although the plan uses it.
	Links *Topology
	// Parallel is the number of switches at a time; 0: 16.
	Parallel int
	// Timeout limits the time for an answer to a request and for connecting to a switch; 0: 10 s.
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

// primary converts the options to the options of package primary.
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
