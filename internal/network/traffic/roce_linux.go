package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A rdma sends the flows of a run as messages of RoCEv2. Each host has a socket at port 4791,
// where data, acknowledgments and NAKs of all its flows arrive. Packets of flow n have the
// source port 10000 + n in both directions.
type rdma struct {
	r     *run
	pairs []*queuePair // by flow
	hosts map[string]*net.UDPConn
}

// firstSource and sources are the source ports of flows.
const (
	firstSource = 10000
	sources     = 50000
)

// A queuePair is a flow of a run.
type queuePair struct {
	from, to netip.Addr

	mu       sync.Mutex
	sender   *roceSender
	receiver *roceReceiver
	back     *net.UDPConn // of the receiving host; nil before and after the flow
	wake     chan struct{}
}

func newRDMA(r *run) (*rdma, error) {
	q := &rdma{r: r, hosts: map[string]*net.UDPConn{}}
	if len(r.flows) > psnMask {
		return nil, fmt.Errorf("%d flows: RDMA has at most %d queue pairs", len(r.flows), psnMask)
	}
	for i, f := range r.flows {
		if f.Service != nil {
			return nil, fmt.Errorf("flow %d goes to a service: an RDMA connection has one host", i+1)
		}
		pair := uint32(i + 1)
		q.pairs = append(q.pairs, &queuePair{
			from: r.n.Address(f.From), to: r.n.Address(f.To), wake: make(chan struct{}, 1),
			sender: newRoceSender(pair, f.Bytes), receiver: &roceReceiver{pair: pair, bytes: f.Bytes},
		})
	}
	return q, nil
}

// listen opens the sockets of all hosts.
func (q *rdma) listen() error {
	for _, f := range q.r.flows {
		for _, host := range []string{f.From, f.To} {
			if q.hosts[host] != nil {
				continue
			}
			c, err := q.socket(host, rocePort)
			if err != nil {
				return fmt.Errorf("receiving on host %s: %w", host, err)
			}
			q.hosts[host] = c
		}
	}
	return nil
}

// start processes the packets of all hosts until their sockets are closed.
func (q *rdma) start() {
	for host, c := range q.hosts {
		q.r.receivers.Go(func() { q.receive(q.r.n.Address(host), c) })
	}
}

// socket creates a UDP socket of a host. Flows with the same source port share it.
func (q *rdma) socket(host string, port int) (*net.UDPConn, error) {
	fd, err := q.r.o.RDMA(host)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), host)
	defer f.Close() // the connection has a copy
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, sockaddr(q.r.n.Address(host), port)); err != nil {
		return nil, err
	}
	c, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// receive processes the packets of a host until its socket is closed.
func (q *rdma) receive(host netip.Addr, c *net.UDPConn) {
	buf, answer := make([]byte, 1<<16), make([]byte, 0, 64)
	for {
		n, peer, err := c.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		h, payload, ok := parseBTH(buf[:n])
		if err != nil || !ok || h.pair == 0 || int(h.pair) > len(q.pairs) {
			continue
		}
		i := int(h.pair) - 1
		p, now := q.pairs[i], time.Since(q.r.begin)
		switch from := peer.Addr().Unmap(); {
		case h.opcode == opAck && host == p.from && from == p.to:
			p.mu.Lock()
			p.sender.acknowledged(h, now)
			p.mu.Unlock()
			p.wakeUp()
		case h.opcode != opAck && host == p.to && from == p.from:
			p.mu.Lock()
			reply, ok := p.receiver.data(h, payload)
			back := p.back
			if p.receiver.done {
				q.finish(i, now)
			}
			p.mu.Unlock()
			if ok && back != nil {
				answer = append(reply.appendTo(answer[:0]), zeros[:icrcLen]...)
				back.WriteToUDPAddrPort(answer, netip.AddrPortFrom(p.from, rocePort))
			}
		}
	}
}

func (p *queuePair) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// finish records that the receiver has the whole message.
func (q *rdma) finish(i int, now time.Duration) {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	if o := &q.r.outcomes[i]; o.Finished == 0 {
		o.Finished = now
	}
}

// send sends a flow until all packets are acknowledged or ctx is done.
func (q *rdma) send(ctx context.Context, i int) {
	p, f := q.pairs[i], &q.r.flows[i]
	err := q.transfer(ctx, i)
	p.mu.Lock()
	s, received, early := *p.sender, p.receiver.received(), p.receiver.early
	p.mu.Unlock()
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	o := &q.r.outcomes[i]
	o.Sent, o.Retransmitted, o.Timeouts, o.OutOfOrder, o.RTT, o.Received = s.sent, s.again, s.timeouts, early, s.rtt, received
	if err != nil && o.Finished == 0 {
		o.Err = fmt.Errorf("sending from host %s: %w", f.From, err)
	}
	q.r.ended++
	if q.r.o.Done != nil {
		q.r.o.Done(q.r.ended)
	}
}

func (q *rdma) transfer(ctx context.Context, i int) error {
	p, f := q.pairs[i], &q.r.flows[i]
	source := firstSource + (i+1)%sources
	ahead, err := q.socket(f.From, source)
	if err != nil {
		return err
	}
	defer ahead.Close()
	back, err := q.socket(f.To, source)
	if err != nil {
		return err
	}
	defer back.Close()
	p.mu.Lock()
	p.back = back
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.back = nil
		p.mu.Unlock()
	}()
	q.r.mu.Lock()
	q.r.outcomes[i].Started = time.Since(q.r.begin)
	q.r.mu.Unlock()
	buf, to := make([]byte, 0, 2048), netip.AddrPortFrom(p.to, rocePort)
	for {
		p.mu.Lock()
		packet := p.sender.packet(time.Since(q.r.begin), buf)
		ended, wait := p.sender.ended(), p.sender.timeout()
		p.mu.Unlock()
		switch {
		case ended:
			return nil
		case packet != nil:
			if _, err := ahead.WriteToUDPAddrPort(packet, to); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err // a full queue loses the packet, as a switch does
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-p.wake:
		case <-timer.C:
			p.mu.Lock()
			p.sender.expire()
			p.mu.Unlock()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// close closes the sockets of all hosts. They may be closed already.
func (q *rdma) close() {
	for _, c := range q.hosts {
		c.Close()
	}
}
