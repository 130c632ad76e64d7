package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/server/bfrt"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// A node is a switch with its servers. The lock is the target's.
type node struct {
	target *Target
	sw     fabric.Switch
	seed   uint64
	ahead  time.Duration // offset of the clock
	cpu    uint32
	arch   manifest.Arch
	looped []uint32 // ports in loopback
	ends   []portEnd

	stopped bool   // stopped by a call of Stop
	failed  error  // error of the last start
	address string // address of the first start, reused by later ones

	dev            *p4rt.Device   // nil: it does not run
	server         *p4rt.Server   // nil: it serves BfRt
	bfrt           *server.Server // nil: it serves P4Runtime
	thrift         *thrift.Server
	grpc           net.Listener
	thriftListener net.Listener
	memory         *bufconn.Listener // in-memory listener, instead of grpc
	serving        sync.WaitGroup
}

type portEnd struct {
	port uint32
	wire wire
	bits uint64 // rate of the port in bit/s; 0: only the queues limit it
}

// why returns the reason why the node does not run.
func (n *node) why() error {
	if n.failed != nil {
		return n.failed
	}
	return fmt.Errorf("switch %s does not run", n.sw.Name)
}

func (n *node) start() (err error) {
	defer func() {
		if n.failed = err; err != nil {
			n.stop()
		}
	}()
	if err := n.listen(); err != nil {
		return err
	}
	o := p4rt.DeviceOptions{
		CPUPort: n.cpu, CPUZero: true, CPUIsPort: n.target.opts.BfRt, Priorities: n.target.opts.Priorities, Looped: n.looped, Seed: n.seed, Ahead: n.ahead, Load: n.load,
	}
	if n.target.opts.Simulator != nil {
		o.Simulator = n.target.opts.Simulator(n.sw.Name)
	}
	n.dev, err = p4rt.NewDevice(o)
	if err != nil {
		return err
	}
	serve, err := n.control()
	if err != nil {
		return err
	}
	l := n.grpc // stop sets n.grpc to nil
	n.serving.Go(func() { n.served(n.target.opts.protocol(), serve(l)) })
	if n.thriftListener != nil {
		n.thrift = thrift.NewServer(n.dev, n.sw.ID)
		n.thrift.LogTo(n.target.opts.Log.With("switch", n.sw.Name))
		s, l := n.thrift, gate.Paced(n.thriftListener, n.dev.Busy)
		n.serving.Go(func() { n.served("Thrift", s.Serve(l)) })
	}
	n.addPorts(n.ends)
	return nil
}

// load links a program that reports packets in endless loops in the log.
func (n *node) load(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
	const most = 3
	log, said := n.target.opts.Log.With("switch", n.sw.Name), 0
	o.Endless = func(e dataplane.Ended) bool { log.Warn(e.Endless()); return false }
	o.Ended = func(e dataplane.Ended) {
		if said++; said <= most {
			log.Warn(e.String())
		}
	}
	return n.target.opts.Load(program, o)
}

// control creates the server for controllers.
func (n *node) control() (serve func(net.Listener) error, err error) {
	log := n.target.opts.Log.With("switch", n.sw.Name)
	if n.target.opts.BfRt {
		n.bfrt, err = server.New(n.dev, server.Options{Arch: string(n.arch), Log: log})
		if err != nil {
			return nil, err
		}
		return n.bfrt.Serve, nil
	}
	n.server, err = p4rt.NewServer(n.dev, p4rt.Options{DeviceID: n.sw.ID, Log: log})
	if err != nil {
		return nil, err
	}
	return n.server.Serve, nil
}

// served logs the reason why a server ended, unless it was stopped.
func (n *node) served(what string, err error) {
	if err != nil {
		n.target.opts.Log.Error("a server ends", "server", what, "switch", n.sw.Name, "error", err)
	}
}

