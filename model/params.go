package model

import (
	"fmt"

	"github.com/p4lb/p4lb/fitting"
)

// Params are the constants of the schemes, named as in the catalogue, in the
// units of the switch: times as its clock, sizes in bytes, queues in packets. A scheme
// reads those that it knows.
type Params struct {
	Hardware *Hardware // nil: a switch that computes as the papers do

	Gap  Time   // flowlet: a longer pause ends it
	Cell uint32 // flowcell: bytes

	D, M int    // DRILL: paths drawn, paths remembered
	QCap uint32 // packets that a queue holds

	Tb   Time          // reports of a port come at most this often (QALL's T_b)
	Tau  Time          // QALL, tau: the dequeue interval that counts as idle
	Age  Time          // QALL: older state counts as idle; 0: never
	Poly *fitting.Poly // nil: the controller gives one, by SetPattern

	Degree int // of that

	Window uint   // HULA, DHLB, CONGA, Hermes: a load fades in 2^Window µs
	Link   uint64 // bit/s of a link
	TFail  Time   // HULA: a best path without news for longer is given up
	TProbe Time   // DHLB: between probes
	Ageing Time   // CONGA: older congestion counts as none

	Timeout   Time   // Hermes: a flow that pauses for longer is new
	TECN      uint8  // a share of marks, of 255, that separates good from bad
	Low, High uint32 // µs, on hardware 1024 ns: good paths are faster, congested ones slower
	DRTT      uint32 // the same, by which a notably better path is faster
	DECN      int    // marks, of 255, that it has fewer
	Sent      uint32 // a flow that moves has sent more bytes
	R         uint64 // and less than this share of the link's rate, in percent

	TPath int64 // Hermes, Clove on hardware: ns between probes of a path

	Epoch  Time   // FlowBender: how long marks are counted
	Marked uint64 // the share of marked acknowledgements that moves a flow, in percent

	DT         Time   // RLB: the interval of the prediction
	TWarn      Time   // a warning goes out if less is left
	QPFC       uint32 // bytes of an ingress queue that pause the switch upstream
	QTh        uint32 // no warning below; 0: d*C, the lower end of its range
	Delay      int64  // d, in ns: between two switches
	Hold       Time   // a warning counts, and is not repeated, so long
	Derivative bool   // predict by growth; else as soon as QTh is exceeded
	Rounds     int    // a packet comes round at most so often
	Halve      bool   // RTT differences count half, as the one-way delays that they stand for
}

// Set sets a constant from what the catalogue calls it and the number that it
// writes into manifests: times are in ns there. Names that mean nothing to the
// model are an error. Hardware is to be set before.
func (p *Params) Set(name string, number int64) error {
	times := map[string]*Time{
		"gap": &p.Gap, "tb": &p.Tb, "tau": &p.Tau, "age": &p.Age, "tfail": &p.TFail, "tprobe": &p.TProbe,
		"ageing": &p.Ageing, "timeout": &p.Timeout, "dt": &p.DT, "twarn": &p.TWarn, "hold": &p.Hold, "epoch": &p.Epoch,
	}
	if t := times[name]; t != nil {
		*t = p.Hardware.Interval(number)
		return nil
	}
	switch name {
	case "cell":
		p.Cell = uint32(number)
	case "d":
		p.D = int(number)
	case "m":
		p.M = int(number)
	case "qcap":
		p.QCap = uint32(number)
	case "window":
		p.Window = uint(number)
	case "link":
		p.Link = uint64(number)
	case "tecn":
		p.TECN = uint8(number * 255 / 100)
	case "decn":
		p.DECN = int(number * 255 / 100)
	case "low":
		p.Low = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "high":
		p.High = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "drtt":
		p.DRTT = uint32(p.Hardware.Count(p.Hardware.Interval(number)))
	case "tpath":
		p.TPath = number
	case "sent":
		p.Sent = uint32(number)
	case "marked":
		p.Marked = uint64(number)
	case "r":
		p.R = uint64(number)
	case "qpfc":
		p.QPFC = uint32(number)
	case "qth":
		p.QTh = uint32(number)
	case "predict":
		p.Derivative = number == 0
	case "rc":
		p.Rounds = int(number)
	case "owd":
		p.Halve = number == 1
	case "delay":
		p.Delay = number
	case "degree":
		p.Degree = int(number)
	case "cpu", "theta", "tmax", "period", "rule", "ecnk", "incast":
		// What the controller does.
	default:
		return fmt.Errorf("unknown parameter %q", name)
	}
	return nil
}

// capacity is what a link carries while a load fades, in bytes.
func (s *Switch) capacity() uint64 { return s.cfg.Link << s.cfg.Window / 8_000_000 }
