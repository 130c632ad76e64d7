package ping

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Spaces gives access to hosts in network namespaces. In calls f in the namespace of a host.
type Spaces interface {
	In(host string, f func() error) error
}

// InSpaces returns a prober that sends ICMP echo requests from the hosts. The kernel
// answers them.
func InSpaces(s Spaces) Prober { return spaces{s} }

type spaces struct{ in Spaces }

// late is the time after which a packet without a reply no longer counts as in flight.
const late = 200 * time.Millisecond

// A round is one call of Probe.
type round struct {
	o       Options
	pairs   []Pair
	marker  []byte
	conns   map[string]net.PacketConn
	tokens  chan struct{} // limits the packets in flight
	readers sync.WaitGroup

	mu      sync.Mutex
	sent    []time.Time // times of sending, by number
	replied []bool
	results []Result
	missing int           // replies missing in this round
	turn    int           // the first number of this round
	quiet   chan struct{} // closed when everything is sent and no reply is missing; nil before
}

// Probe sends packets between hosts.
func (s spaces) Probe(ctx context.Context, pairs []Pair, o Options) (_ []Result, err error) {
	o = o.complete()
	r := &round{o: o, pairs: pairs, marker: make([]byte, markerSize), conns: map[string]net.PacketConn{}, results: make([]Result, len(pairs))}
	rand.Read(r.marker)
	defer func() {
		for _, c := range r.conns {
			c.Close()
		}
		r.readers.Wait()
	}()
	for i, p := range pairs {
		r.results[i] = Result{From: p.From.Name, To: p.To.Name}
		if err := r.open(s.in, p.From); err != nil {
			return nil, err
		}
	}
	r.tokens = make(chan struct{}, max(32, 2*len(r.conns)))
	stop := func() map[uint32][]fabric.End { return nil }
	if o.Trace != nil {
		if stop, err = o.Trace(r.marker); err != nil {
			return nil, err
		}
	}
	err = r.sendAll(ctx)
	hops := stop()
	for n := range r.sent {
		i := n % len(pairs)
		if sent := hops[uint32(n)]; sent != nil && (r.replied[n] || r.results[i].Received == 0) {
			r.results[i].Path, _ = Way(pairs[i].To, sent)
		}
	}
	return r.results, err
}

// open opens the socket of a sender and starts reading its replies.
func (r *round) open(in Spaces, h *fabric.Host) error {
	if r.conns[h.Name] != nil {
		return nil
	}
	return in.In(h.Name, func() error {
		network := "ip4:icmp"
		if h.IP.Addr().Is6() {
			network = "ip6:ipv6-icmp"
		}
		c, err := net.ListenPacket(network, h.IP.Addr().String())
		if err != nil {
			return fmt.Errorf("host %s: opening a socket for ICMP: %w", h.Name, err)
		}
		r.conns[h.Name] = c
		r.readers.Go(func() { r.read(c) })
		return nil
	})
}

// sendAll sends the packets in rounds over all pairs, and waits for the replies.
func (r *round) sendAll(ctx context.Context) error {
	for turn := range r.o.Count {
		for i := range r.pairs {
			if r.o.Until && r.reached(i) {
				r.skip()
				continue
			}
			select {
			case r.tokens <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			r.send(i)
		}
		wait := r.o.Wait
		if r.o.Until { // the first rounds wait only briefly
			wait = min(wait, late<<turn)
		}
		if err := r.settle(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) reached(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results[i].Received > 0
}

// skip skips a number, because the number modulo the pairs identifies a packet's
// pair.
func (r *round) skip() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.replied = append(r.sent, time.Time{}), append(r.replied, true)
}

func (r *round) send(i int) {
	p := r.pairs[i]
	r.mu.Lock()
	n := uint32(len(r.sent))
	r.sent, r.replied = append(r.sent, time.Now()), append(r.replied, false)
	r.results[i].Sent++
	r.missing++
	r.mu.Unlock()
	time.AfterFunc(late, func() { r.free(n) })
	// A packet that the host's kernel rejects, for example without a route, counts as lost.
	r.conns[p.From.Name].WriteTo(echo(p.To.IP.Addr().Is6(), n, payload(r.marker, n)), &net.IPAddr{IP: p.To.IP.Addr().AsSlice()})
}

// free releases the token of a late packet. If a reply has arrived, its token is
// already released.
func (r *round) free(n uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.replied[n] {
		<-r.tokens
	}
}

// settle waits until no reply is missing.
func (r *round) settle(ctx context.Context, wait time.Duration) error {
	r.mu.Lock()
	quiet := make(chan struct{})
	if r.quiet = quiet; r.missing == 0 {
		r.quiet = nil
		close(quiet)
	}
	r.mu.Unlock()
	select {
	case <-quiet:
	case <-time.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet, r.missing, r.turn = nil, 0, len(r.sent)
	return nil
}

func (r *round) read(c net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		n, _, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		p := buf[:n]
		if n < 8+24+markerSize+4 || p[0] != 0 && p[0] != 129 || !bytes.Equal(p[n-4-markerSize:n-4], r.marker) {
			continue
		}
		r.replyTo(binary.BigEndian.Uint32(p[n-4:]))
	}
}

func (r *round) replyTo(n uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(n) >= len(r.sent) || r.replied[n] {
		return
	}
	r.replied[n] = true
	took := time.Since(r.sent[n])
	if took < late {
		select {
		case <-r.tokens:
		default:
		}
	}
	one := &r.results[int(n)%len(r.pairs)]
	one.RTT = (one.RTT*time.Duration(one.Received) + took) / time.Duration(one.Received+1)
	one.Received++
	if int(n) < r.turn {
		return
	}
	if r.missing--; r.missing == 0 && r.quiet != nil {
		close(r.quiet)
		r.quiet = nil
	}
}
