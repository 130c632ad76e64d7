package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

var (
	_ target.Linker    = (*Target)(nil)
	_ target.Restarter = (*Target)(nil)
)

// LinkDown reports whether a link is down.
func (t *Target) LinkDown(l fabric.Link) (bool, error) {
	if t.opts.Still {
		return l.Down, nil // links belong to the simulator
	}
	wires, err := t.wires(l)
	if err != nil {
		return false, err
	}
	return !wires[0].up(), nil
}

func (t *Target) wires(l fabric.Link) ([]wire, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.links[linkEnds{l.A, l.B}]; len(w) > 0 {
		return w, nil
	}
	return nil, fmt.Errorf("there is no link %v", l)
}

// SetLink sets the state and the properties of a link. The link of a host keeps its
// initial rate and delay, and has no jitter.
func (t *Target) SetLink(l fabric.Link, r target.Random) error {
	wires, err := t.wires(l)
	if err != nil {
		return err
	}
	for _, w := range wires {
		switch w := w.(type) {
		case *end:
			if t.opts.Rates {
				w.keep(uint64(l.Rate), l.Delay)
				t.setPortRate(w.at, uint64(l.Rate))
			}
		case *outlet:
			if r.Jitter > 0 || t.opts.Rates && (w.bits != uint64(l.Rate) || w.delay != l.Delay) {
				return fmt.Errorf("link %v of a host: its rate, delay and jitter cannot change while it is up: %w", l, errors.ErrUnsupported)
			}
		}
		w.loses(r)
		w.setUp(!l.Down)
	}
	return nil
}

// setPortRate sets the sending rate of a switch's port, now and after restarts.
func (t *Target) setPortRate(at fabric.End, bits uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[at.Node]
	if n == nil {
		return
	}
	for i := range n.ends {
		if n.ends[i].port == uint32(at.Port) {
			n.ends[i].bits = bits
		}
	}
	if n.dev != nil {
		n.dev.SetPortRate(uint32(at.Port), bits)
	}
}

// A trace records which ports send marked packets, which end in the marker and a number.
type trace struct {
	marker []byte

	mu   sync.Mutex
	hops map[uint32][]fabric.End
}

// most limits the recorded hops of a packet, which may loop.
const most = 64

// sent records that a port has sent a packet. A nil trace records nothing.
func (r *trace) sent(at fabric.End, packet []byte) {
	if r == nil || len(packet) < len(r.marker)+4 || at.Node == "" {
		return
	}
	number := packet[len(packet)-4:]
	if !bytes.HasSuffix(packet[:len(packet)-4], r.marker) {
		return
	}
	n := binary.BigEndian.Uint32(number)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hops[n]) < most {
		r.hops[n] = append(r.hops[n], at)
	}
}

// snapshot copies the hops of packets from a number on.
func (r *trace) snapshot(first uint32) map[uint32][]fabric.End {
	r.mu.Lock()
	defer r.mu.Unlock()
	hops := map[uint32][]fabric.End{}
	for n, list := range r.hops {
		if n >= first {
			hops[n] = slices.Clone(list)
		}
	}
	return hops
}

// Trace records the paths of packets that end in the marker and a number of four
// bytes. stop ends the recording and returns, for each packet, the ports that sent
// it in order. Only one trace runs at a time.
func (t *Target) Trace(marker []byte) (stop func() map[uint32][]fabric.End, err error) {
	r := &trace{marker: marker, hops: map[uint32][]fabric.End{}}
	if !t.trace.CompareAndSwap(nil, r) {
		return nil, errors.New("another trace runs")
	}
	return func() map[uint32][]fabric.End {
		t.trace.Store(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.hops
	}, nil
}
