// Package inspect reads the state of switches and decodes it with their manifests. It
// needs no plan.
//
// An Inspector reads and decodes the registers of one switch, a Survey the registers of many
// switches. A Recorder stores readings, a Recording reads them back. An Observer
// samples ports for a fit.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Reading is one decoded value of a switch: a cell of a register, or a quantity
// computed from several cells.
type Reading struct {
	Register string `json:"register,omitempty"` // "" for a quantity that is computed
	Quantity string `json:"quantity"`           // a word such as occupancy, or the register's name
	Cell     int    `json:"cell"`               // the register's cell
	Index    string `json:"index,omitempty"`    // the position, such as port 3, or leaf 2 path 1
	Port     int    `json:"port,omitempty"`     // 0 where it is about none
	Peer     string `json:"peer,omitempty"`     // the node behind the port
	Group    int    `json:"group,omitempty"`    // of next hops; 0 where it is about none
	Path     int    `json:"path,omitempty"`     // of the group, counted from 1; 0 where it is about none

	Raw   uint64  `json:"raw"`            // the cell as it is; 0 for a computed quantity
	Value float64 `json:"value"`          // in Unit
	Unit  string  `json:"unit,omitempty"` // "" for a plain number
	Text  string  `json:"text"`           // the value as a person reads it

	Change float64 `json:"change"` // since the snapshot before
	Rate   float64 `json:"rate"`   // change per second of the switch's clock

	Meaning string `json:"meaning,omitempty"`

	// Minor readings are internal to the program: times, and values that egress
	// has measured but not yet reported to ingress.
	Minor bool `json:"minor,omitempty"`
}

// A Snapshot is the decoded state of a switch at one moment.
type Snapshot struct {
	Time     time.Duration `json:"time_ns"` // the reader's clock, since the first round of a Survey
	Switch   string        `json:"switch"`
	Role     string        `json:"role"`
	Scheme   string        `json:"scheme"`
	Clock    time.Duration `json:"clock_ns"`          // of the switch itself
	Guessed  bool          `json:"guessed,omitempty"` // the switch does not tell its clock: it is the latest time in its registers
	Wall     time.Time     `json:"wall,omitzero"`     // on this machine; zero where time is simulated
	Readings []Reading     `json:"readings"`
	Flows    []FlowTable   `json:"flows,omitempty"`
}

// Options select the registers to read. The zero value reads all.
type Options struct {
	// Registers are the names of the registers to read; empty means all.
	Registers []string
	// NoFlows leaves out the tables of flows, which are nearly all of the cells.
	NoFlows bool
	// FlowsEvery is the interval between reads of flow tables. Snapshots in
	// between repeat the last readings. 0 reads them every time.
	FlowsEvery time.Duration
	// Everything also reads registers that the manifest does not describe and that
	// Registers does not name, such as per-flow state.
	Everything bool
}

// An Inspector reads the registers of one switch again and again. It must not
// be used from two goroutines at once.
type Inspector struct {
	node *plan.Node
	regs registers.Access
	opts Options

	meter registers.Meter   // nil if the switch does not count packets at its ports
	ports []bmv2.PortCounts // of this snapshot

	arrays []*registers.Array
	byName map[string]*registers.Array

	fetched map[string][]uint64 // registers that arrays are parts of
	fresh   map[string]bool     // the registers read for this snapshot

	before time.Duration // clock of the snapshot before, 0 for none
	flows  []FlowTable   // that were made last
	swept  time.Time     // when
	last   map[readingKey]float64
	next   map[readingKey]float64
}

// New makes an inspector of a switch. A register that the program does
// not have is an error.
func New(n *plan.Node, regs registers.Access, o Options) (*Inspector, error) {
	in := &Inspector{
		node: n, regs: regs, opts: o, byName: map[string]*registers.Array{},
		last: map[readingKey]float64{}, next: map[readingKey]float64{},
		fetched: map[string][]uint64{}, fresh: map[string]bool{},
	}
	in.meter, _ = regs.(registers.Meter)
	if err := checkNamed(n, o.Registers); err != nil {
		return nil, err
	}
	for _, a := range registers.Of(n.Manifest, o.Registers) {
		in.byName[a.Name] = a
		if in.wants(a) {
			in.arrays = append(in.arrays, a)
		}
	}
	return in, nil
}

