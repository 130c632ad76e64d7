package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// planFaults plans the faults of the case.
func (r *running) planFaults(ctx context.Context) error {
	r.avoid(r.topo)
	var down spec.Outage
	rates := map[int]fabric.Rate{} // rates of links known to the controller
	faults := r.Case.Strikes()
	for i := range faults {
		f := &faults[i]
		links, err := f.Links(r.setup.named)
		if err != nil {
			return err
		}
		servers, err := f.Servers(r.setup.named)
		if err != nil {
			return err
		}
		strike := func(on bool) {
			if err := r.setFault(f, links, on); err != nil {
				r.fail(err)
				return
			}
			if r.Job.serve != nil && f.Server != "" {
				r.Job.serve.Log(atFault(r.net.Now(), f, servers, on))
			}
			switch {
			case f.Down:
				down.Toggle(spec.Turn{Links: links, Servers: servers, Fail: on})
			case f.Known:
				for _, l := range links {
					if delete(rates, l); on {
						rates[l] = fabric.Rate(f.Rate)
					}
				}
			default:
				return
			}
			now, slow := down.Clone(), maps.Clone(rates)
			r.net.At(r.net.Now()+time.Duration(r.x.Latency), func() {
				topo, err := withRates(r.topo, slow)
				if err == nil {
					topo = now.Apply(topo)
					r.avoid(topo)
					err = r.replan(ctx, topo)
				}
				if err != nil && ctx.Err() == nil {
					r.fail(err)
				}
			})
		}
		r.net.At(time.Duration(f.At), func() {
			if f.Server == "" {
				r.recovery.begin(r.net)
			}
			strike(true)
		})
		if f.Until > 0 {
			r.net.At(time.Duration(f.Until), func() { strike(false) })
		}
	}
	return nil
}

// atFault returns the line about a server that leaves its pools or returns, for controllers of the
// user.
func atFault(now time.Duration, f *spec.Fault, from []fabric.Member, on bool) string {
	services := lists.Map(from, func(m fabric.Member) string { return m.Service })
	does := "returns to"
	if on {
		does = "leaves"
	}
	return fmt.Sprintf("at %v server %s %s the pool of %s: your controllers change the tables", now, f.Server, does, strings.Join(services, " and of "))
}

// avoid makes hosts with several ports avoid planes in which no path leads to the destination's
// port, as far as the controller knows.
func (r *running) avoid(topo *fabric.Topology) {
	if topo.NICs() == len(topo.Hosts) {
		return
	}
	lost := map[string]bool{} // host ports whose link is down
	for _, l := range topo.Links {
		for _, e := range []fabric.End{l.A, l.B} {
			if l.Down && topo.Switch(e.Node) == nil {
				lost[e.Node] = true
			}
		}
	}
	cut := map[[2]string]bool{} // pairs of leaves without a path
	routes := topo.Routes()
	for _, a := range topo.Leaves() {
		for _, b := range topo.Leaves() {
			if _, ok := routes.Span(a.Name, b.Name); !ok {
				cut[[2]string{a.Name, b.Name}] = true
			}
		}
	}
	r.net.SetBlocked(func(from, to *sim.Host) bool {
		return lost[from.Name] || lost[to.Name] || cut[[2]string{from.Leaf().Name, to.Leaf().Name}]
	})
}

// replan deploys the plan for a changed topology.
func (r *running) replan(ctx context.Context, topo *fabric.Topology) error {
	plan, err := r.plan(topo)
	if err != nil {
		return err
	}
	return r.deploy.change(ctx, plan)
}

// withRates returns the topology with other rates of some links.
func withRates(topo *fabric.Topology, rates map[int]fabric.Rate) (*fabric.Topology, error) {
	if len(rates) == 0 {
		return topo, nil
	}
	links := slices.Clone(topo.Links)
	for l, rate := range rates {
		links[l].Rate = rate
	}
	return topo.WithLinks(links)
}

// A recovery measures the time from the start of a fault to the last packet lost to a fault,
// before the next fault starts.
type recovery struct {
	faults  int
	at      time.Duration // start of the latest fault
	longest time.Duration // longest recovery from earlier faults
}

// begin starts the measurement of a fault.
func (v *recovery) begin(net *sim.Network) {
	v.longest, v.at = v.now(net), net.Now()
	v.faults++
}

// now returns the longest recovery so far.
func (v *recovery) now(net *sim.Network) time.Duration {
	if v.faults == 0 {
		return 0
	}
	return max(v.longest, net.LastFaultLoss()-v.at)
}

// setFault starts or ends a fault.
func (r *running) setFault(f *spec.Fault, links []int, on bool) error {
	switch {
	case f.Down:
		for _, l := range links {
			if on {
				r.net.Links()[l].Fail()
			} else {
				r.net.Links()[l].Restore()
			}
		}
		if g, ok := r.deploy.(guided); ok {
			g.setLinks(links, !on)
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

// setRates sets the rates of links to a fault's rate, or back to the topology's.
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

// blackHole makes a switch drop all packets for a share of the pairs of hosts. A share of 1
// includes probes, because RLB's paper measures RTTs on data packets.
func (r *running) blackHole(sw *sim.Switch, share float64, on bool) error {
	if share == 1 {
		if err := sw.BlackHole("", "", on); err != nil {
			return err
		}
	}
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
