package lab

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// fullPacket is the packet length for converting bytes to packets.
const fullPacket = 1500

// simRegisters gives access to the registers of a simulated switch, with the interface of a real
// switch.
type simRegisters struct {
	sw    *sim.Switch
	cells scratch
}

// A scratch is a reused buffer for all cells of a register.
type scratch []uint64

// read appends some cells of a register to dst.
func (c *scratch) read(sw *sim.Switch, name string, from, to int, dst []uint64) ([]uint64, error) {
	cells, err := sw.ReadRegister(name, (*c)[:0])
	*c = cells
	if err != nil {
		return dst, err
	}
	if from < 0 || from > to || to > len(cells) {
		return dst, fmt.Errorf("register %s has %d cells, not %d to %d", name, len(cells), from, to)
	}
	return append(dst, cells[from:to]...), nil
}

var (
	_ registers.Access = (*simRegisters)(nil)
	_ registers.Meter  = (*simRegisters)(nil)
)

// Read appends cells to dst.
func (r *simRegisters) Read(_ context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	return r.cells.read(r.sw, name, from, to, dst)
}

// Write sets cells.
func (r *simRegisters) Write(_ context.Context, name string, from, to int, value uint64) error {
	return r.sw.WriteRegister(name, from, to, value)
}

// Clock returns the current time of the switch's timestamps.
func (r *simRegisters) Clock(context.Context) (time.Duration, error) { return r.sw.Clock(), nil }

// PortCounts returns the packets at each simulated port. The received packets of a
// port are the sent packets of the other end.
func (r *simRegisters) PortCounts(context.Context) ([]bmv2.PortCounts, error) {
	var list []bmv2.PortCounts
	for _, p := range r.sw.Ports() {
		sent := p.Counters()
		c := bmv2.PortCounts{
			Port: p.Number, Down: p.Link() != nil && p.Link().Down(), OutPackets: uint64(sent.Packets), OutBytes: uint64(sent.Bytes),
			Queued: uint64(p.QueuePackets()), Room: uint64(p.Limit() / fullPacket),
		}
		if far := p.Far(); far != nil {
			got := far.Counters()
			c.InPackets, c.InBytes = uint64(got.Packets), uint64(got.Bytes)
		}
		c.Drops[bmv2.DropQueue] = uint64(sent.Dropped)
		list = append(list, c)
	}
	return list, nil
}

// Record returns a Recorder that writes snapshots of all switches' registers, at intervals of
// virtual time, in one of controller.RecordFormats. p4lb inspect --replay shows them.
func Record(w io.Writer, format string, every time.Duration) Recorder {
	r := &recording{w: w, format: format}
	r.look = looking{every: every, each: r.keep}
	return r
}

type recording struct {
	w      io.Writer
	format string
	look   looking
	to     inspect.Recorder
}

// Begin plans the snapshots.
func (r *recording) Begin(v *View) (err error) {
	if r.to, err = inspect.NewRecorder(r.w, r.format); err != nil {
		return err
	}
	return r.look.Begin(v)
}

func (r *recording) keep(list []*inspect.Snapshot) error {
	for _, s := range list {
		if err := r.to.Record(s); err != nil {
			return err
		}
	}
	return nil
}

// End writes buffered rows.
func (r *recording) End() error {
	if err := r.look.End(); err != nil {
		return err
	}
	return r.to.Close()
}

// Watch returns a Recorder that passes snapshots of all switches to each, at intervals of virtual
// time. The run waits until each returns. If begin is not nil, it is called first. If every is 0,
// the interval is 10 ms; with collectives it is the sampling interval or a 200th of the time that
// has passed. Collectives are watched until the last flow has ended.
func Watch(every time.Duration, begin func(*View), each func([]*inspect.Snapshot) error) Recorder {
	return &looking{every: every, begin: begin, each: each}
}

type looking struct {
	every time.Duration
	begin func(*View)
	each  func([]*inspect.Snapshot) error

	view       *View
	inspectors []*inspect.Inspector
	failed     error
}

// watchEvery is the interval between snapshots of runs without collectives.
const watchEvery = 10 * time.Millisecond

