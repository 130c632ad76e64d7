// Package view prepares readings of a network for users: rounds of readings,
// the web page and the metrics.
package view

import (
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// A Round contains the state of all switches at one moment.
type Round struct {
	Scheme   string
	Fabric   string
	Time     time.Duration
	Wall     time.Time // zero in virtual time
	Switches []inspect.Result
	Roles    map[string]string

	// Contents reports whether the snapshots include tables and counters.
	Contents bool
}

// Idle reports whether all switches are idle.
func (r *Round) Idle() bool {
	return !slices.ContainsFunc(r.Switches, func(s inspect.Result) bool { return s.Snapshot == nil || !s.Snapshot.Idle() })
}

// Frame converts the round for package live. minor includes the internal state
// of programs.
func (r *Round) Frame(minor bool) *live.Frame {
	return r.frame(func(v *inspect.Reading) bool { return minor || !v.Minor })
}

// frame converts the round with the readings for which shown returns true.
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

// A switchView is the snapshot of a switch, or the error in its place, as JSON
// and YAML contain it.
type switchView struct {
	*inspect.Snapshot
	Failed string `json:"failed,omitempty"`
	Name   string `json:"name,omitempty"` // name of the failed switch
}

// Views returns the switches for JSON and YAML.
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

// ReachTimeout limits the wait for one switch.
const ReachTimeout = 5 * time.Second

// RoundOf combines snapshots of the same moment.
func RoundOf(list []*inspect.Snapshot, name string) *Round {
	r := &Round{Fabric: name, Roles: map[string]string{}}
	for _, s := range list {
		r.Scheme, r.Time = s.Scheme, s.Time
		r.Roles[s.Switch] = s.Role
		r.Switches = append(r.Switches, inspect.Result{Switch: s.Switch, Snapshot: s})
	}
	return r
}

// PageFrame converts the round for the page: without the internal state of
// programs, but with all counters of ports. It omits the separate drop reasons,
// as the text of the drops contains them.
func (r *Round) PageFrame() *live.Frame {
	return r.frame(func(v *inspect.Reading) bool {
		return !strings.HasPrefix(v.Quantity, inspect.Drops+": ") && (!v.Minor || v.Register == "")
	})
}
