package embedded

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// An outlet is a switch's end of the link to a host outside of this process. The
// host's side limits the rate towards the switch.
type outlet struct {
	at    fabric.End
	trace *atomic.Pointer[trace]
	port  func() (p4rt.Port, error) // opens the interface
	bits  uint64
	delay time.Duration

	random atomic.Pointer[target.Random] // random loss and jitter; nil: none

	lost atomic.Bool   // the link is down
	gone atomic.Uint64 // packets sent while the link was down

	mu     sync.Mutex
	onLink func(up bool)
}

// shortest is the smallest delay that is applied to a link to a host. An interface itself takes
// about 20 to 50 us.
const shortest = 100 * time.Microsecond

func (o *outlet) open() (p4rt.Port, error) {
	p, err := o.port()
	if err != nil {
		return nil, err
	}
	p = &barrier{p, o}
	if o.delay < shortest {
		return p, nil
	}
	l := newLink(o.at, fabric.End{}, new(atomic.Pointer[trace]))
	l.keep(o.bits, o.delay)
	l.a.open()
	l.b.open()
	return &detour{end: l.a, port: p}, nil
}

func (o *outlet) up() bool { return !o.lost.Load() }

func (o *outlet) setUp(up bool) {
	o.mu.Lock()
	tell := o.onLink
	o.mu.Unlock()
	if o.lost.Swap(!up) == up && tell != nil {
		tell(up)
	}
}

func (o *outlet) loses(r target.Random) {
	if r == (target.Random{}) {
		o.random.Store(nil)
		return
	}
	o.random.Store(&r)
}

// drops decides at random whether the link loses a packet.
func (o *outlet) drops() bool {
	r := o.random.Load()
	return r != nil && rand.Float64() < r.Loss
}

// A barrier is an interface that loses packets while its link is down.
type barrier struct {
	p4rt.Port
	o *outlet
}

// OnLink registers a function that receives the state of the link.
func (b *barrier) OnLink(f func(up bool)) {
	b.o.mu.Lock()
	defer b.o.mu.Unlock()
	b.o.onLink = f
}

// Receive delivers packets until Close.
func (b *barrier) Receive(deliver func(packets [][]byte)) error {
	return b.Port.Receive(func(packets [][]byte) {
		if !b.o.up() {
			return
		}
		if b.o.random.Load() != nil {
			packets = slices.DeleteFunc(packets, func([]byte) bool { return b.o.drops() })
		}
		deliver(packets)
	})
}

// Send sends a packet to the host.
func (b *barrier) Send(packet []byte) {
	b.o.trace.Load().sent(b.o.at, packet)
	if !b.o.up() || b.o.drops() {
		b.o.gone.Add(1)
		return
	}
	b.Port.Send(packet)
}

// Lost returns the packets lost by the interface, and by the link while it was down.
func (b *barrier) Lost() (in, out uint64) {
	if l, ok := b.Port.(interface{ Lost() (in, out uint64) }); ok {
		in, out = l.Lost()
	}
	return in, out + b.o.gone.Load()
}

// A detour sends packets through a link in this process that delays them, in both
// directions.
type detour struct {
	*end
	port p4rt.Port
}

// Receive delivers packets until Close.
func (d *detour) Receive(deliver func(packets [][]byte)) error {
	var pumps sync.WaitGroup
	pumps.Go(func() {
		d.far.Receive(func(packets [][]byte) {
			for _, p := range packets {
				d.port.Send(p)
			}
			d.port.Flush()
		})
	})
	failed := make(chan error, 1)
	pumps.Go(func() {
		failed <- d.port.Receive(func(packets [][]byte) {
			for _, p := range packets {
				d.far.Send(p)
			}
		})
		d.end.Close()
	})
	err := d.end.Receive(deliver)
	d.Close()
	pumps.Wait()
	return errors.Join(err, <-failed)
}

// Lost returns the packets lost by the interface and the link.
func (d *detour) Lost() (in, out uint64) {
	_, there := d.end.Lost()
	_, back := d.far.Lost()
	if l, ok := d.port.(interface{ Lost() (in, out uint64) }); ok {
		in, out = l.Lost()
	}
	return in + back, out + there
}

// Close ends Receive.
func (d *detour) Close() error {
	return errors.Join(d.port.Close(), d.end.Close(), d.far.Close())
}
