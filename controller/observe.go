package controller

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/p4lb/p4lb/fabric"
)

// An Observation is what QALL fits its congestion index to (Section III-B): the
// traffic of an egress port, and how its queue behaved meanwhile. The units are
// the paper's.
type Observation struct {
	ClockUS  int64   `parquet:"clock_us,delta"` // of the switch
	Switch   string  `parquet:"switch,dict"`
	Port     int64   `parquet:"port"`
	Traffic  float64 `parquet:"egress_traffic"`   // kbit/s
	Queue    float64 `parquet:"occupancy"`        // percent of the queue
	Interval float64 `parquet:"dequeue_interval"` // us
}

// observationColumns are the columns in the order of Observation. Those that a
// fit reads have the names that it looks for.
var observationColumns = []string{"clock_us", "switch", "port", "egress_traffic", "occupancy", "dequeue_interval"}

// A Meter counts what the ports of a switch have sent. The Registers of a
// target implement it where the target can.
type Meter interface {
	// Sent is the number of bytes that a port has sent, since any time. The
	// error wraps errors.ErrUnsupported where nobody counts them.
	Sent(ctx context.Context, port int) (uint64, error)
}

// SentCounter is the name of the counter by which Thrift servers that are not
// BMv2's tell what ports have sent. No program can have one of that name.
const SentCounter = "port sent"

// An Observer samples the egress ports of a switch that lead to other switches:
// QALL's observation step. It must not be used from two goroutines at once.
type Observer struct {
	node  *Node
	regs  Registers
	meter Meter // nil: the target counts nothing
	ports []fabric.Port
	load  string // the register of the bytes that fade, "" for none

	before time.Duration
	sent   []uint64 // of each port at the sample before
	seen   []uint64 // when each port had last been reported
	cells  map[string][]uint64
}

// observed are the registers of queue behaviour that an observation needs.
var observed = []string{"q_L", "q_T", "q_upd"}

// NewObserver makes an observer of a switch. The program must measure queue
// behaviour.
func NewObserver(n *Node, regs Registers) (*Observer, error) {
	if n.Manifest.Hardware != nil {
		return nil, &Error{Switch: n.Name,
			Err:  errors.New("programs for Tofino keep the dequeue interval of no packet"),
			Hint: "observe with the same scheme for v1model",
		}
	}
	if !n.has(observed...) {
		return nil, &Error{Switch: n.Name,
			Err:  fmt.Errorf("%s does not measure occupancy and dequeue intervals: it has no registers %s", n.Manifest.Scheme, strings.Join(observed, ", ")),
			Hint: "deploy a scheme that does, such as qall-pkt",
		}
	}
	o := &Observer{node: n, regs: regs, cells: map[string][]uint64{}}
	for _, p := range n.Ports {
		if p.PeerTier > 0 && !p.Down {
			o.ports = append(o.ports, p)
		}
	}
	o.meter, _ = regs.(Meter)
	for _, name := range []string{"dre", "u"} {
		if n.has(name, name+"_ts") {
			o.load = name
		}
	}
	o.sent, o.seen = make([]uint64, len(o.ports)), make([]uint64, len(o.ports))
	return o, nil
}

// Sample appends an observation for each port that has been reported since the
// last time; the first time there is none, as traffic is what has been sent
// between two samples.
func (o *Observer) Sample(ctx context.Context, list []Observation) ([]Observation, error) {
	for _, name := range observed {
		var err error
		if o.cells[name], err = o.regs.Read(ctx, name, 0, portCells(o.node), o.cells[name][:0]); err != nil {
			return list, fmt.Errorf("%s: reading %s: %w", o.node.Name, name, err)
		}
	}
	clock, err := o.regs.Clock(ctx)
	if err != nil {
		return list, fmt.Errorf("%s: reading the clock: %w", o.node.Name, err)
	}
	span := (clock - o.before).Seconds()
	first := o.before == 0
	o.before = clock
	for i, p := range o.ports {
		traffic, err := o.traffic(ctx, i, clock, span)
		if err != nil {
			return list, fmt.Errorf("counting what port %d has sent: %w", p.Number, err)
		}
		updated := o.cells["q_upd"][p.Number]
		fresh := updated != o.seen[i]
		o.seen[i] = updated
		if first || !fresh || span <= 0 {
			continue
		}
		list = append(list, Observation{
			ClockUS: clock.Microseconds(), Switch: o.node.Name, Port: int64(p.Number), Traffic: traffic / 1e3,
			Queue:    100 * float64(o.cells["q_L"][p.Number]) / 255,
			Interval: float64(o.cells["q_T"][p.Number]),
		})
	}
	return list, nil
}

// traffic is what a port has sent since the last sample, in bit/s: as the
// target counts it, or else the program.
func (o *Observer) traffic(ctx context.Context, i int, clock time.Duration, span float64) (float64, error) {
	port := o.ports[i].Number
	if o.meter != nil {
		sent, err := o.meter.Sent(ctx, port)
		if !errors.Is(err, errors.ErrUnsupported) {
			rate := float64(sent-o.sent[i]) * 8 / max(span, 1e-9)
			o.sent[i] = sent
			return rate, err
		}
		o.meter = nil
	}
	if o.load == "" {
		return 0, &Error{Switch: o.node.Name, Err: errors.New("neither the target nor the program counts what ports send"),
			Hint: "the embedded target does, and bmv2 where its switches run on this machine"}
	}
	return o.faded(ctx, port, clock)
}

// faded is the traffic by the bytes that the program lets fade.
func (o *Observer) faded(ctx context.Context, port int, clock time.Duration) (float64, error) {
	bytes, err := o.regs.Read(ctx, o.load, port, port+1, nil)
	if err != nil {
		return 0, err
	}
	at, err := o.regs.Read(ctx, o.load+"_ts", port, port+1, nil)
	if err != nil {
		return 0, err
	}
	k := int(o.node.parameter("window"))
	return faded(bytes[0], at[0], clock, k) * 8 / micros(1<<k).Seconds(), nil
}

// An ObservationWriter writes a dataset that p4lb fit reads.
type ObservationWriter struct {
	csv     *csv.Writer
	parquet *parquet.GenericWriter[Observation]
}

// NewObservationWriter makes a writer of one of RecordFormats.
func NewObservationWriter(w io.Writer, format string) (*ObservationWriter, error) {
	switch format {
	case "csv":
		o := &ObservationWriter{csv: csv.NewWriter(w)}
		return o, o.csv.Write(observationColumns)
	case "parquet":
		return &ObservationWriter{parquet: parquet.NewGenericWriter[Observation](w, parquet.Compression(&parquet.Zstd))}, nil
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

// Close writes what is left. It does not close what is written to.
func (o *ObservationWriter) Close() error {
	if o.parquet != nil {
		return o.parquet.Close()
	}
	o.csv.Flush()
	return o.csv.Error()
}
