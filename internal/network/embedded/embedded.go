// Package embedded is the target that runs everything in this process: each switch
// of a plan is a p4rt.Device with its server, and links in memory connect them.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/device/ports"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Options configure the switches. With the zero value they serve P4Runtime and Thrift at the
// addresses of the topology, and move packets in real time.
type Options struct {
	// Load links a program; nil: load BMv2 JSON, parsed once for all switches with
	// the same program.
	Load func(program []byte, o dataplane.Options) (*dataplane.Switch, error)
	// Memory: use connections within the process instead of addresses.
	Memory bool
	// AnyPort uses free ports instead of the topology's.
	AnyPort bool
	// Still: links move no packets, because a simulator runs the data planes.
	Still bool
	// Simulator, if not nil, returns the simulator of a switch. It requires Still.
	Simulator func(sw string) p4rt.Simulator
	// Host opens the switch's end of a host's link; nil: hosts send and receive only through
	// Host.
	Host func(name string) (p4rt.Port, error)
	// Rates: links apply their rates and delays. Without it, links to external
	// hosts are as fast as possible.
	Rates bool
	// Captures, if not nil, capture the packets of every port.
	Captures *ports.Captures
	// BfRt serves Tofino programs over BfRt instead of P4Runtime, and the
	// controller uses it. Thrift is then not served.
	BfRt bool
	// Priorities is the number of queues of each port; 0: 1.
	Priorities int
	// ClockStep sets the clocks apart: the n-th switch's clock is n times this ahead.
	ClockStep time.Duration
	// Seed is the seed from which each switch derives its random numbers.
	Seed uint64
	// Log receives events; nil discards them.
	Log *slog.Logger
}

// protocol returns the protocol for controllers.
func (o *Options) protocol() string {
	if o.BfRt {
		return "BfRt"
	}
	return "P4Runtime"
}

// A Target runs switches in this process.
type Target struct {
	opts    Options
	speaker *tofino.Speaker
	keys    p4rt.Keys
	trace   atomic.Pointer[trace]

	mu     sync.Mutex
	nodes  map[string]*node
	links  map[linkEnds][]wire
	down   map[linkEnds]bool // links that are down in the last plan
	hosts  map[string]*Host
	closed bool
	taken  []string // occupied Thrift addresses, with their switches
}

var _ target.Target = (*Target)(nil)

