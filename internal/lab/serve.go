//go:build !js

package lab

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// check validates the options for an experiment and sets defaults.
func (o *Serve) check(jobs []*Job) error {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("serving %q: want an address with a port, such as 127.0.0.1:9558", o.Address)
	}
	at, err := netip.ParseAddr(host)
	if host == "localhost" {
		at, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
		o.Address = net.JoinHostPort(at.String(), port)
	}
	if err != nil || !at.IsLoopback() {
		return fmt.Errorf("serving %s: controllers need no password: want an address of this machine alone, such as 127.0.0.1:%s", o.Address, port)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("serving %s: port %q: want a number up to 65535", o.Address, port)
	} else if most := 65535 - 2*len(jobs[0].setup.topo.Switches); int(n) > most {
		return fmt.Errorf("serving %s: the %d switches have the ports after %d, for P4Runtime and for Thrift: want at most %d", o.Address, len(jobs[0].setup.topo.Switches), n, most)
	}
	switch {
	case o.Every <= 0:
		return fmt.Errorf("serving every %v: want a time above 0", o.Every)
	case o.Wait < 0:
		return fmt.Errorf("serving for %d controllers: want 1 or more, or 0 for real time", o.Wait)
	case !(o.Slow >= 0) || o.Timeout < 0:
		return fmt.Errorf("serving %g times slower than real time, with a timeout of %v: want numbers above 0", o.Slow, o.Timeout)
	}
	o.Slow = cmp.Or(o.Slow, 1)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.Start = cmp.Or(o.Start, time.Minute)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	o.Warnings = cmp.Or(o.Warnings, slog.New(slog.DiscardHandler))
	o.row = jobs[0].Scheme.Label
	for _, j := range jobs {
		if j.Scheme.Label != o.row {
			continue
		}
		switch {
		case j.Scheme.Engine == spec.EngineNative:
			return fmt.Errorf("%s: a controller drives programs: want engine p4, not %s", o.row, spec.EngineNative)
		case j.world != "":
			return fmt.Errorf("%s: serving is for virtual time: in world %s use p4lb deploy", o.row, j.world)
		}
		if o.BfRt {
			if err := o.checkBfRt(j); err != nil {
				return err
			}
		}
		j.serve, j.deploy = o, deployServed
	}
	return nil
}

// deployServed deploys the plan and opens the servers.
func deployServed(ctx context.Context, r *running) (_ deployment, err error) {
	o := r.Job.serve
	o.mu.Lock()
	d := &served{o: o, r: r, changed: make(chan struct{}), open: true, active: map[*servedCall]bool{}, callers: map[string]*caller{}, sessions: map[string]bool{}, nodes: map[string]*servedNode{}, programs: map[string]servedProgram{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if err := d.describe(); err != nil {
		return nil, err
	}
	page, err := d.bind()
	if err != nil {
		return nil, err
	}
	chance := r.newChance()
	d.target = embedded.New(embedded.Options{
		Memory: true, Still: true, BfRt: o.BfRt, Seed: r.Seed, Load: chance.load, Priorities: r.planned.Queues(), Log: o.Warnings,
		Simulator: func(name string) p4rt.Simulator {
			d.nodes[name] = &servedNode{served: d, plan: r.planned.Switch(name), sw: r.net.Switch(name), chance: chance}
			return d.nodes[name]
		},
	})
	ctl, err := controller.New(ctx, r.planned, d.target, controller.DeployOptions{})
	if err != nil {
		return nil, err
	}
	err = apply(ctx, ctl)
	ctl.Close()
	if err != nil {
		return nil, err
	}
	if err := d.vacate(ctx); err != nil {
		return nil, err
	}
	for _, s := range r.planned.Switches {
		dev := d.target.Device(s.Name)
		r.net.Switch(s.Name).OnPacketIn(func(_ int, frame []byte) { dev.PacketIn(frame) })
		for _, p := range r.net.Switch(s.Name).Ports() {
			dev.SetPortUp(uint32(p.Number), !p.Link().Down())
		}
	}
	d.mu.Lock()
	d.ready, d.open = true, false
	d.mu.Unlock()
	d.start(page)
	return d, nil
}

// vacate waits until p4lb's controller has disconnected from the switches. The
// user's first controller then becomes primary with any election id.
func (d *served) vacate(ctx context.Context) error {
	const most = 10 * time.Second
	since := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wait(ctx, 0, func(time.Duration) (bool, time.Duration, error) {
		if left := most - time.Since(since); left > 0 || len(d.sessions) == 0 {
			return len(d.sessions) == 0, left, nil
		}
		return false, 0, fmt.Errorf("the deployment's streams to %d switches have not ended within %v", len(d.sessions), most)
	})
}

// setLinks reports the state of links to the switches at both ends.
func (d *served) setLinks(links []int, up bool) {
	for _, l := range links {
		link := d.r.topo.Links[l]
		for _, p := range []struct {
			node string
			port int
		}{{link.A.Node, link.A.Port}, {link.B.Node, link.B.Port}} {
			if dev := d.target.Device(p.node); dev != nil {
				dev.SetPortUp(uint32(p.port), up)
			}
		}
	}
}

// change does nothing, because the user's controllers configure the switches.
func (d *served) change(context.Context, *plan.Plan) error { return nil }

// finish ends the last moment and adds the controllers' actions to the alerts.
func (d *served) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.notify()
	text := fmt.Sprintf("own controllers drove the switches: %d requests", d.calls)
	if d.refused > 0 {
		text += fmt.Sprintf(", %d rejected, first %s", d.refused, d.first)
	}
	d.r.alerts = append(d.r.alerts, text)
}

func (d *served) close() {
	d.mu.Lock()
	d.ended, d.open = true, false
	d.notify()
	d.mu.Unlock()
	if d.page != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if d.page.Shutdown(ctx) != nil {
			d.page.Close()
		}
		cancel()
	}
	for _, s := range d.thrift {
		s.Close()
	}
	if d.target != nil {
		d.target.Close()
	}
	for _, l := range d.listen {
		l.Close()
	}
	d.work.Wait()
	d.o.mu.Unlock()
}
