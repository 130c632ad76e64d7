package p4lb

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A Network is the network of one run of an experiment, in virtual time: switches that run P4
// programs, links, and hosts. Experiment.Begin gets it before the first packet, and can plan its
// own work with At, Every and OnPacket. Their functions run one at a time, while virtual time
// stands still. Other goroutines must not use the Network, and it ends with the run.
type Network struct {
	view     *lab.View
	controls map[string]*Control
	depth    int // functions of At that have called At for the same time, up to the running one
}

// A Port is the state of a port of a switch or host.
type Port struct {
	Number       int    // number of a switch's port; 0 at a host
	Peer         string // switch or host at the other end of the link
	Rate         int64  // rate of the link in bit/s
	Down         bool   // the link has failed
	Queue        int    // bytes that wait
	Packets      int64  // sent
	Bytes        int64  // sent
	Dropped      int64  // packets
	Marked       int64  // packets with congestion experienced
	LongestQueue int    // bytes, since the beginning
}

// A Flow is a transfer from a host to another.
type Flow struct {
	From, To  string
	Bytes     int64
	Transport string // tcp, dctcp, dcqcn or udp; "": tcp
	// Done, if not nil, is called when the last byte has arrived, or for tcp and dctcp is
	// acknowledged. It gets the time that the flow took.
	Done func(took time.Duration)
}

// A PacketAt is a packet that a port of a switch begins to send or has received.
type PacketAt struct {
	Switch string
	Port   int
	Header []byte // the first bytes; valid until the function returns
	Length int    // on the wire, from the Ethernet header on
}

func newNetwork(v *lab.View) *Network {
	return &Network{view: v, controls: map[string]*Control{}}
}

// Scheme returns the label of the run's row.
func (n *Network) Scheme() string { return n.view.Job.Scheme.Label }

// Load returns the offered load of the run.
func (n *Network) Load() float64 { return n.view.Job.Load }

// Seed returns the seed of the run.
func (n *Network) Seed() uint64 { return n.view.Job.Seed }

// Now returns the time since the start of the run.
func (n *Network) Now() time.Duration { return n.view.Net.Now() }

// At calls f at a time, or now if that is past.
func (n *Network) At(at time.Duration, f func()) {
	if f == nil {
		n.view.Fail(fmt.Errorf("at %v: the function is nil", at))
		return
	}
	depth := 0
	if at <= n.Now() {
		depth = n.depth + 1
	}
	if depth > maxDepth {
		n.view.Fail(fmt.Errorf("at %v: %d functions of At have called At for the same time: want later times, so that virtual time advances", n.Now(), maxDepth))
		return
	}
	n.view.Net.At(at, func() {
		n.depth = depth
		f()
		n.depth = 0
	})
}

// maxDepth limits Network.depth.
const maxDepth = 10_000

// errNil is the error about a callback that is nil.
var errNil = errors.New("the function is nil")

// Every calls f after each interval until it returns an error, which ends the run and is
// the error of the experiment.
func (n *Network) Every(interval time.Duration, f func() error) error {
	if interval <= 0 {
		return fmt.Errorf("an interval of %v: want one above 0", interval)
	}
	if f == nil {
		return fmt.Errorf("every %v: %w", interval, errNil)
	}
	n.view.Net.Every(interval, func(time.Duration) bool {
		err := f()
		if err != nil {
			n.view.Fail(err)
		}
		return err == nil
	})
	return nil
}

// OnPacket calls f for each packet that a port of a switch begins to send or has received.
func (n *Network) OnPacket(f func(PacketAt)) error {
	if f == nil {
		return fmt.Errorf("for each packet: %w", errNil)
	}
	ok := n.view.Net.Tap(func(at *sim.Port, head []byte, size int) {
		f(PacketAt{at.Switch(), at.Number, head, size})
	})
	if !ok {
		return n.models()
	}
	return nil
}

// models returns the error about switches without programs.
func (n *Network) models() error {
	return fmt.Errorf("the switches of %s run models, which have no tables and no packet bytes: use engine: p4", n.Scheme())
}

// Switches returns the names of the switches.
func (n *Network) Switches() []string {
	return lists.Map(n.view.Net.Switches(), func(s *sim.Switch) string { return s.Name })
}

// Hosts returns the names of the hosts.
func (n *Network) Hosts() []string {
	return lists.Map(n.view.Net.Hosts(), func(h *sim.Host) string { return h.Name })
}

// Switch returns the control plane of a switch.
func (n *Network) Switch(name string) (*Control, error) {
	if c := n.controls[name]; c != nil {
		return c, nil
	}
	s, err := n.switchNamed(name)
	if err != nil {
		return nil, err
	}
	sw := s.Program()
	if sw == nil {
		return nil, n.models()
	}
	c := newControl(sw)
	n.controls[name] = &c
	return &c, nil
}

