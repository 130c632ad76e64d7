// Package server serves BfRt, the runtime interface of Intel's SDE for Tofino, over
// gRPC for an embedded switch. To the SDE's clients, the switch looks like a chip.
//
// Everything is a table of a schema (package bfrt): the program's tables, and the
// tables of every chip for ports, mirror sessions, the replication engine and the
// traffic manager. Each pipe has registers, counters, meters and entries of its own.
// A target selects pipes.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	encproto "google.golang.org/grpc/encoding/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// validate completes the options for a chip with at most the given number of pipes.
func (o *Options) validate(most int) error {
	if o.Arch != bmv2.TNA && o.Arch != bmv2.T2NA {
		return errors.New("BfRt is for programs for Tofino (tna, t2na)")
	}
	o.Pipes = cmp.Or(o.Pipes, most)
	if o.Pipes < 1 || o.Pipes > most {
		return fmt.Errorf("%d pipes: want 1 to %d", o.Pipes, most)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o.Limits.Complete()
}

// simCalls describes the calls to the simulator of a chip.
var simCalls = p4rt.SimCalls{
	Service: wire.ServiceName,
	Turns:   []string{"Write", "Read", "SetForwardingPipelineConfig"},
	Reason:  reasonOf,
}

// New returns a server for d, without a program. A simulated chip has one pipe, and its
// clients get notifications at moments of the simulator only.
func New(d *p4rt.Device, o Options) (*Server, error) {
	sim := d.Simulator()
	if err := o.validate(ifElse(sim == nil, maxPipes, 1)); err != nil {
		return nil, err
	}
	s := &Server{dev: d, opts: o, stop: make(chan struct{}), idle: p4rt.NewIdleWatch(), turn: make(chan struct{}, 1), cpu: d.CPU()}
	s.chip = newFixed(s)
	s.gate = gate.New(&s.opts.Limits, wire.ServiceName, d.Busy, o.Log)
	opts := append(s.gate.Options(o.TLS, &codec{CodecV2: encoding.GetCodecV2(encproto.Name)}), grpc.MaxSendMsgSize(1<<30))
	if sim != nil {
		opts = append(opts, simCalls.Options(sim)...)
		sim.AtMoments(s.notify)
		sim.Generator(s.generated)
	} else {
		s.work.Go(func() { s.idle.Run(s.stop, s.reportIdle) })
		s.work.Go(s.generate)
		d.OnPorts(s.portsChanged)
	}
	s.grpc = grpc.NewServer(opts...)
	wire.Register(s.grpc, s)
	return s, nil
}

// notify sends all notifications that are due. The simulator calls it when the clock
// stops.
func (s *Server) notify() {
	s.tellPorts()
	s.reportIdle()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.programs {
		for _, list := range slices.Sorted(maps.Keys(p.learners)) {
			p.tellLearned(p.learners[list])
		}
	}
}

// generated is the generator's due for a simulator.
func (s *Server) generated(now time.Duration) ([]dataplane.Generated, time.Duration, bool) {
	s.mu.RLock()
	g := s.chip.generator
	s.mu.RUnlock()
	return g.due(now)
}

// generate sends the packets of the generator in real time until the server stops. After
// each turn it pauses as long as the packets take at the largest rate.
func (s *Server) generate() {
	for {
		list, next, more := s.generated(s.dev.Elapsed())
		if len(list) > 0 {
			s.dev.Generate(list)
		}
		s.mu.RLock()
		wake := s.chip.generator.wake
		s.mu.RUnlock()
		pause := time.NewTimer(max(gaps(len(list)), next-s.dev.Elapsed()))
		if !more {
			pause.Stop()
		}
		select {
		case <-s.stop:
			return
		case <-wake:
			time.Sleep(gaps(len(list))) // a client that changes applications gets no more packets
		case <-pause.C:
		}
	}
}

// gaps returns the time that n packets take at the largest rate.
func gaps(n int) time.Duration { return time.Duration(n) * generatorGap }

// Serve answers clients on l until Stop is called.
func (s *Server) Serve(l net.Listener) error {
	return s.gate.Serve(s.grpc, l)
}

// Stop ends streams, lets requests finish until ctx is done, and then closes all
// connections.
func (s *Server) Stop(ctx context.Context) {
	s.stopOnce.Do(func() { close(s.stop) })
	gate.EndServer(ctx, s.grpc)
	s.work.Wait()
}
