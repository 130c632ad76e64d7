package task

import (
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A probeTask sends the probes of all edge switches. HULA's period is fixed. DHLB's period
// depends on the load of the network.
type probeTask struct {
	identity
	switches []*prober
	period   time.Duration
	loads    *loadMeter // nil: the period is fixed
	dhlb     fitting.DHLB
}

// A prober is an edge switch that sends probes.
type prober struct {
	name string
	make frameMaker
	leaf uint64
	seq  uint64
}

func newProbeTask(nodes []*plan.Node) (Task, error) {
	first := nodes[0].Manifest.Task(manifest.ProbeFlood)
	t := &probeTask{identity: identity{kind: manifest.ProbeFlood}, period: time.Duration(first.Period)}
	if first.Theta != 0 {
		// The field RTT of fitting.DHLB is the flowlet gap, as in DHLB.
		t.dhlb = fitting.DHLB{RTT: time.Duration(first.Gap), Theta: time.Duration(first.Theta), Max: time.Duration(first.Most)}
		var err error
		if t.loads, err = newLoadMeter(nodes); err != nil {
			return nil, err
		}
	}
	for _, n := range nodes {
		m := newFrameMaker(n, n.Manifest.Task(manifest.ProbeFlood))
		t.switches = append(t.switches, &prober{name: n.Name, make: m, leaf: uint64(n.Leaf)})
	}
	return t, nil
}

// Run sends a probe from each switch.
func (t *probeTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	var errs []error
	for _, s := range t.switches {
		if err := s.send(f); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	period := t.period
	if t.loads != nil {
		sigma, err := t.loads.mean(f)
		if err != nil {
			errs = append(errs, err)
		}
		period = t.dhlb.Probe(sigma)
	}
	return now + period, errors.Join(errs...)
}

func (s *prober) send(f Fabric) error {
	frame, err := s.make.frame(map[manifest.FieldRole]uint64{manifest.Origin: s.leaf, manifest.Sequence: s.seq})
	if err != nil {
		return err
	}
	s.seq++
	return f.PacketOut(s.name, frame)
}

// A loadMeter computes sigma of DHLB's Eq. 2: the mean load of the links between ToR switches and
// other switches.
type loadMeter struct {
	switches []*meteredSwitch
	u, at    []uint64
}

// A meteredSwitch is a switch with its metered ports. A register contains each port's byte count,
// which decays within a window, and its time. On hardware it contains the share of the link rate.
type meteredSwitch struct {
	name     string
	ports    []int
	capacity []float64 // capacity of each port within the window
	load     *registers.Array
	updated  *registers.Array // nil: the register contains shares
}

func newLoadMeter(nodes []*plan.Node) (*loadMeter, error) {
	m := &loadMeter{}
	for _, n := range nodes {
		s := &meteredSwitch{name: n.Name, load: registers.PartOf(n.Manifest, n.Manifest.Task(manifest.ProbeFlood), manifest.PartLoad)}
		if s.load == nil {
			return nil, fmt.Errorf("the program of %s measures no load: task probe with theta wants a register for load", n.Name)
		}
		if s.load.Kind == manifest.Rate {
			if s.updated = registers.MomentOf(registers.Of(n.Manifest, nil), s.load.Name, manifest.Updated); s.updated == nil || s.load.Window == 0 {
				return nil, fmt.Errorf("the program of %s measures no load: register %s has no window, or none has the time when it was updated", n.Name, s.load.Name)
			}
		}
		for _, p := range n.Ports {
			if p.PeerTier > 0 && !p.Down {
				s.ports = append(s.ports, p.Number)
				s.capacity = append(s.capacity, registers.WindowBytes(float64(p.Rate), time.Duration(s.load.Window)))
			}
		}
		m.switches = append(m.switches, s)
	}
	return m, nil
}

// mean reads the load of all links. Switches that do not answer are left out.
func (m *loadMeter) mean(f Fabric) (float64, error) {
	sum, links := 0.0, 0
	var errs []error
	for _, s := range m.switches {
		total, err := m.load(s, f)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading the load of %s: %w", s.name, err))
			continue
		}
		sum += total
		links += len(s.ports)
	}
	return sum / float64(max(1, links)), errors.Join(errs...)
}

// load adds up the loads of the ports of a switch.
func (m *loadMeter) load(s *meteredSwitch, f Fabric) (total float64, err error) {
	if len(s.ports) == 0 {
		return 0, nil
	}
	last := s.ports[len(s.ports)-1] + 1
	if s.updated == nil {
		m.u, err = s.load.Read(f, s.name, 0, last, 0, m.u[:0])
		for _, p := range s.ports {
			if err == nil {
				total += min(1, float64(m.u[p])/float64(max(1, s.load.Scale)))
			}
		}
		return total, err
	}
	var now time.Duration
	if m.at, now, err = s.updated.ReadMoments(f, s.name, last, m.at[:0]); err != nil {
		return 0, err
	}
	if m.u, err = s.load.Read(f, s.name, 0, last, now, m.u[:0]); err != nil {
		return 0, err
	}
	for i, p := range s.ports {
		total += min(1, registers.Faded(m.u[p], m.at[p], now, time.Duration(s.load.Window))/s.capacity[i])
	}
	return total, nil
}

// A pathProbeTask sends a probe along each path from one switch to each other leaf. The frames
// are constant, because the switch records the time.
type pathProbeTask struct {
	identity
	period time.Duration
	frames [][]byte
}

func newPathProbeTask(s *site) (Task, error) {
	n := s.Node
	m := newFrameMaker(n, s.task)
	t := &pathProbeTask{identity: s.identity(), period: time.Duration(s.task.Period)}
	for _, g := range n.Groups {
		for slot := range g.Hops {
			frame, err := m.frame(map[manifest.FieldRole]uint64{manifest.FromLeaf: uint64(n.Leaf), manifest.ToLeaf: uint64(g.ID), manifest.AlongPath: uint64(slot)})
			if err != nil {
				return nil, err
			}
			t.frames = append(t.frames, frame)
		}
	}
	return t, nil
}

// Run sends a probe along each path.
func (t *pathProbeTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	for _, frame := range t.frames {
		if err := f.PacketOut(t.sw, frame); err != nil {
			return now + t.period, err
		}
	}
	return now + t.period, nil
}