// checkNamed finds names of registers that the program does not have.
func checkNamed(n *plan.Node, names []string) error {
	for _, name := range names {
		if n.Manifest.Register(name) == nil {
			have := lists.Map(n.Manifest.Registers, func(r manifest.Register) string { return r.Name })
			hint := n.Manifest.Scheme + " has " + strings.Join(have, ", ")
			if len(have) == 0 {
				hint = n.Manifest.Scheme + " keeps nothing in registers"
			}
			return &plan.Error{Switch: n.Name, Err: fmt.Errorf("there is no register %q", name), Hint: hint}
		}
	}
	return nil
}

// wants reports whether an array is read each time.
func (in *Inspector) wants(a *registers.Array) bool {
	switch {
	case len(in.opts.Registers) > 0 || !perFlow(a.Index) || in.opts.Everything || small(a):
		return true
	}
	return !in.opts.NoFlows && (a.Valid > 0 || a.Moment())
}

// fewCells is the largest register without a described index that is read in every
// snapshot.
const fewCells = 256

// small reports whether an array has as few cells as that.
func small(a *registers.Array) bool { return a.Index == "" && a.Size <= fewCells }

// perFlow reports whether a hash selects the cells, or the index is unknown. Such
// registers may be large and mostly empty.
func perFlow(by manifest.Index) bool { return by == manifest.ByFlow || by == "" }

// Node is the switch that is looked into.
func (in *Inspector) Node() *plan.Node { return in.node }

