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
	Register string `json:"register,omitempty"` // "" for a computed quantity
	Quantity string `json:"quantity"`           // a word such as occupancy, or the register's name
	Cell     int    `json:"cell"`               // index of the cell
	Index    string `json:"index,omitempty"`    // the position, such as port 3, or leaf 2 path 1
	Port     int    `json:"port,omitempty"`     // 0: not about a port
	Peer     string `json:"peer,omitempty"`     // name of the node at the other end of the port
	Group    int    `json:"group,omitempty"`    // id of the group of next hops; 0: not about a group
	Path     int    `json:"path,omitempty"`     // number of the path in the group, from 1; 0: not about a path

	Raw   uint64  `json:"raw"`            // content of the cell; 0 for a computed quantity
	Value float64 `json:"value"`          // in Unit
	Unit  string  `json:"unit,omitempty"` // "" for a plain number
	Text  string  `json:"text"`           // formatted value

	Change float64 `json:"change"` // change since the previous snapshot
	Rate   float64 `json:"rate"`   // change per second of the switch's clock

	Meaning string `json:"meaning,omitempty"`

	// Minor marks readings that are internal to the program: times, and values that egress has
	// measured but not yet reported to ingress.
	Minor bool `json:"minor,omitempty"`
}

// A Snapshot is the decoded state of a switch at one moment.
type Snapshot struct {
	Time     time.Duration `json:"time_ns"` // time by the reader's clock since the first round of a Survey
	Switch   string        `json:"switch"`
	Role     string        `json:"role"`
	Scheme   string        `json:"scheme"`
	Clock    time.Duration `json:"clock_ns"`          // clock of the switch
	Guessed  bool          `json:"guessed,omitempty"` // the switch does not report its clock: it is the latest time in its registers
	Wall     time.Time     `json:"wall,omitzero"`     // time by this machine's clock; zero in a simulation
	Readings []Reading     `json:"readings"`
	Flows    []FlowTable   `json:"flows,omitempty"`
}

// Options select the registers to read. The zero value reads all.
type Options struct {
	// Registers are the names of the registers to read; empty means all.
	Registers []string
	// NoFlows leaves out the flow tables, which contain almost all cells.
	NoFlows bool
	// FlowsEvery is the interval between reads of flow tables. Snapshots in
	// between repeat the last readings. 0 reads them every time.
	FlowsEvery time.Duration
	// Everything also reads registers that the manifest does not describe and that
	// Registers does not name, such as per-flow state.
	Everything bool
}

// An Inspector repeatedly reads the registers of one switch. It is not safe for concurrent use.
type Inspector struct {
	node *plan.Node
	regs registers.Access
	opts Options

	meter registers.Meter   // nil: the switch has no port counters
	ports []bmv2.PortCounts // counters of this snapshot

	arrays []*registers.Array
	byName map[string]*registers.Array

	fetched map[string][]uint64 // contents of the registers that arrays are part of
	fresh   map[string]bool     // registers read for this snapshot

	before time.Duration // clock of the previous snapshot; 0: none
	flows  []FlowTable   // latest summary of the flow tables
	swept  time.Time     // time of the latest summary
	last   map[readingKey]float64
	next   map[readingKey]float64
}

// New returns an inspector of a switch. It returns an error for registers that the program does
// not have.
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

// checkNamed returns an error for names of registers that the program does not have.
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

// fewCells is the largest size of a register without a described index that is read in every
// snapshot.
const fewCells = 256

// small reports whether an array has as few cells as that.
func small(a *registers.Array) bool { return a.Index == "" && a.Size <= fewCells }

// perFlow reports whether a hash selects the cells, or the index is unknown. Such
// registers may be large and mostly empty.
func perFlow(by manifest.Index) bool { return by == manifest.ByFlow || by == "" }

// Node returns the inspected switch.
func (in *Inspector) Node() *plan.Node { return in.node }

// Snapshot reads and decodes the registers. Each register is read atomically if the switch
// supports this. Different registers are read one after the other.
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

// explain adds the name of the register to an error. If the switch does not have the register, it
// adds the hint that the switch runs another program.
func (in *Inspector) explain(what string, err error) error {
	return &plan.Error{
		Switch: in.node.Name, Err: fmt.Errorf("reading %s: %w", what, err),
		Hint: "does the switch run " + in.node.Manifest.Scheme + "? p4lb deploy --diff compares",
	}
}

// used returns how many cells of a register can be in use in this network.
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

// portsInUse returns the ports of the switch. Without a topology, it returns the ports for which
// a register holds a value or the switch counts packets.
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

// groupsInUse returns the groups to which the node forwards. Without a topology, only the largest
// possible number of next hops is known.
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

// occupied returns the indices, without their low bits, for which registers of a kind hold a
// value. It may return duplicates.
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

// assemble decodes the numbers of arrays from the cells of their registers.
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

// fetch reads the registers of an array, each at most once.
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
