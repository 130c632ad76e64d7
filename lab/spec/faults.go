package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/fabric"
)

// Phases are a network as it is in the beginning, and after each link of the case's
// faults has failed or come back.
func (c *Case) Phases(t *fabric.Topology) ([]*fabric.Topology, error) {
	type change struct {
		at    Time
		links []int
		on    bool
	}
	var changes []change
	for i := range c.Faults {
		f := &c.Faults[i]
		if !f.Down {
			continue
		}
		links, err := f.Links(t)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{f.At, links, true})
		if f.Until > 0 {
			changes = append(changes, change{f.Until, links, false})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	list := []*fabric.Topology{t}
	var down []int
	for _, f := range changes {
		down = Toggled(down, f.links, f.on)
		list = append(list, t.Fail(down...))
	}
	return list, nil
}

// Toggled adds links to a list, or takes them out.
func Toggled(list, links []int, on bool) []int {
	list = slices.DeleteFunc(list, func(l int) bool { return slices.Contains(links, l) })
	if on {
		list = append(list, links...)
	}
	return list
}

// check says what is wrong with a fault.
func (f *Fault) check(t *fabric.Topology) error {
	what := 0
	for _, set := range []bool{f.Down, f.Drop != 0, f.Hole != 0, f.Rate != 0} {
		if set {
			what++
		}
	}
	switch {
	case what != 1:
		return errors.New("want one of down, drop, black-hole and rate")
	case f.Drop < 0 || f.Drop > 1 || f.Hole < 0 || f.Hole > 1:
		return errors.New("want a share from 0 to 1")
	case f.Until != 0 && f.Until <= f.At:
		return fmt.Errorf("until %v is not after at %v", f.Until, f.At)
	case (f.Link == "") == (f.Switch == ""):
		return errors.New("want either a link or a switch")
	case !f.Down && f.Rate == 0 && f.Switch == "":
		return errors.New("drop and black-hole are of a switch")
	}
	_, err := f.Links(t)
	return err
}

// Links are the places in Topology.Links that the fault is about.
func (f *Fault) Links(t *fabric.Topology) ([]int, error) {
	if f.Link != "" {
		return t.FindLinks(f.Link)
	}
	if t.Switch(f.Switch) == nil {
		return nil, fmt.Errorf("there is no switch %q", f.Switch)
	}
	var list []int
	for _, p := range t.Ports(f.Switch) {
		list = append(list, p.Link)
	}
	return list, nil
}