// Snapshot reads and decodes the registers. Each register is read atomically if the
// switch supports it; different registers are read shortly after each other.
func (in *Inspector) Snapshot(ctx context.Context) (*Snapshot, error) {
	sweep := in.opts.FlowsEvery == 0 || time.Since(in.swept) >= in.opts.FlowsEvery
	if sweep {
		in.swept = time.Now()
	}
	clear(in.fresh)
	for _, a := range in.arrays {
		if perFlow(a.Index) && !sweep {
			continue
		}
		if err := in.fetch(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := in.count(ctx); err != nil {
		return nil, err
	}
	s := &Snapshot{Switch: in.node.Name, Role: in.node.Manifest.Role, Scheme: in.node.Manifest.Scheme}
	clock, err := in.regs.Clock(ctx)
	switch {
	case err == nil:
		s.Clock = clock
	case errors.Is(err, registers.ErrNoClock):
		in.assemble(registers.Middle)
		s.Clock, s.Guessed = in.latest(), true
	default:
		return nil, in.explain("the clock", err)
	}
	in.assemble(s.Clock)
	r := &reader{in: in, s: s, ports: in.portsInUse(), groups: in.groupsInUse()}
	if len(in.opts.Registers) == 0 {
		r.counts()
	}
	for _, a := range in.arrays {
		r.read(a)
	}
	if len(in.opts.Registers) == 0 {
		// Quantities that are computed from several cells.
		r.utilisation()
		r.warnings()
		r.weights()
		r.rounds()
		if sweep {
			in.flows = r.flowTables()
		}
		s.Flows = in.flows
		for _, t := range s.Flows {
			r.fullness(t)
		}
	}
	in.before = s.Clock
	in.last, in.next = in.next, in.last
	clear(in.next)
	return s, nil
}

// explain adds the name of the register to an error. For a register that the switch
// does not have, it adds the hint that the switch runs another program.
func (in *Inspector) explain(what string, err error) error {
	return &plan.Error{
		Switch: in.node.Name, Err: fmt.Errorf("reading %s: %w", what, err),
		Hint: "does the switch run " + in.node.Manifest.Scheme + "? p4lb deploy --diff compares",
	}
}

// used is how many cells of a register can hold something here.
func (in *Inspector) used(by manifest.Index, size int) int {
	n := size
	switch {
	case by == manifest.ByPort && len(in.node.Ports) > 0:
		n = plan.PortCells(in.node)
	case by == manifest.ByGroup && len(in.node.Groups) > 0:
		n = in.lastGroup() + 1
	case by == manifest.ByPath && len(in.node.Groups) > 0:
		n = (in.lastGroup() + 1) * manifest.MaxPaths
	}
	return min(n, size)
}

func (in *Inspector) lastGroup() int { return in.node.Groups[len(in.node.Groups)-1].ID }

// latest returns the latest time in any register of times.
func (in *Inspector) latest() (clock time.Duration) {
	for _, a := range in.arrays {
		if !a.Moment() || a.Ahead() {
			continue
		}
		for _, v := range a.Cells {
			clock = max(clock, registers.Micros(v))
		}
	}
	return clock
}

// portsInUse are the ports of the switch, or where these are not known those
// that a register has something about, or that the switch counts.
func (in *Inspector) portsInUse() []fabric.Port {
	if len(in.node.Ports) > 0 {
		return in.node.Ports
	}
	numbers := in.occupied(manifest.ByPort, 0)
	for _, c := range in.ports {
		numbers = append(numbers, c.Port)
	}
	slices.Sort(numbers)
	return lists.Map(slices.Compact(numbers), func(i int) fabric.Port { return fabric.Port{Number: i} })
}

// groupsInUse are the groups that the node forwards to. Without a topology nothing
// is known of their next hops but how many a program can have.
func (in *Inspector) groupsInUse() []fabric.Group {
	if len(in.node.Groups) > 0 {
		return in.node.Groups
	}
	ids := append(in.occupied(manifest.ByGroup, 0), in.occupied(manifest.ByPath, 4)...)
	slices.Sort(ids)
	return lists.Map(slices.Compact(ids), func(id int) fabric.Group {
		return fabric.Group{ID: id, Hops: make([]fabric.Hop, in.node.Manifest.Paths)}
	})
}

// occupied lists the indexes, without their low bits, under which registers of a
// kind hold something; one may be there more than once.
func (in *Inspector) occupied(by manifest.Index, shift int) []int {
	var list []int
	for _, a := range in.arrays {
		if a.Index != by {
			continue
		}
		for i, v := range a.Cells {
			if v != 0 {
				list = append(list, i>>shift)
			}
		}
	}
	return list
}

// assemble makes the numbers of arrays from the cells of their registers.
func (in *Inspector) assemble(clock time.Duration) {
	for _, a := range in.arrays {
		if !a.Plain() && in.fresh[a.Parts[0].Register.Name] {
			a.Cells, a.Raw = a.Cells[:0], a.Raw[:0]
			for i := range in.fetched[a.Parts[0].Register.Name] {
				for _, p := range a.Parts {
					number, raw := a.Number(in.fetched[p.Register.Name][i], p, clock)
					a.Cells, a.Raw = append(a.Cells, number), append(a.Raw, raw)
				}
				if len(a.Parts) > 1 {
					none := make([]uint64, manifest.MaxPaths-len(a.Parts))
					a.Cells, a.Raw = append(a.Cells, none...), append(a.Raw, none...)
				}
			}
		}
	}
}

// fetch reads the registers that an array is part of, each once.
func (in *Inspector) fetch(ctx context.Context, a *registers.Array) error {
	if a.Plain() {
		r := a.Parts[0].Register
		var err error
		if a.Cells, err = in.regs.Read(ctx, r.Name, 0, in.used(a.Index, a.Size), a.Cells[:0]); err != nil {
			return in.explain(r.Name, err)
		}
		a.Raw = a.Cells
		return nil
	}
	for _, p := range a.Parts {
		name := p.Register.Name
		if in.fresh[name] {
			continue
		}
		n := in.used(p.Register.Index, p.Register.Size)
		var err error
		if in.fetched[name], err = in.regs.Read(ctx, name, 0, n, in.fetched[name][:0]); err != nil {
			return in.explain(name, err)
		}
		in.fresh[name] = true
	}
	return nil
}