// Begin plans the snapshots.
func (l *looking) Begin(v *View) error {
	if l.begin != nil {
		l.begin(v)
	}
	for _, n := range v.Nodes {
		in, err := inspect.New(n, &simRegisters{sw: v.Net.Switch(n.Name)}, inspect.Options{NoFlows: true})
		if err != nil {
			return err
		}
		l.inspectors = append(l.inspectors, in)
	}
	l.view = v
	l.next(0)
	return nil
}

// next schedules the next snapshot.
func (l *looking) next(now time.Duration) {
	length := l.view.Job.Case.Length()
	every := l.every
	if every == 0 && l.view.Progress != nil {
		every = max(min(watchEvery, spec.DefaultInterval(length)), now/200)
	}
	at := now + cmp.Or(every, watchEvery)
	if now > 0 && at > length && l.view.Progress == nil {
		return
	}
	l.view.Net.At(at, func() {
		if l.failed = l.snapshot(at); l.failed == nil && (at < length || l.view.Left() > 0) {
			l.next(at)
		}
	})
}

func (l *looking) snapshot(now time.Duration) error {
	var list []*inspect.Snapshot
	for _, in := range l.inspectors {
		s, err := in.Snapshot(context.Background())
		if err != nil {
			return err
		}
		s.Time = now
		list = append(list, s)
	}
	return l.each(list)
}

// End takes a last snapshot of collectives, and returns the first error of the recording.
func (l *looking) End() error {
	if l.failed == nil && l.view.Progress != nil {
		l.failed = l.snapshot(l.view.Net.Now())
	}
	return l.failed
}

// Observe returns a Recorder that writes QALL's dataset: the traffic of the ports between
// switches and the behaviour of their queues, from the end of the warm-up on. The scheme need not
// measure queues itself, because the simulator does.
func Observe(w io.Writer, format string, every time.Duration) Recorder {
	return &observing{w: w, format: format, every: every}
}

type observing struct {
	w      io.Writer
	format string
	every  time.Duration
	only   []string // names of switches; empty: all
	latest bool     // use the interval between the last two packets, not the average

	keep   func([]inspect.Observation) error
	to     *inspect.ObservationWriter
	ports  []*watched
	list   []inspect.Observation
	failed error
}

// Begin plans the samples.
func (o *observing) Begin(v *View) (err error) {
	if o.to, err = inspect.NewObservationWriter(o.w, o.format); err != nil {
		return err
	}
	o.keep = o.to.Write
	o.plan(v)
	return nil
}

func (o *observing) plan(v *View) {
	for _, sw := range v.Net.Switches() {
		if len(o.only) > 0 && !slices.Contains(o.only, sw.Name) {
			continue
		}
		for _, p := range v.Topology.Ports(sw.Name) {
			if port := sw.Port(p.Number); p.PeerTier > 0 && port != nil && !p.Down {
				o.ports = append(o.ports, &watched{Port: port, sw: sw, limit: float64(max(1, port.Limit()))})
			}
		}
	}
	end := v.Job.Case.Length()
	v.Net.Every(o.every, func(now time.Duration) bool {
		o.failed = o.sample(now, now >= v.Job.Case.WarmupTime())
		return o.failed == nil && now+o.every <= end
	})
}

// sample records a row for each port that has sent packets.
func (o *observing) sample(now time.Duration, keep bool) error {
	o.list = o.list[:0]
	for _, w := range o.ports {
		c := w.Counters()
		packets, bytes := c.Packets-w.last.Packets, c.Bytes-w.last.Bytes
		w.last = c
		if packets == 0 || !keep {
			continue
		}
		o.list = append(o.list, inspect.Observation{
			ClockUS: now.Microseconds(), Switch: w.sw.Name, Port: int64(w.Number),
			Traffic:  float64(bytes) * 8 / o.every.Seconds() / 1e3,
			Queue:    100 * min(1, float64(w.Queue())/w.limit),
			Interval: o.every.Seconds() * 1e6 / float64(packets),
		})
		if o.latest {
			o.list[len(o.list)-1].Interval = c.Interval.Seconds() * 1e6
		}
	}
	return o.keep(o.list)
}

// End writes buffered rows.
func (o *observing) End() error {
	if o.failed != nil {
		return o.failed
	}
	return o.to.Close()
}
