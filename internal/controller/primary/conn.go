package primary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// Options describe how to become primary. Election is the first election id to use and
// must not be 0; controller.DeployOptions documents the other fields.
type Options struct {
	Election         ElectionID
	Takeover, Backup bool
	DryRun           bool // only read, without an election
	Timeout          time.Duration
	Log              *slog.Logger
}

// A Conn is the connection to one switch. Its goroutine opens a stream and claims to be primary,
// and does so again after the stream has ended.
type Conn struct {
	name   string
	target target.Target
	opts   Options
	end    context.CancelFunc
	ended  chan struct{}

	// Busy must be held while reading and changing the contents of the switch.
	Busy sync.Mutex

	mu       sync.Mutex
	changed  chan struct{} // closed when one of the following fields changes
	election ElectionID
	epoch    int // number of times that this controller has become primary
	link     *Link
	err      error // reason for not being connected or primary
	settled  bool  // waiting will not resolve err
	refused  bool  // another controller is primary
	waits    bool  // a backup controller that has logged that it waits

	// vacant reports whether the switch has no primary.
	vacant bool
	// displaced is set when another controller becomes primary after this one. This controller
	// then never writes again, even after the other one disconnects, to avoid undoing the other's
	// changes.
	displaced bool
}

// A Link is an open stream.
type Link struct {
	Endpoint target.Endpoint
	Client   p4v1.P4RuntimeClient
	send     func(*p4v1.StreamMessageRequest) error
	primary  bool // guarded by the mutex of the Conn
	claims   int  // number of attempts with larger election ids
}

// maxClaims is how often a controller tries a larger election id before it gives up.
const maxClaims = 16

// The pause between connection attempts doubles from the first value to the second.
const (
	FirstPause = 20 * time.Millisecond
	LastPause  = 2 * time.Second
)

// New starts connecting to the named switch of a target, until ctx is done or the Conn is closed.
func New(ctx context.Context, name string, t target.Target, o Options) *Conn {
	ctx, end := context.WithCancel(ctx)
	c := &Conn{
		name: name, target: t, opts: o, end: end, ended: make(chan struct{}),
		changed: make(chan struct{}), election: o.Election,
	}
	go c.run(ctx)
	return c
}

// End ends the connection without waiting for its goroutine.
func (c *Conn) End() { c.end() }

// Close ends the connection and waits for its goroutine.
func (c *Conn) Close() {
	c.end()
	<-c.ended
}

// run connects repeatedly until ctx is done.
func (c *Conn) run(ctx context.Context) {
	defer close(c.ended)
	pause := FirstPause
	for ctx.Err() == nil {
		before := c.State().Epoch
		again, err := c.session(ctx)
		if c.State().Epoch != before {
			pause = FirstPause
		}
		c.down(err)
		if again {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, LastPause)
	}
}

// A State is a snapshot of a connection's state.
type State struct {
	Link    *Link           // nil: not connected
	Primary bool            // this controller is primary on the link
	Epoch   int             // number of times that it has become primary
	Err     error           // reason for not being connected or primary
	Changed <-chan struct{} // closed when any of this changes

	settled bool
}

// State returns the current state of the connection.
func (c *Conn) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{c.link, c.link != nil && c.link.primary, c.epoch, c.err, c.changed, c.settled}
}

// session runs one stream from start to end. It returns true if the next stream should start at
// once, with another election id.
func (c *Conn) session(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := c.target.Endpoint(c.name)
	if err != nil {
		return false, fmt.Errorf("%w: %w", target.ErrUnreachable, err)
	}
	cc, err := Dial(e, c.opts.Timeout)
	if err != nil {
		return false, err
	}
	defer cc.Close()
	client := e.Open(cc)
	c.mu.Lock()
	c.vacant = false
	c.mu.Unlock()
	if c.opts.DryRun {
		return false, c.observe(ctx, &Link{Endpoint: e, Client: client, primary: true})
	}
	stream, err := client.StreamChannel(ctx)
	if err != nil {
		return false, c.streamError(e, err)
	}
	var sending sync.Mutex
	l := &Link{Endpoint: e, Client: client, send: func(m *p4v1.StreamMessageRequest) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.Send(m)
	}}
	return c.converse(l, stream, cancel)
}