// addPorts opens several ports in parallel: the kernel takes about 10 ms for a packet socket,
// mostly waiting.
func (n *node) addPorts(ends []portEnd) {
	ports, errs := make([]p4rt.Port, len(ends)), make([]error, len(ends))
	var opening sync.WaitGroup
	for i, e := range ends {
		opening.Go(func() { ports[i], errs[i] = e.wire.open() })
	}
	opening.Wait()
	for i, e := range ends {
		n.addPort(e, ports[i], errs[i])
	}
}

func (n *node) addPort(e portEnd, p p4rt.Port, err error) {
	failed := func(err error) {
		n.target.opts.Log.Error("a port fails", "switch", n.sw.Name, "port", e.port, "error", err)
	}
	if c := n.target.opts.Captures; err == nil && c != nil {
		p, err = c.Tap(fmt.Sprintf("%s-port%d", n.sw.Name, e.port), p)
	}
	if err == nil {
		err = n.dev.AddPort(e.port, p, failed)
	}
	if err != nil {
		failed(err)
		return
	}
	n.dev.SetPortUp(e.port, e.wire.up())
	if e.bits > 0 {
		n.dev.SetPortRate(e.port, e.bits)
	}
}

// listen opens the addresses. An occupied Thrift address is not an error of the
// node; tellTaken logs it.
func (n *node) listen() (err error) {
	if n.target.opts.Memory {
		n.memory = bufconn.Listen(1 << 16)
		n.grpc = n.memory
		return nil
	}
	const anyPort = "127.0.0.1:0"
	address, thriftAddress := n.sw.GRPC, n.sw.Thrift
	if n.target.opts.AnyPort {
		address, thriftAddress = anyPort, anyPort
	}
	if n.address != "" {
		address = n.address
	}
	if n.grpc, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("serving %s at %s: %w", n.target.opts.protocol(), address, bare(err))
	}
	n.address = n.grpc.Addr().String()
	switch {
	case thriftAddress == "", n.target.opts.BfRt:
	case fabric.Remote(thriftAddress):
		n.target.opts.Log.Warn("no Thrift: it has neither encryption nor passwords, and the address leaves this machine", "switch", n.sw.Name, "address", thriftAddress)
	default:
		if n.thriftListener, err = net.Listen("tcp", thriftAddress); err != nil {
			n.thriftListener = nil
			n.target.taken = append(n.target.taken, fmt.Sprintf("%s (%s)", thriftAddress, n.sw.Name))
		}
	}
	return nil
}

// bare returns an error of package net without the operation and the address.
func bare(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// stop ends the node at once.
func (n *node) stop() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	var err error
	if n.server != nil {
		n.server.Stop(now)
	}
	if n.bfrt != nil {
		n.bfrt.Stop(now)
	}
	if n.grpc != nil {
		n.grpc.Close()
	}
	if n.thrift != nil {
		n.thrift.Close()
	}
	if n.thriftListener != nil {
		n.thriftListener.Close()
	}
	if n.dev != nil {
		err = n.dev.Close()
	}
	n.serving.Wait()
	n.dev, n.server, n.bfrt, n.thrift, n.grpc, n.thriftListener, n.memory = nil, nil, nil, nil, nil, nil, nil
	return err
}

// sharedLoader returns a function that loads BMv2 JSON. It parses each program
// once.
func sharedLoader() func([]byte, dataplane.Options) (*dataplane.Switch, error) {
	type program struct {
		once   sync.Once
		config *bmv2.Config
		err    error
	}
	var mu sync.Mutex
	programs := map[[sha256.Size]byte]*program{}
	return func(text []byte, o dataplane.Options) (*dataplane.Switch, error) {
		sum := sha256.Sum256(text)
		mu.Lock()
		p := programs[sum]
		if p == nil {
			p = &program{}
			programs[sum] = p
		}
		mu.Unlock()
		p.once.Do(func() { p.config, p.err = bmv2.Load(text) })
		if p.err != nil {
			return nil, p.err
		}
		return dataplane.New(p.config, o)
	}
}
