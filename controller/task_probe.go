package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/fitting"
)

// A probeTask sends the probes of all edge switches: HULA's with a fixed period,
// DHLB's with one that follows the load of the network.
type probeTask struct {
	switches []*prober
	period   time.Duration
	loads    *loadMeter // nil: the period is fixed
	dhlb     fitting.DHLB
}

// A prober is an edge switch that sends probes about itself.
type prober struct {
	name string
	make frameMaker
	leaf uint64
	seq  uint64
}

// idleDegree is the load degree that a probe starts with, the best of DHLB's
// Table 1.
const idleDegree = 5

func newProbeTask(nodes []*Node) (Task, error) {
	first := nodes[0]
	t := &probeTask{period: first.period("tprobe")}
	if theta := first.period("theta"); theta != 0 {
		// fitting calls the flowlet gap an RTT, which is what DHLB takes for it.
		t.dhlb = fitting.DHLB{RTT: first.period("gap"), Theta: theta, Max: first.period("tmax")}
		var err error
		if t.loads, err = newLoadMeter(nodes); err != nil {
			return nil, err
		}
	}
	if t.period == 0 && t.loads == nil {
		return nil, errors.New("the program has neither a probe period tprobe nor theta")
	}
	for _, n := range nodes {
		m, err := n.frameMaker("probe", "origin")
		if err != nil {
			return nil, err
		}
		t.switches = append(t.switches, &prober{name: n.Name, make: m, leaf: uint64(n.Leaf)})
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *probeTask) Name() string { return "probe" }

// Switch is "": the period depends on all switches.
func (t *probeTask) Switch() string { return "" }

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
	frame, err := s.make.frame(map[string]uint64{"origin": s.leaf, "seq": s.seq & 0xffff, "maxdeg": idleDegree})
	if err != nil {
		return err
	}
	s.seq++
	return f.PacketOut(s.name, frame)
}

// A loadMeter finds sigma of DHLB's Eq. 2: the mean load of the links of the ToR
// switches, which are those to other switches.
type loadMeter struct {
	switches []*meteredSwitch
	window   int // k: what was sent fades within 2^k µs
	u, at    []uint64
}

// A meteredSwitch is one with the ports whose load counts, and what each
// carries within the window.
type meteredSwitch struct {
	name     string
	ports    []int
	capacity []float64
	reported bool // hardware: the program has the shares themselves, as last reported
}

func newLoadMeter(nodes []*Node) (*loadMeter, error) {
	m := &loadMeter{window: int(nodes[0].parameter("window"))}
	for _, n := range nodes {
		s := &meteredSwitch{name: n.Name, reported: n.Manifest.Hardware != nil && n.has("u_in")}
		if !s.reported && !n.has("u", "u_ts") {
			return nil, fmt.Errorf("the program of %s measures no load: it has no registers u and u_ts", n.Name)
		}
		for _, p := range n.Ports {
			if p.PeerTier > 0 && !p.Down {
				s.ports = append(s.ports, p.Number)
				s.capacity = append(s.capacity, windowBytes(float64(p.Rate), m.window))
			}
		}
		m.switches = append(m.switches, s)
	}
	return m, nil
}

// windowBytes is what a link of a rate in bit/s carries within 2^k µs.
func windowBytes(rate float64, k int) float64 { return rate / 8 * float64(int64(1)<<k) / 1e6 }

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
	if s.reported {
		m.u, err = f.ReadRegister(s.name, "u_in", 0, last, m.u[:0])
		for _, p := range s.ports {
			if err == nil {
				total += min(1, float64(m.u[p])/fullLoad)
			}
		}
		return total, err
	}
	if m.u, err = f.ReadRegister(s.name, "u", 0, last, m.u[:0]); err != nil {
		return 0, err
	}
	if m.at, err = f.ReadRegister(s.name, "u_ts", 0, last, m.at[:0]); err != nil {
		return 0, err
	}
	now, err := clockOr(f, s.name, m.at)
	if err != nil {
		return 0, err
	}
	for i, p := range s.ports {
		total += min(1, faded(m.u[p], m.at[p], now, m.window)/s.capacity[i])
	}
	return total, nil
}

// faded is what is left now of the bytes that were sent by a time of the
// switch's clock: they fade evenly within 2^k µs, as in the data plane.
func faded(bytes, at uint64, now time.Duration, k int) float64 {
	elapsed := now.Microseconds() - int64(at)
	window := int64(1) << k
	if elapsed <= 0 {
		return float64(bytes)
	}
	return float64(bytes) * float64(max(0, window-elapsed)) / float64(window)
}

// A pathProbeTask sends a probe along each path of one switch to each other
// leaf. The frames never change: the switch notes the time.
type pathProbeTask struct {
	sw     string
	period time.Duration
	frames [][]byte
}

func newPathProbeTask(n *Node) (Task, error) {
	m, err := n.frameMaker("path_probe", "src", "dst", "path", "flags", "tx_ts")
	if err != nil {
		return nil, err
	}
	t := &pathProbeTask{sw: n.Name, period: n.period("tpath")}
	if t.period <= 0 {
		return nil, errors.New("the program has no period tpath")
	}
	for _, g := range n.Groups {
		for slot := range g.Hops {
			frame, err := m.frame(map[string]uint64{"src": uint64(n.Leaf), "dst": uint64(g.ID), "path": uint64(slot)})
			if err != nil {
				return nil, err
			}
			t.frames = append(t.frames, frame)
		}
	}
	return t, nil
}

// Name is the task's in manifests.
func (t *pathProbeTask) Name() string { return "path-probe" }

// Switch is the leaf whose paths are probed.
func (t *pathProbeTask) Switch() string { return t.sw }

// Run sends a probe along each path.
func (t *pathProbeTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	for _, frame := range t.frames {
		if err := f.PacketOut(t.sw, frame); err != nil {
			return now + t.period, err
		}
	}
	return now + t.period, nil
}
