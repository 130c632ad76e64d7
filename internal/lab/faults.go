package lab

import (
	"context"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// planFaults lets the faults of the case happen when they are due.
func (r *running) planFaults(ctx context.Context) error {
	var down []int // at the moment
	faults := r.Case.Strikes()
	for i := range faults {
		f := &faults[i]
		links, err := f.Links(r.setup.named)
		if err != nil {
			return err
		}
		strike := func(on bool) {
			if err := r.strike(f, links, on); err != nil {
				r.fail(err)
				return
			}
			if !f.Down {
				return
			}
			down = spec.Toggled(down, links, on)
			now := slices.Clone(down)
			r.net.At(r.net.Now()+time.Duration(r.x.Latency), func() {
				plan, err := r.plan(r.topo.Fail(now...))
				if err == nil {
					err = r.deploy.change(ctx, plan)
				}
				if err != nil && ctx.Err() == nil {
					r.fail(err)
				}
			})
		}
		r.net.At(time.Duration(f.At), func() { strike(true) })
		if f.Until > 0 {
			r.net.At(time.Duration(f.Until), func() { strike(false) })
		}
	}
	return nil
}

// strike begins a fault, or ends it.
func (r *running) strike(f *spec.Fault, links []int, on bool) error {
	switch {
	case f.Down:
		for _, l := range links {
			if on {
				r.net.Links()[l].Fail()
			} else {
				r.net.Links()[l].Restore()
			}
		}
		return nil
	case f.Errors > 0:
		for _, l := range links {
			share := f.Errors
			if !on {
				share = 0
			}
			if err := r.net.Links()[l].SetBitErrors(share); err != nil {
				return err
			}
		}
		return nil
	case f.Rate > 0:
		return r.setRates(links, f.Rate, on)
	case f.Drop > 0:
		share := f.Drop
		if !on {
			share = 0
		}
		return r.net.Switch(f.Switch).DropSilently(share)
	default:
		return r.blackHole(r.net.Switch(f.Switch), f.Hole, on)
	}
}

// setRates makes links as fast as a fault says, or as the topology has them.
func (r *running) setRates(links []int, rate spec.Bitrate, on bool) error {
	for _, l := range links {
		now := fabric.Rate(rate)
		if !on {
			now = r.topo.Links[l].Rate
		}
		if err := r.net.Links()[l].SetRate(now); err != nil {
			return err
		}
	}
	return nil
}

// blackHole makes a switch lose all packets of a share of the pairs of hosts.
func (r *running) blackHole(sw *sim.Switch, share float64, on bool) error {
	rng := spec.NewRandom(r.Seed, 0x686f6c65)
	for _, a := range r.topo.Hosts {
		for _, b := range r.topo.Hosts {
			if a.Name == b.Name || a.Switch == b.Switch || rng.Float64() >= share {
				continue
			}
			if err := sw.BlackHole(a.Name, b.Name, on); err != nil {
				return err
			}
		}
	}
	return nil
}