// converse claims to be primary and receives messages until the stream ends.
func (c *Conn) converse(l *Link, stream p4v1.P4Runtime_StreamChannelClient, cancel func()) (again bool, err error) {
	e := l.Endpoint
	// The server may be silent later, but it must answer at first.
	var silent atomic.Bool
	watchdog := time.AfterFunc(c.opts.Timeout, func() {
		silent.Store(true)
		cancel()
	})
	defer watchdog.Stop()
	if err := l.send(c.claim(e)); err != nil {
		_, err = stream.Recv() // returns the cause
		return c.lost(e, err)
	}
	for {
		m, err := stream.Recv()
		watchdog.Stop()
		switch {
		case err != nil && silent.Load():
			return false, fmt.Errorf("%w: no answer from %s within %v", target.ErrUnreachable, e.Address, c.opts.Timeout)
		case err != nil:
			return c.lost(e, err)
		}
		if u := m.GetArbitration(); u != nil {
			if claim := c.arbitrated(l, u); claim {
				if err := l.send(c.claim(e)); err != nil {
					return c.lost(e, err)
				}
			}
		} else if e := m.GetError(); e != nil {
			c.opts.Log.Warn("the switch answers", "switch", c.name, "code", codes.Code(e.GetCanonicalCode()), "message", Clean(e.GetMessage()))
		}
	}
}

// observe opens a session without a stream. Reading does not need a stream, and
// without one the session does not disturb other controllers.
func (c *Conn) observe(ctx context.Context, l *Link) error {
	short, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	_, err := l.Client.GetForwardingPipelineConfig(short, &p4v1.GetForwardingPipelineConfigRequest{
		DeviceId: l.Endpoint.Device, ResponseType: p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY,
	})
	// An answer without a program also shows that the switch is reachable.
	if err != nil && status.Code(err) != codes.FailedPrecondition {
		return c.streamError(l.Endpoint, err)
	}
	c.mu.Lock()
	c.epoch++
	c.link, c.err, c.settled = l, nil, false
	c.announce()
	c.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// claim returns an arbitration message with the current election id. A controller that only
// watches sends it without an id.
func (c *Conn) claim(e target.Endpoint) *p4v1.StreamMessageRequest {
	u := &p4v1.MasterArbitrationUpdate{DeviceId: e.Device}
	c.mu.Lock()
	if c.claims() {
		u.ElectionId = c.election.proto()
	}
	c.mu.Unlock()
	return &p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: u}}
}

// claims reports whether to claim the role of primary instead of only asking for the
// current primary. Only --takeover may displace another controller. The caller holds
// c.mu.
func (c *Conn) claims() bool {
	return !c.election.IsZero() && !c.displaced && (c.vacant || c.opts.Takeover && c.epoch == 0)
}

// arbitrated records the current primary and reports whether to claim the role with a
// larger election id.
func (c *Conn) arbitrated(l *Link, u *p4v1.MasterArbitrationUpdate) (claim bool) {
	highest := electionOf(u.GetElectionId())
	c.mu.Lock()
	defer c.mu.Unlock()
	code := codes.Code(u.GetStatus().GetCode())
	if code == codes.OK && !c.claims() && !c.displaced {
		code = codes.NotFound // BMv2 treats a message without an id as a claim with id 0
	}
	switch code {
	case codes.OK:
		if !l.primary {
			c.epoch++
		}
		l.primary, c.link, c.err, c.settled, c.refused = true, l, nil, false, false
		if c.waits {
			c.waits = false
			c.opts.Log.Info("the other controller has disconnected: this one is primary", "switch", c.name)
		}
	case codes.NotFound:
		// There is no primary: the previous one has disconnected.
		l.primary, c.link, c.vacant = false, l, true
		switch claim = !c.displaced; {
		case !claim:
		case c.opts.Backup && !highest.IsZero():
			// The id is no larger than the id of the last primary. If that primary
			// reconnects before this claim arrives, it keeps the switch.
			c.election = highest
			if l.claims > 0 {
				c.election = highest.Next()
			}
		case c.election.Less(highest.Next()):
			c.election = highest.Next()
		}
	default:
		l.primary, c.link, c.err = false, l, notPrimary(highest)
		switch {
		case c.opts.Backup:
			if c.vacant = false; !c.waits {
				c.waits = true
				c.opts.Log.Info("another controller is primary: waiting until it disconnects", "switch", c.name, "election_id", highest)
			}
		case c.opts.Takeover && c.epoch == 0:
			c.election, claim = highest.Next(), true
		default:
			if c.epoch > 0 && !c.displaced {
				c.displaced = true
				c.opts.Log.Warn("another controller has taken over; this one leaves it the switch", "switch", c.name)
			}
			c.giveWay()
		}
	}
	if claim {
		if l.claims++; l.claims > maxClaims {
			claim, c.settled = false, true
			c.err = fmt.Errorf("%w: no election id makes this controller primary, not even %v", target.ErrRefused, c.election)
		}
	}
	c.announce()
	return claim
}

