package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// port is the TCP port on which hosts receive flows.
const port = 5001

// Run sends the flows, which must be in order of their start times, and returns
// their outcomes. Flows that have not ended after the drain time, or when ctx
// is done, are aborted. The error concerns the network, not single flows.
func Run(ctx context.Context, n Network, flows []Flow, o Options) ([]Outcome, error) {
	r := &run{n: n, o: o, flows: flows, outcomes: make([]Outcome, len(flows)), senders: map[netip.AddrPort]int{}, open: map[net.Conn]bool{}}
	defer r.close()
	for i := range flows {
		f := &flows[i]
		to, _ := r.to(f)
		if from := n.Address(f.From); from.Is6() != to.Is6() {
			return nil, fmt.Errorf("flow from %s (%v) to %v: want addresses of one version of IP", f.From, from, to)
		}
	}
	listen, receive, send, closed := r.listen, func() {}, r.send, r.close
	if o.RDMA != nil {
		q, err := newRDMA(r)
		if err != nil {
			return nil, err
		}
		listen, receive, send, closed = q.listen, q.start, q.send, q.close
		defer q.close()
	}
	if err := listen(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.begin = time.Now()
	receive()
	for i, f := range flows {
		if !r.sleep(ctx, f.Start) {
			break
		}
		r.work.Go(func() { send(ctx, i) })
	}
	done := make(chan struct{})
	go func() {
		r.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-time.After(o.Drain):
	case <-ctx.Done():
		err = ctx.Err()
	}
	cancel()
	closed()
	<-done
	r.receivers.Wait()
	return r.outcomes, errors.Join(err, r.failed)
}

// A run is the state of Run.
type run struct {
	n     Network
	o     Options
	flows []Flow
	begin time.Time

	work      sync.WaitGroup // senders
	receivers sync.WaitGroup

	mu        sync.Mutex
	outcomes  []Outcome
	senders   map[netip.AddrPort]int // flow by its sender's address
	listeners []net.Listener
	open      map[net.Conn]bool
	closed    bool
	ended     int
	failed    error
}

// sleep waits until a time after the beginning. It returns false when ctx is
// done.
func (r *run) sleep(ctx context.Context, at time.Duration) bool {
	wait := at - time.Since(r.begin)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// listen makes every receiving host accept connections.
func (r *run) listen() error {
	type place struct {
		host    string
		address netip.Addr
		port    int
	}
	there := map[place]bool{}
	var places []place
	for _, f := range r.flows {
		to, port := r.to(&f)
		names := []string{f.To}
		if f.Service != nil {
			names = f.Service.Servers
		}
		for _, name := range names {
			p := place{name, r.n.Address(name), port}
			if f.Service != nil && f.Service.Direct {
				p.address = to
			}
			if !there[p] {
				there[p] = true
				places = append(places, p)
			}
		}
	}
	for _, p := range places {
		l, err := r.listener(p.host, p.address, p.port)
		if err != nil {
			return fmt.Errorf("receiving on host %s: %w", p.host, err)
		}
		r.listeners = append(r.listeners, l)
		r.receivers.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				r.receivers.Go(func() { r.receive(c) })
			}
		})
	}
	return nil
}

// to returns the address and port that a flow connects to.
func (r *run) to(f *Flow) (netip.Addr, int) {
	switch s := f.Service; {
	case s == nil:
		return r.n.Address(f.To), port
	case s.Address.Port() == 0:
		return s.Address.Addr(), port
	default:
		return s.Address.Addr(), int(s.Address.Port())
	}
}

func (r *run) listener(host string, address netip.Addr, port int) (net.Listener, error) {
	fd, err := r.n.Socket(host)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), host)
	defer f.Close() // the listener has a copy
	if err := r.setCongestion(fd); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, sockaddr(address, port)); err != nil {
		return nil, err
	}
	if err := unix.Listen(fd, 4096); err != nil {
		return nil, err
	}
	return net.FileListener(f)
}

func (r *run) setCongestion(fd int) error {
	if r.o.Congestion == "" {
		return nil
	}
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, r.o.Congestion)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w: %s is not available in this kernel", errCongestion, r.o.Congestion)
	}
	return err
}

func sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is6() {
		return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
	}
	return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
}

func portOf(a unix.Sockaddr) uint16 {
	if a, ok := a.(*unix.SockaddrInet6); ok {
		return uint16(a.Port)
	}
	return uint16(a.(*unix.SockaddrInet4).Port)
}