func (n *Network) switchNamed(name string) (*sim.Switch, error) {
	if s := n.view.Net.Switch(name); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no switch %q: want one of %v", name, n.Switches())
}

// Ports returns the ports of a switch, or the port of a host, with their present state.
func (n *Network) Ports(name string) ([]Port, error) {
	if h := n.view.Net.Host(name); h != nil {
		return []Port{portOf(h.NIC())}, nil
	}
	s, err := n.switchNamed(name)
	if err != nil {
		return nil, err
	}
	return lists.Map(s.Ports(), portOf), nil
}

func portOf(p *sim.Port) Port {
	peer, _ := p.Peer()
	c := p.Counters()
	return Port{
		Number: p.Number, Peer: peer, Rate: int64(p.Rate()), Down: p.Link() != nil && p.Link().Down(), Queue: p.Queue(),
		Packets: c.Packets, Bytes: c.Bytes, Dropped: c.Dropped, Marked: c.Marked, LongestQueue: c.MaxQueue,
	}
}

// SendTo makes a switch process a packet from its controller.
func (n *Network) SendTo(name string, data []byte) error {
	s, err := n.switchNamed(name)
	if err != nil {
		return err
	}
	if s.Program() == nil {
		return n.models()
	}
	s.PacketOut(data)
	return nil
}

// OnPacketIn calls f with the packets that a switch sends to its controller. The bytes are
// valid until f returns.
func (n *Network) OnPacketIn(name string, f func(data []byte)) error {
	s, err := n.switchNamed(name)
	if err != nil {
		return err
	}
	if s.Program() == nil {
		return n.models()
	}
	if f == nil {
		return fmt.Errorf("packets of %s: %w", name, errNil)
	}
	s.OnPacketIn(func(_ int, data []byte) { f(data) })
	return nil
}

// OnDigest calls f with the digests of a switch, at the time of the packet and after its
// processing: f may change the tables of the switch.
func (n *Network) OnDigest(name string, f func(Digest)) error {
	s, err := n.switchNamed(name)
	if err != nil {
		return err
	}
	if s.Program() == nil {
		return n.models()
	}
	if f == nil {
		return fmt.Errorf("digests of %s: %w", name, errNil)
	}
	n.view.OnDigest(name, func(d dataplane.Digest) { f(Digest{d.List, d.Data}) })
	return nil
}

// Start starts a flow in addition to the experiment's traffic. The metrics of the experiment do
// not include it.
func (n *Network) Start(f Flow) error {
	kind := sim.TCP
	if f.Transport != "" {
		var err error
		if kind, err = sim.ParseTransport(f.Transport); err != nil {
			return err
		}
	}
	if f.Bytes <= 0 {
		return fmt.Errorf("a flow from %s to %s of %d bytes: want at least one", f.From, f.To, f.Bytes)
	}
	spec := sim.FlowSpec{From: f.From, To: f.To, Bytes: f.Bytes, Transport: kind}
	if f.Done != nil {
		spec.Done = func(s *sim.Flow) { f.Done(s.Finished - s.Started) }
	}
	_, err := n.view.Net.StartFlow(spec)
	return err
}

// SetLink takes a link such as l1-s1 down or up; if there are several links between the two
// nodes, all of them. Routes do not change, because that is the controller's task.
func (n *Network) SetLink(link string, up bool) error {
	return n.eachLink(link, func(l *sim.Link) error {
		if up {
			l.Restore()
		} else {
			l.Fail()
		}
		return nil
	})
}

// SetRate changes the rate of a link such as l1-s1, in bit/s; of several between two
// nodes, of all.
func (n *Network) SetRate(link string, bitsPerSecond int64) error {
	return n.eachLink(link, func(l *sim.Link) error { return l.SetRate(fabric.Rate(bitsPerSecond)) })
}

func (n *Network) eachLink(name string, do func(*sim.Link) error) error {
	places, err := n.view.Topology.FindLinks(name)
	if err != nil {
		return err
	}
	for _, i := range places {
		if err := do(n.view.Net.Links()[i]); err != nil {
			return err
		}
	}
	return nil
}

// Report adds a value of the caller's own to the metrics of the run; Results.Rows and
// Results.Mean have it. A second value of the same metric replaces the first. Experiment.Metrics
// adds it to tables and conditions.
func (n *Network) Report(metric string, value float64) error {
	if err := checkMetric(metric); err != nil {
		return err
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("metric %s: %v: want a finite number", metric, value)
	}
	n.view.Report(metric, value)
	return nil
}
