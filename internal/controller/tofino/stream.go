package tofino

import (
	"context"
	"io"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// A channel presents a BfRt stream as a stream of P4Runtime. The client that is bound to the
// program is the primary. BfRt does not reveal which client is bound. The channel therefore
// answers a query with no primary, and a claim with the result of a bind.
type channel struct {
	grpc.ClientStream // nil: its methods are not called
	s                 *session
	ctx               context.Context
	end               context.CancelFunc
	out               chan *p4v1.StreamMessageResponse
	subscribed        chan struct{}

	turn    sync.Mutex // serialises claims
	refused bool       // another client is bound, and a goroutine waits for its end

	mu  sync.Mutex
	err error // reason for the end of the channel
}

// rebind is the interval between attempts of a client that was refused.
const rebind = time.Second

// StreamChannel subscribes to notifications of the switch.
func (s *session) StreamChannel(ctx context.Context, _ ...grpc.CallOption) (p4v1.P4Runtime_StreamChannelClient, error) {
	ctx, end := context.WithCancel(ctx)
	stream, err := s.wire.StreamChannel(ctx)
	if err != nil {
		end()
		return nil, err
	}
	at := s.place()
	err = stream.Send(&wire.StreamMessageRequest{ClientId: s.client, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{
		DeviceId: at.device, IsMaster: at.config != nil, Notifications: &wire.Subscribe_Notifications{},
	}}})
	if err != nil {
		_, err = stream.Recv() // returns the cause
		end()
		return nil, err
	}
	c := &channel{s: s, ctx: ctx, end: end, out: make(chan *p4v1.StreamMessageResponse), subscribed: make(chan struct{})}
	go c.listen(stream)
	return c, nil
}

// fail ends the channel.
func (c *channel) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.end()
}

func (c *channel) listen(stream wire.StreamClient) {
	joined := false
	for {
		m, err := stream.Recv()
		if err != nil {
			c.fail(err)
			return
		}
		if sub := m.GetSubscribe(); sub != nil && !joined {
			if st := sub.GetStatus(); st.GetCode() != int32(codes.OK) {
				c.fail(status.ErrorProto(st))
				return
			}
			joined = true
			close(c.subscribed)
		}
		if p := m.GetSetForwardingPipelineConfigResponse(); p != nil && p.GetSetForwardingPipelineConfigResponseType() == wire.SetForwardingPipelineConfigResponseType_WARM_INIT_FINISHED {
			c.s.mu.Lock()
			own := c.s.pushed > 0
			if own {
				c.s.pushed--
			}
			c.s.mu.Unlock()
			if !own {
				c.fail(status.Error(codes.Unavailable, "another client has loaded a program"))
				return
			}
		}
	}
}

// Recv waits for an answer.
func (c *channel) Recv() (*p4v1.StreamMessageResponse, error) {
	select {
	case m := <-c.out:
		return m, nil
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = status.FromContextError(c.ctx.Err()).Err()
	}
	return nil, c.err
}

// Send accepts a claim or a query, and returns before the answer.
func (c *channel) Send(m *p4v1.StreamMessageRequest) error {
	if c.ctx.Err() != nil {
		return io.EOF
	}
	u := m.GetArbitration()
	if u == nil {
		return status.Error(codes.Unimplemented, "BfRt carries no packets: packets of the controller must come from the packet generator, or from a host at the CPU's port")
	}
	go c.arbitrate(u)
	return nil
}

func (c *channel) arbitrate(u *p4v1.MasterArbitrationUpdate) {
	select {
	case <-c.subscribed:
	case <-c.ctx.Done():
		return
	}
	if u.GetElectionId() == nil {
		c.answer(u, codes.NotFound)
		return
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	err := c.s.claim(c.ctx)
	if status.Code(err) == codes.AlreadyExists && c.refused {
		// A second claim while another client is bound asks for a takeover.
		err = c.s.takeOver(c.ctx)
	}
	switch status.Code(err) {
	case codes.OK:
		c.refused = false
		c.answer(u, codes.OK)
	case codes.AlreadyExists:
		c.answer(&p4v1.MasterArbitrationUpdate{DeviceId: u.GetDeviceId()}, codes.AlreadyExists)
		if !c.refused {
			c.refused = true
			go c.wait(u)
		}
	default:
		c.fail(err)
	}
}

// wait repeats the bind until the other client has gone.
func (c *channel) wait(u *p4v1.MasterArbitrationUpdate) {
	tick := time.NewTicker(rebind)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		waits, free := c.retry()
		if free {
			// The next claim finds this client bound, or no client.
			c.answer(&p4v1.MasterArbitrationUpdate{DeviceId: u.GetDeviceId()}, codes.NotFound)
		}
		if !waits {
			return
		}
	}
}

// retry tries to bind again while another client is bound.
func (c *channel) retry() (waits, free bool) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if c.refused && c.s.claim(c.ctx) == nil {
		c.refused, free = false, true
	}
	return c.refused, free
}

func (c *channel) answer(u *p4v1.MasterArbitrationUpdate, code codes.Code) {
	m := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{
		DeviceId: u.GetDeviceId(), ElectionId: u.GetElectionId(), Status: &rpc.Status{Code: int32(code)},
	}}}
	select {
	case c.out <- m:
	case <-c.ctx.Done():
	}
}