// New returns a target without switches.
func New(o Options) *Target {
	if o.Load == nil {
		o.Load = sharedLoader()
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Target{opts: o, speaker: tofino.NewSpeaker(), nodes: map[string]*node{}, links: map[linkEnds][]wire{}, down: map[linkEnds]bool{}, hosts: map[string]*Host{}}
}

// Name returns embedded.
func (t *Target) Name() string { return "embedded" }

// Start creates missing switches and links, and takes down or up the links that differ
// from the previous plan. SetLink changes links later. A switch with an occupied
// address fails in Endpoint.
func (t *Target) Start(ctx context.Context, p *plan.Plan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.New("the embedded switches have been closed")
	}
	if t.opts.BfRt {
		if err := t.speaker.Plan(p); err != nil {
			return err
		}
	}
	for i, s := range p.Switches {
		if n := t.nodes[s.Name]; n != nil {
			continue
		}
		n := &node{target: t, seed: t.opts.Seed + uint64(i), ahead: time.Duration(i) * t.opts.ClockStep, sw: *p.Topology.Switch(s.Name), cpu: uint32(s.CPUPort), arch: s.Pipeline.Manifest.Arch, looped: s.Looped()}
		t.nodes[s.Name] = n
	}
	if !t.opts.Still {
		for _, l := range p.Topology.Links {
			ends := linkEnds{l.A, l.B}
			made := t.links[ends] == nil
			if made {
				t.links[ends] = t.join(l)
			}
			if had, ok := t.down[ends]; made || ok && had != l.Down {
				for _, w := range t.links[ends] {
					w.setUp(!l.Down)
				}
			}
			t.down[ends] = l.Down
		}
	}
	for _, s := range p.Switches {
		n := t.nodes[s.Name]
		if n.dev != nil || n.stopped {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.start(); err != nil {
			t.opts.Log.Error("starting a switch", "name", s.Name, "error", err)
		}
	}
	t.tellTaken()
	return nil
}

// tellTaken logs all occupied Thrift addresses, once.
func (t *Target) tellTaken() {
	if len(t.taken) > 0 {
		t.opts.Log.Warn("no Thrift at addresses that are taken: --any-port takes free ones", "addresses", strings.Join(t.taken, ", "))
	}
	t.taken = nil
}

// join creates a link. A link to an external host has only the switch's end.
func (t *Target) join(l fabric.Link) []wire {
	for _, e := range []struct{ here, there fabric.End }{{l.A, l.B}, {l.B, l.A}} {
		if t.opts.Host != nil && t.nodes[e.there.Node] == nil {
			o := &outlet{at: e.here, trace: &t.trace, port: func() (p4rt.Port, error) { return t.opts.Host(e.there.Node) }}
			if t.opts.Rates {
				o.bits, o.delay = uint64(l.Rate), l.Delay
			}
			t.attach(l, e.here, o)
			return []wire{o}
		}
	}
	made := newLink(l.A, l.B, &t.trace)
	if t.opts.Rates {
		made.keep(uint64(l.Rate), l.Delay)
	}
	t.attach(l, l.A, made.a)
	t.attach(l, l.B, made.b)
	return []wire{made.a, made.b}
}

// attach passes an end of a link to its switch or host.
func (t *Target) attach(l fabric.Link, at fabric.End, w wire) {
	n := t.nodes[at.Node]
	if n == nil {
		w.open()
		t.hosts[at.Node] = &Host{end: w.(*end)}
		return
	}
	e := portEnd{port: uint32(at.Port), wire: w}
	switch {
	case t.opts.Rates:
		e.bits = uint64(l.Rate)
	case t.opts.Host != nil: // as fast as possible, regardless of the queue rates in the plan
		e.bits = math.MaxInt64
	}
	n.ends = append(n.ends, e)
	if n.dev != nil {
		n.addPorts([]portEnd{e})
	}
}

// Endpoint returns the addresses of the named switch.
func (t *Target) Endpoint(name string) (target.Endpoint, error) {
	n, err := t.node(name)
	if err != nil {
		return target.Endpoint{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.dev == nil {
		return target.Endpoint{}, n.why()
	}
	e := target.Endpoint{Address: n.grpc.Addr().String(), Device: n.sw.ID}
	if t.opts.BfRt {
		e.Device, e.Speak = 0, t.speaker.To(name, 0) // a BfRt server has one switch, so its device number is 0
	} else {
		e.Registers, e.Queues, e.Filters = deviceRegisters{n.dev}, queues{n.dev}, filters{n.dev}
		e.Local = n.server.Local(&t.keys)
	}
	if n.thriftListener != nil {
		e.Thrift = n.thriftListener.Addr().String()
	}
	dev, memory := n.dev, n.memory
	if memory != nil {
		e.Address, e.Dial = "memory:"+name, memory.DialContext
		return e, nil
	}
	// Dial must reach the device of registers and queues. If another device has
	// been started since, it fails.
	e.Dial = func(ctx context.Context) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.Address)
		if err == nil && t.Device(name) != dev {
			c.Close()
			return nil, fmt.Errorf("switch %s has been restarted", name)
		}
		return c, err
	}
	return e, nil
}

func (t *Target) node(name string) (*node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("there is no switch %s", name)
}

// Device returns the named switch, or nil if it does not run.
func (t *Target) Device(name string) *p4rt.Device {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[name]; n != nil {
		return n.dev
	}
	return nil
}

// Server returns the P4Runtime server of the named switch, or nil if it does not
// run.
func (t *Target) Server(name string) *p4rt.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[name]; n != nil {
		return n.server
	}
	return nil
}

// Serve answers the clients of the named switch on another listener, until the switch
// stops.
func (t *Target) Serve(name string, l net.Listener) error {
	n, err := t.node(name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	server, bfrt := n.server, n.bfrt
	t.mu.Unlock()
	switch {
	case server != nil:
		return server.Serve(l)
	case bfrt != nil:
		return bfrt.Serve(l)
	}
	return n.why()
}

// Switch returns the data plane of the named switch. It is nil before the first
// program, and changes with each program.
func (t *Target) Switch(name string) *dataplane.Switch {
	if d := t.Device(name); d != nil {
		return d.Switch()
	}
	return nil
}

// Host returns the named host, or nil. With Still there are no hosts.
func (t *Target) Host(name string) *Host {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[name]
}

// Stop ends the named switch as if its process had died: connections break, its
// state is lost.
func (t *Target) Stop(name string) error {
	n, err := t.node(name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.stopped = true
	return n.stop()
}

// Restart ends the named switch and starts it without a program, at its previous
// address.
func (t *Target) Restart(_ context.Context, name string) error {
	n, err := t.node(name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.New("the embedded switches have been closed")
	}
	n.stopped = true
	err = n.stop()
	n.stopped = false
	err = errors.Join(err, n.start())
	t.tellTaken()
	return err
}

// Close ends all switches.
func (t *Target) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	errs := lists.Map(slices.Sorted(maps.Keys(t.nodes)), func(name string) error { return t.nodes[name].stop() })
	for _, h := range t.hosts {
		h.end.Close()
	}
	return errors.Join(errs...)
}
