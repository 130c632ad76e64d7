package testbed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A Target runs switches as processes of this machine.
type Target struct {
	o Options

	mu  sync.Mutex
	bed *bed // nil before Start
}

var _ target.Target = (*Target)(nil)

// New returns a target without switches.
func New(o Options) *Target {
	o.Program = cmp.Or(o.Program, Program)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Target{o: o}
}

// Name returns bmv2.
func (t *Target) Name() string { return "bmv2" }

// Start builds the network, or takes over the one that an earlier process has kept. It starts
// switches that are not running, and sets the state of links according to the plan's topology.
func (t *Target) Start(ctx context.Context, p *plan.Plan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(p.Switches); n > blockSwitches {
		return &plan.Error{
			Err:  fmt.Errorf("%d switches: a deployment of BMv2 has at most %d", n, blockSwitches),
			Hint: "the embedded target has no such limit",
		}
	}
	if t.bed == nil {
		if err := t.o.usable(ctx); err != nil {
			return err
		}
		b, err := openBed(t.o, p)
		if err != nil {
			return err
		}
		t.bed = b
		t.o.warnOfProbes(p)
	}
	if t.bed.note.Topology != bare(p.Topology) {
		return &plan.Error{
			Err:  errors.New("the topology is not the one that runs"),
			Hint: "a running network can only change its links; deploy again for another network",
		}
	}
	if err := t.bed.run(ctx, p); err != nil {
		return err
	}
	return t.bed.setLinks(p.Topology)
}

var errNotStarted = errors.New("the switches have not been started")

// usable returns an error that names missing requirements of this machine.
func (o *Options) usable(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return &plan.Error{
			Err:  errors.New("the bmv2 target needs root to create network namespaces"),
			Hint: "run it with sudo, or use --target embedded, which needs no root",
		}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return &plan.Error{
			Err:  errors.New("there is no ip on PATH"),
			Hint: "it is in the package iproute2 of most distributions",
		}
	}
	path, err := exec.LookPath(o.Program)
	if err != nil {
		return &plan.Error{
			Err:  fmt.Errorf("there is no %s on PATH", o.Program),
			Hint: "install BMv2 with P4Runtime, or use --target embedded, which needs no other software",
		}
	}
	o.Program = path
	o.silent = o.lacksNotifications(ctx)
	return nil
}

// lacksNotifications reports whether the switch does not support --notifications-addr. BMv2
// without nanomsg exits if it is given this option.
func (o *Options) lacksNotifications(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	help, err := exec.CommandContext(ctx, o.Program, "--help").CombinedOutput()
	return err == nil && !bytes.Contains(help, []byte("--notifications-addr"))
}

// manyProbes is the shortest interval for packets from the controller that
// simple_switch can handle in addition to its traffic.
const manyProbes = 5 * time.Millisecond

// warnOfProbes logs a warning if probe tasks would overload the switches.
func (o *Options) warnOfProbes(p *plan.Plan) {
	told := map[manifest.TaskKind]bool{}
	for _, s := range p.Switches {
		for _, task := range s.Pipeline.Manifest.Tasks {
			sends := task.Header != "" || task.Kind == manifest.SendFrame
			if every := time.Duration(task.Period); sends && every > 0 && every < manyProbes && !told[task.Kind] {
				told[task.Kind] = true
				o.Log.Warn("simple_switch hardly keeps up with so many packets of its controller", "task", task.Kind, "every", every)
			}
		}
	}
}

// Endpoint returns the addresses of the named switch.
func (t *Target) Endpoint(name string) (target.Endpoint, error) {
	n, err := t.node(name)
	if err != nil {
		return target.Endpoint{}, err
	}
	return target.Endpoint{
		Address: n.grpc, Device: n.plan.Device, Thrift: n.thrift,
		Registers: injector{n.remote, n}, Queues: n.remote,
		Limits: target.Limits{KeepsReplication: true, NoRegisters: true},
	}, nil
}

// An injector accesses the registers of a switch over Thrift, and its ports over
// their links.
type injector struct {
	*target.Thrift
	node *node
}

// Inject sends a frame from the far end of a port's link.
func (i injector) Inject(_ context.Context, port int, frame []byte) error {
	return i.node.inject(port, frame)
}

// node returns the switch with a name.
func (t *Target) node(name string) (*node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bed == nil {
		return nil, errNotStarted
	}
	for _, n := range t.bed.switches {
		if n.plan.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no switch %s", name)
}

// SetLinks sets the state of links according to the topology.
func (t *Target) SetLinks(topology *fabric.Topology) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bed == nil {
		return errNotStarted
	}
	return t.bed.setLinks(topology)
}

var (
	_ target.Linker    = (*Target)(nil)
	_ target.Restarter = (*Target)(nil)
)

// SetLink sets the state and the properties of a link. Its rate is the rate of the
// switches' queues, which the plan sets.
func (t *Target) SetLink(l fabric.Link, r target.Random) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bed == nil {
		return errNotStarted
	}
	return t.bed.setLink(t.bed.links, l, r)
}

// LinkDown reports whether a link is down, because one of its ends drops all packets.
func (t *Target) LinkDown(l fabric.Link) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bed == nil {
		return false, errNotStarted
	}
	for _, e := range []fabric.End{l.A, l.B} {
		if down, err := t.bed.drops(e); err != nil || down {
			return down, err
		}
	}
	return false, nil
}

// Stop kills the named switch: its state is lost, its ports stay.
func (t *Target) Stop(name string) error {
	n, err := t.node(name)
	if err != nil {
		return err
	}
	n.stop()
	return nil
}

// Restart restarts the named switch without state.
func (t *Target) Restart(ctx context.Context, name string) error {
	n, err := t.node(name)
	if err != nil {
		return err
	}
	n.stop()
	if err := n.start(ctx); err != nil {
		return err
	}
	return t.SetLinks(n.bed.links)
}

// In calls f in the network namespace of the named host or switch. f must not leave
// its goroutine.
func (t *Target) In(node string, f func() error) error {
	t.mu.Lock()
	b := t.bed
	t.mu.Unlock()
	if b == nil {
		return errNotStarted
	}
	s, err := netspace.Open(namespace(b.name, node))
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Do(f)
}

// Socket creates a TCP socket on a host.
func (t *Target) Socket(host string) (fd int, err error) {
	t.mu.Lock()
	b := t.bed
	t.mu.Unlock()
	if b == nil {
		return 0, errNotStarted
	}
	return Sockets(b.name).Socket(host)
}

// Socket creates a TCP socket on a host.
func (d Sockets) Socket(host string) (int, error) { return d.socket(host, (*netspace.Space).Socket) }

// Datagrams creates a UDP socket on a host.
func (d Sockets) Datagrams(host string) (int, error) {
	return d.socket(host, (*netspace.Space).Datagrams)
}

func (d Sockets) socket(host string, create func(*netspace.Space) (int, error)) (int, error) {
	s, err := netspace.Open(namespace(nameOf(string(d)), host))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return create(s)
}

// Close ends the switches and removes the network, or with Keep leaves it.
func (t *Target) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bed == nil {
		return nil
	}
	b := t.bed
	t.bed = nil
	return b.close(t.o.Keep)
}

// Remove removes a deployment. ok is false if there is none.
func Remove(name string) (ok bool, err error) {
	name = nameOf(name)
	lock, err := takeLock(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, dropLock(lock, name)) }()
	return remove(name)
}