func notPrimary(highest ElectionID) error {
	if highest.IsZero() { // if there is no primary
		return &plan.Error{Err: target.ErrNotPrimary, Hint: "--takeover displaces it by reloading the program, --backup waits until it disconnects"}
	}
	return &plan.Error{
		Err:  fmt.Errorf("%w, with election id %v", target.ErrNotPrimary, highest),
		Hint: "--takeover makes this one primary, --backup waits until the other disconnects",
	}
}

// lost returns the reason why a stream has ended.
func (c *Conn) lost(e target.Endpoint, err error) (again bool, why error) {
	if status.Code(err) != codes.InvalidArgument {
		return false, c.streamError(e, err)
	}
	// The election id belongs to another live controller.
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.election
	switch {
	case c.opts.Takeover && c.epoch == 0:
		c.election = taken.Next()
		return true, notPrimary(taken)
	case c.opts.Backup && c.vacant:
		c.vacant = false
		return true, notPrimary(taken)
	}
	c.giveWay()
	return false, notPrimary(taken)
}

// giveWay accepts another controller as primary if it still is one a little later. A controller
// that has just ended remains primary until the switch notices. The caller holds c.mu.
func (c *Conn) giveWay() {
	if c.refused {
		return
	}
	c.refused, c.settled = true, false
	time.AfterFunc(c.opts.Timeout/10, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refused {
			c.settled = true
			c.announce()
		}
	})
}

// streamError returns the reason for having no stream, from the server's or network's status
// code.
func (c *Conn) streamError(e target.Endpoint, err error) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.OK:
		return &plan.Error{
			Err:  fmt.Errorf("%w at %s: %s", target.ErrUnreachable, e.Address, LastPart(s.Message())),
			Hint: "check that the switch is running; the key grpc of the topology sets its address",
		}
	}
	c.mu.Lock()
	c.settled = true
	c.mu.Unlock()
	hint := ""
	if s.Code() == codes.NotFound {
		hint = "the topology's id is the device id of the switch"
	}
	return &plan.Error{Err: fmt.Errorf("%w as device %d at %s: %s (%v)", target.ErrRefused, e.Device, e.Address, s.Message(), s.Code()), Hint: hint}
}

// LastPart returns the essential part of gRPC's message about a connection.
func LastPart(msg string) string {
	for _, intro := range []string{"desc = ", "Error while dialing: ", "connect: "} {
		if i := strings.LastIndex(msg, intro); i >= 0 {
			msg = msg[i+len(intro):]
		}
	}
	return strings.Trim(msg, `"`)
}

// down records that no stream is open.
func (c *Conn) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.err = nil, err
	c.announce()
}

// announce wakes all waiters. The caller holds c.mu.
func (c *Conn) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wait waits until this controller is primary, at most until ctx is done, and
// returns the link and its epoch.
func (c *Conn) Wait(ctx context.Context) (*Link, int, error) {
	for {
		s := c.State()
		switch {
		case s.Primary:
			return s.Link, s.Epoch, nil
		case s.settled && s.Err != nil:
			return nil, 0, s.Err
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			switch {
			case errors.Is(ctx.Err(), context.Canceled):
				return nil, 0, ctx.Err()
			case s.Err == nil:
				return nil, 0, fmt.Errorf("%w: no answer within %v", target.ErrUnreachable, c.opts.Timeout)
			}
			return nil, 0, s.Err
		}
	}
}

// Election returns the election id for writing.
func (c *Conn) Election() *p4v1.Uint128 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.election.proto()
}

// maxMessage is the size limit of received messages. A message may contain a
// program.
const maxMessage = 64 << 20

// Dial prepares a connection, which is established on first use.
func Dial(e target.Endpoint, timeout time.Duration) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if e.TLS != nil {
		creds = credentials.NewTLS(e.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithUnaryInterceptor(cleanCall), grpc.WithStreamInterceptor(cleanStream),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		// Conn decides about retries, not gRPC.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: LastPause, MaxDelay: LastPause, Multiplier: 1}, MinConnectTimeout: timeout}),
		// Servers in C++ close connections whose clients send keepalives more often than every
		// five minutes.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: timeout}),
	}
	if e.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.Dial(ctx) }))
	}
	cc, err := grpc.NewClient("passthrough:"+e.Address, options...)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", target.ErrUnreachable, e.Address, err)
	}
	return cc, nil
}

// PacketOut sends a packet to the switch.
func (c *Conn) PacketOut(packet []byte) error {
	s := c.State()
	if !s.Primary {
		return fmt.Errorf("sending a packet: %w", cmp.Or(s.Err, target.ErrUnreachable))
	}
	return s.Link.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: packet}}})
}