// send implements the sender's side of a flow.
func (r *run) send(ctx context.Context, i int) {
	f := &r.flows[i]
	o := &r.outcomes[i]
	c, err := r.connect(ctx, i)
	if err == nil {
		defer r.forget(c)
		if err = write(c, f.Bytes); err == nil {
			// The receiver closes the connection after the last byte, so
			// everything has been acknowledged.
			_, err = c.Read(make([]byte, 1))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c != nil {
		// The counts of the sender's kernel.
		if info := tcpInfo(c); info != nil {
			o.Sent, o.Retransmitted, o.Timeouts = int64(info.Data_segs_out), int64(info.Total_retrans), int64(info.Total_rto)
			o.RTT = time.Duration(info.Rtt) * time.Microsecond
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && o.Finished == 0 {
		o.Err = err
	}
	r.ended++
	if r.o.Done != nil {
		r.o.Done(r.ended)
	}
}

// connect opens the connection of a flow. The receiver identifies the flow by
// the sender's address.
func (r *run) connect(ctx context.Context, i int) (*net.TCPConn, error) {
	f := &r.flows[i]
	fd, err := r.n.Socket(f.From)
	if err != nil {
		r.mu.Lock()
		r.failed = errors.Join(r.failed, fmt.Errorf("sending from host %s: %w", f.From, err))
		r.mu.Unlock()
		return nil, err
	}
	file := os.NewFile(uintptr(fd), f.From)
	defer file.Close()
	if err := r.setCongestion(fd); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, sockaddr(r.n.Address(f.From), 0)); err != nil {
		return nil, err
	}
	local, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	from := netip.AddrPortFrom(r.n.Address(f.From), portOf(local))
	r.mu.Lock()
	r.senders[from] = i
	r.outcomes[i].Started = time.Since(r.begin)
	r.mu.Unlock()
	address, port := r.to(f)
	if err := finishConnect(ctx, fd, sockaddr(address, port)); err != nil {
		return nil, err
	}
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	if !r.remember(c) {
		return nil, net.ErrClosed
	}
	return c.(*net.TCPConn), nil
}

// pollInterval is how often a pending connection checks its context.
const pollInterval = 100 // ms

// finishConnect connects and waits for the result.
func finishConnect(ctx context.Context, fd int, to unix.Sockaddr) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	err := unix.Connect(fd, to)
	for errors.Is(err, unix.EINPROGRESS) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, e := unix.Poll(fds, pollInterval); e != nil && !errors.Is(e, unix.EINTR) {
			return e
		} else if n == 0 {
			continue
		}
		code, e := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if e != nil {
			return e
		}
		if code == 0 {
			return nil
		}
		return syscall.Errno(code)
	}
	return err
}

// chunk is the number of bytes written or read at once.
const chunk = 1 << 16

var zeros [chunk]byte

func write(c *net.TCPConn, bytes int64) error {
	for bytes > 0 {
		n, err := c.Write(zeros[:min(bytes, chunk)])
		bytes -= int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// receive implements the receiver's side of a flow.
func (r *run) receive(c net.Conn) {
	if !r.remember(c) {
		return
	}
	defer r.forget(c)
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return
	}
	r.mu.Lock()
	i, ok := r.senders[from]
	r.mu.Unlock()
	if !ok {
		return // not a connection of this run
	}
	left := r.flows[i].Bytes
	buf := make([]byte, min(left, chunk))
	for left > 0 && err == nil {
		var n int
		n, err = c.Read(buf)
		left -= int64(n)
	}
	at := time.Since(r.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.outcomes[i]
	o.Received = r.flows[i].Bytes - left
	if left <= 0 {
		o.Finished = at
	}
	if info := tcpInfo(c.(*net.TCPConn)); info != nil {
		o.OutOfOrder = int64(info.Rcv_ooopack)
	}
}

func tcpInfo(c *net.TCPConn) (info *unix.TCPInfo) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	raw.Control(func(fd uintptr) {
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err != nil {
			info = nil
		}
	})
	return info
}

// remember records a connection, so that it can be closed at the end. It
// returns false after the end.
func (r *run) remember(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return false
	}
	r.open[c] = true
	return true
}

func (r *run) forget(c net.Conn) {
	r.mu.Lock()
	delete(r.open, c)
	r.mu.Unlock()
	c.Close()
}

// close closes all listeners and connections.
func (r *run) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, l := range r.listeners {
		l.Close()
	}
	for c := range r.open {
		c.(*net.TCPConn).SetLinger(0) // reset, so that the kernel keeps no state
		c.Close()
	}
}
