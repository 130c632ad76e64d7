package inspect

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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

// An Observation is a sample for fitting QALL's congestion index (Section III-B): the traffic of
// an egress port and the behaviour of its queue. The units are the paper's.
type Observation struct {
	ClockUS  int64   `parquet:"clock_us,delta"` // clock of the switch
	Switch   string  `parquet:"switch,dict"`
	Port     int64   `parquet:"port"`
	Traffic  float64 `parquet:"egress_traffic"`   // kbit/s
	Queue    float64 `parquet:"occupancy"`        // percent of the queue
	Interval float64 `parquet:"dequeue_interval"` // us
}

// observationColumns are the column names in the order of the fields of Observation.
// Package fitting expects these names.
var observationColumns = []string{"clock_us", "switch", "port", "egress_traffic", "occupancy", "dequeue_interval"}

// An Observer samples the egress ports of a switch that lead to other switches, as in QALL's
// observation step. It is not safe for concurrent use.
type Observer struct {
	node  *plan.Node
	regs  registers.Access
	meter registers.Meter // nil: the target has no port counters
	ports []fabric.Port

	occupancy, interval, heard *registers.Array
	load, updated              *registers.Array // decaying byte counts, and their times; nil: none

	before time.Duration
	counts []bmv2.PortCounts // counters of this sample
	sent   []uint64          // bytes sent by each port at the previous sample
	seen   []uint64          // time of each port's last report
	cells  map[*registers.Array][]uint64
}

// NewObserver returns an observer of a switch. The program must measure queue
// behaviour and store the values that egress reports to ingress.
func NewObserver(n *plan.Node, regs registers.Access) (*Observer, error) {
	if n.Manifest.Arch.Hardware() {
		return nil, &plan.Error{Switch: n.Name,
			Err:  errors.New("programs for Tofino do not store dequeue intervals"),
			Hint: "observe with the same scheme for v1model",
		}
	}
	list := registers.Of(n.Manifest, nil)
	byPort := func(kind manifest.Kind, event manifest.Event) *registers.Array {
		return lists.First(list, func(a *registers.Array) bool {
			return a.Index == manifest.ByPort && a.Kind == kind && a.Event == event && !a.Internal
		})
	}
	o := &Observer{
		node: n, regs: regs, cells: map[*registers.Array][]uint64{},
		occupancy: byPort(manifest.Occupancy, ""), interval: byPort(manifest.Interval, ""), heard: byPort(manifest.Moment, manifest.Heard),
	}
	if o.occupancy == nil || o.interval == nil || o.heard == nil {
		return nil, &plan.Error{Switch: n.Name,
			Err:  fmt.Errorf("%s does not measure occupancy and dequeue intervals: it has no registers by port of the kinds occupancy and interval, with the moment when they were heard of", n.Manifest.Scheme),
			Hint: "deploy a scheme that does, such as qall-pkt",
		}
	}
	for _, p := range n.Ports {
		if p.PeerTier > 0 && !p.Down {
			o.ports = append(o.ports, p)
		}
	}
	o.meter, _ = regs.(registers.Meter)
	if load := byPort(manifest.Rate, ""); load != nil {
		if o.updated = registers.MomentOf(list, load.Name, manifest.Updated); o.updated != nil {
			o.load = load
		}
	}
	o.sent, o.seen = make([]uint64, len(o.ports)), make([]uint64, len(o.ports))
	return o, nil
}

// Ready checks that all values of a sample are available, so that a missing one is
// reported before any output is written. For a switch without a topology it also finds
// the ports.
func (o *Observer) Ready(ctx context.Context) error {
	if err := o.count(ctx); err != nil {
		return err
	}
	if len(o.node.Ports) == 0 {
		node := *o.node
		for _, c := range o.counts {
			node.Ports = append(node.Ports, fabric.Port{Number: c.Port, Down: c.Down})
		}
		o.node, o.ports = &node, node.Ports
		o.sent, o.seen = make([]uint64, len(o.ports)), make([]uint64, len(o.ports))
	}
	if len(o.ports) == 0 {
		return &plan.Error{Switch: o.node.Name, Err: errors.New("there is no port to observe"),
			Hint: "of a topology, ports to other switches are observed; of a single switch, all that it counts"}
	}
	_, err := o.clock(ctx)
	return err
}

// count reads the bytes that each port sent. If the target has no such counters, it
// reads the program's.
func (o *Observer) count(ctx context.Context) (err error) {
	if o.meter != nil {
		if o.counts, err = o.meter.PortCounts(ctx); err == nil {
			return nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("%s: counting what ports have sent: %w", o.node.Name, err)
		}
		o.meter = nil
	}
	if o.load == nil {
		return &plan.Error{Switch: o.node.Name, Err: errors.New("neither the target nor the program counts what ports send"),
			Hint: "switches of p4lb tell it by Thrift (p4lb switch --thrift ADDR), and BMv2's interfaces do where its switches run on this machine"}
	}
	return nil
}

