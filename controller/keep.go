package controller

import (
	"context"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
)

// Keep restores the plan of a switch whenever the switch has restarted or
// reconnected, until ctx is done. It calls changed for every switch that it has
// checked, one at a time; changed may be nil.
func (c *Controller) Keep(ctx context.Context, changed func(SwitchReport)) error {
	var telling sync.Mutex
	tell := func(r report.Switch) {
		telling.Lock()
		defer telling.Unlock()
		if changed != nil {
			changed(r)
		}
	}
	var all sync.WaitGroup
	for name, conn := range c.conns {
		all.Go(func() { c.keepOne(ctx, name, conn, tell) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// keepOne checks a switch whenever this controller has become primary again: the switch or the
// connection was interrupted, or another controller was active.
func (c *Controller) keepOne(ctx context.Context, name string, conn *primary.Conn, tell func(report.Switch)) {
	pause := primary.FirstPause
	for ctx.Err() == nil {
		changed, due := c.due(name, conn)
		if !due {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		r := report.Switch{Name: name}
		j := &job{c: c, opts: &c.opts, plan: c.Plan().Switch(name), conn: conn, report: &r, meter: &meter{opts: &c.opts, of: 1}}
		j.finish(j.deploy(ctx))
		if ctx.Err() != nil {
			return
		}
		tell(r)
		if r.Err == nil {
			pause = primary.FirstPause
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, primary.LastPause)
	}
}

// due reports whether a switch is connected but not yet checked since then. If not,
// changed is closed when this may change.
func (c *Controller) due(name string, conn *primary.Conn) (changed <-chan struct{}, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := conn.State()
	good, looked := c.good[name]
	return now.Changed, now.Primary && (!looked || good != now.Epoch)
}
