package inspect

import (
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// News locates the times of a program's path information. The age of this information is the
// delay of the program's decisions.
type News struct {
	// ByPort: there is a time for each port, by its number. Otherwise there is one for each path,
	// destination or flow.
	ByPort bool

	array *registers.Array
	limit time.Duration // flows with older times have ended
	cells []uint64
}

// NewsOf returns the News of a program, or nil if the program stores no such times.
func NewsOf(n *plan.Node) *News {
	a := newsOf(registers.Of(n.Manifest, nil), n.Manifest.Decides)
	if a == nil {
		return nil
	}
	news := &News{ByPort: a.Index == manifest.ByPort, array: a}
	if a.Index == manifest.ByFlow {
		news.limit = 2 * time.Duration(n.Manifest.FlowTimeout)
	}
	return news
}

// newsOf returns an array of times. It tries three kinds in turn: when the deciding
// value was received, or reported if it is by port; when any value was received or
// reported; and when the epoch that decides began.
func newsOf(list []*registers.Array, decides string) *registers.Array {
	last := func(ok func(a *registers.Array) bool) *registers.Array {
		for _, a := range slices.Backward(list) {
			if a.Kind == manifest.Moment && ok(a) {
				return a
			}
		}
		return nil
	}
	event := func(e manifest.Event) *registers.Array {
		return last(func(a *registers.Array) bool { return a.Event == e })
	}
	reported := event(manifest.Reported)
	about := func(e manifest.Event) *registers.Array {
		return last(func(a *registers.Array) bool { return decides != "" && a.Of == decides && a.Event == e })
	}
	if a := about(manifest.Heard); a != nil {
		return a
	}
	byPort := slices.ContainsFunc(list, func(a *registers.Array) bool { return a.Name == decides && a.Index == manifest.ByPort })
	if byPort && reported != nil {
		return reported
	}
	if a := event(manifest.Heard); a != nil {
		return a
	}
	if reported != nil {
		return reported
	}
	return about(manifest.Began)
}

// Ages calls see with the age of the information about each port, path, destination or flow, by
// the clock of the switch. read appends the cells of a register.
func (n *News) Ages(read func(register string, dst []uint64) ([]uint64, error), clock time.Duration, see func(i int, age time.Duration)) error {
	now := clock.Truncate(time.Microsecond)
	for _, p := range n.array.Parts {
		var err error
		if n.cells, err = read(p.Register.Name, n.cells[:0]); err != nil {
			return err
		}
		for i, cell := range n.cells {
			if cell == 0 { // Most cells of an array indexed by flow are 0.
				continue
			}
			at, raw := n.array.Number(cell, p, clock)
			age := now - registers.Micros(at)
			if raw != 0 && age >= 0 && (n.limit == 0 || age <= n.limit) {
				see(i, age)
			}
		}
	}
	return nil
}