// clock returns the switch's clock, which samples require.
func (o *Observer) clock(ctx context.Context) (time.Duration, error) {
	clock, err := o.regs.Clock(ctx)
	switch {
	case errors.Is(err, registers.ErrNoClock):
		return 0, &plan.Error{Switch: o.node.Name, Err: errors.New("P4Runtime does not report the switch's clock, which rates need"),
			Hint: "observe by Thrift: p4lb switch --thrift ADDR, then p4lb observe --thrift ADDR --manifest FILE"}
	case err != nil:
		return 0, fmt.Errorf("%s: reading the clock: %w", o.node.Name, err)
	}
	return clock, nil
}

// Sample appends an observation for each port with a report since the previous sample.
// The first call appends none, because traffic is the difference between two samples.
func (o *Observer) Sample(ctx context.Context, list []Observation) ([]Observation, error) {
	for _, a := range []*registers.Array{o.occupancy, o.interval, o.heard} {
		if err := o.read(ctx, a); err != nil {
			return list, err
		}
	}
	if err := o.count(ctx); err != nil {
		return list, err
	}
	clock, err := o.clock(ctx)
	if err != nil {
		return list, err
	}
	span := (clock - o.before).Seconds()
	first := o.before == 0
	o.before = clock
	for i, p := range o.ports {
		traffic, err := o.traffic(ctx, i, clock, span)
		if err != nil {
			return list, fmt.Errorf("counting what port %d has sent: %w", p.Number, err)
		}
		updated := o.cells[o.heard][p.Number]
		fresh := updated != o.seen[i]
		o.seen[i] = updated
		if first || !fresh || span <= 0 {
			continue
		}
		list = append(list, Observation{
			ClockUS: clock.Microseconds(), Switch: o.node.Name, Port: int64(p.Number), Traffic: traffic / 1e3,
			Queue:    100 * float64(o.cells[o.occupancy][p.Number]) / float64(max(1, o.occupancy.Scale)),
			Interval: float64(o.cells[o.interval][p.Number]),
		})
	}
	return list, nil
}

// traffic returns the rate of a port since the previous sample in bit/s, from the
// target's counters or else from the program's.
func (o *Observer) traffic(ctx context.Context, i int, clock time.Duration, span float64) (float64, error) {
	port := o.ports[i].Number
	if o.meter == nil {
		// Use the program's decaying byte counts.
		for _, a := range []*registers.Array{o.load, o.updated} {
			if err := o.read(ctx, a); err != nil {
				return 0, err
			}
		}
		window := time.Duration(o.load.Window)
		return registers.Faded(o.cells[o.load][port], o.cells[o.updated][port], clock, window) * 8 / window.Seconds(), nil
	}
	at := slices.IndexFunc(o.counts, func(c bmv2.PortCounts) bool { return c.Port == port })
	if at < 0 {
		return 0, nil // the port has no link
	}
	sent := o.counts[at].OutBytes
	rate := float64(sent-min(sent, o.sent[i])) * 8 / max(span, 1e-9) // the counter is smaller after a restart of the switch
	o.sent[i] = sent
	return rate, nil
}

// read reads the cells of an array for all ports.
func (o *Observer) read(ctx context.Context, a *registers.Array) error {
	name := a.Parts[0].Register.Name
	cells, err := o.regs.Read(ctx, name, 0, plan.PortCells(o.node), o.cells[a][:0])
	if err != nil {
		return fmt.Errorf("%s: reading %s: %w", o.node.Name, name, err)
	}
	for i, cell := range cells {
		cells[i], _ = a.Number(cell, a.Parts[0], registers.Middle)
	}
	o.cells[a] = cells
	return nil
}

// An ObservationWriter writes a dataset that p4lb fit reads.
type ObservationWriter struct {
	csv     *csv.Writer
	parquet parquetWriter
}

// A parquetWriter writes a Parquet file of observations.
type parquetWriter interface {
	Write([]Observation) (int, error)
	Close() error
}

// NewObservationWriter returns a writer for one of RecordFormats.
func NewObservationWriter(w io.Writer, format string) (*ObservationWriter, error) {
	switch format {
	case "csv":
		o := &ObservationWriter{csv: csv.NewWriter(w)}
		return o, o.csv.Write(observationColumns)
	case "parquet":
		rows, err := newParquetWriter(w)
		return &ObservationWriter{parquet: rows}, err
	}
	return nil, fmt.Errorf("no dataset of form %q: want %s", format, strings.Join(RecordFormats, " or "))
}

// Write adds observations.
func (o *ObservationWriter) Write(list []Observation) error {
	if o.parquet != nil {
		_, err := o.parquet.Write(list)
		return err
	}
	for _, r := range list {
		if err := o.csv.Write([]string{whole(r.ClockUS), r.Switch, whole(r.Port), decimal(r.Traffic), decimal(r.Queue), decimal(r.Interval)}); err != nil {
			return err
		}
	}
	o.csv.Flush()
	return o.csv.Error()
}

// Close writes buffered observations. It does not close the underlying writer.
func (o *ObservationWriter) Close() error {
	if o.parquet != nil {
		return o.parquet.Close()
	}
	o.csv.Flush()
	return o.csv.Error()
}
