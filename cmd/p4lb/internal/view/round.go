// Package view is what a person sees of a network: rounds of readings, and the
// page and the metrics that show them.
package view

import (
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// A Round is what all switches held at one moment.
type Round struct {
	Scheme   string
	Fabric   string
	Time     time.Duration
	Wall     time.Time // zero in virtual time
	Switches []inspect.Result
	Roles    map[string]string

	// Contents: tables and counters are there too.
	Contents bool
}

// Idle reports whether no switch has had anything to do.
func (r *Round) Idle() bool {
	return !slices.ContainsFunc(r.Switches, func(s inspect.Result) bool { return s.Snapshot == nil || !s.Snapshot.Idle() })
}

// Frame is the round as package live shows it, with what programs keep for
// themselves or without.
func (r *Round) Frame(minor bool) *live.Frame {
	return r.frame(func(v *inspect.Reading) bool { return minor || !v.Minor })
}

// frame is the round with the readings that are shown.
func (r *Round) frame(shown func(*inspect.Reading) bool) *live.Frame {
	f := &live.Frame{Scheme: r.Scheme, Fabric: r.Fabric, Time: r.Time, Wall: r.Wall}
	for _, result := range r.Switches {
		sw := live.Switch{Name: result.Switch, Role: r.Roles[result.Switch]}
		if result.Err != nil {
			sw.Err = result.Err.Error()
		} else {
			sw.Clock = result.Snapshot.Clock
			for i := range result.Snapshot.Readings {
				if v := &result.Snapshot.Readings[i]; shown(v) {
					sw.Values = append(sw.Values, valueOf(*v))
				}
			}
		}
		f.Switches = append(f.Switches, sw)
	}
	return f
}

func valueOf(r inspect.Reading) live.Value {
	name := r.Quantity
	if r.Register != "" {
		name = r.Register
	}
	return live.Value{
		Register: name, Index: r.Index, Port: r.Port, Peer: r.Peer, Group: r.Group, Path: r.Path,
		Number: r.Value, Unit: r.Unit, Text: r.Text, Change: r.Change, Rate: r.Rate, Meaning: r.Meaning,
	}
}

// A switchView is what is shown of a switch: a snapshot, or why there is none.
type switchView struct {
	*inspect.Snapshot
	Failed string `json:"failed,omitempty"`
	Name   string `json:"name,omitempty"` // of a switch that has failed
}

// Views lists the switches as JSON and YAML show them.
func (r *Round) Views() []switchView {
	var list []switchView
	for _, result := range r.Switches {
		v := switchView{Snapshot: result.Snapshot}
		if result.Err != nil {
			v.Failed, v.Name = result.Err.Error(), result.Switch
		}
		list = append(list, v)
	}
	return list
}

// How long one switch may take to answer.
const ReachTimeout = 5 * time.Second

// RoundOf puts snapshots of one moment together.
func RoundOf(list []*inspect.Snapshot, name string) *Round {
	r := &Round{Fabric: name, Roles: map[string]string{}}
	for _, s := range list {
		r.Scheme, r.Time = s.Scheme, s.Time
		r.Roles[s.Switch] = s.Role
		r.Switches = append(r.Switches, inspect.Result{Switch: s.Switch, Snapshot: s})
	}
	return r
}

// PageFrame is the round as the page has it: without what programs keep for
// themselves, but with all that ports count. Each reason for drops is in their
// text already.
func (r *Round) PageFrame() *live.Frame {
	return r.frame(func(v *inspect.Reading) bool {
		return !strings.HasPrefix(v.Quantity, inspect.Drops+": ") && (!v.Minor || v.Register == "")
	})
}
