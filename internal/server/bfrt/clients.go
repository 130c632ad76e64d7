package server

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/p4rt"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// end closes the stream of a client. The caller holds l.mu.
func (c *client) end(why error) {
	if c.why == nil {
		c.why = why
		close(c.gone)
	}
}

// maxUnread is the number of messages that may wait for a client. Beyond it the
// client gets only answers to its own messages.
const maxUnread = 256

func (o *outbox) put(m *wire.StreamMessageResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := costOf(m)
	if o.gone || o.cost+n > o.room || !o.all.Take(n, o.cost) {
		return
	}
	o.list = append(o.list, m)
	o.cost += n
	o.wake()
}

// take removes and returns the next message, nil if there is none.
func (o *outbox) take() *wire.StreamMessageResponse {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == 0 {
		return nil
	}
	m := o.list[0]
	o.list[0] = nil
	n := costOf(m)
	o.cost -= n
	o.all.Give(n)
	if o.list = o.list[1:]; len(o.list) > 0 {
		o.wake()
	}
	return m
}

// close drops all messages, present and future.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all.Give(o.cost)
	o.list, o.cost, o.gone = nil, 0, true
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

func (o *outbox) unread() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list)
}

// costOf estimates the memory of a waiting message.
func costOf(m *wire.StreamMessageResponse) int { return proto.Size(m) + 256 }

// StreamChannel serves the session of a client until its stream ends.
func (s *Server) StreamChannel(stream wire.StreamServer) error {
	c := &client{outbox: &outbox{ready: make(chan struct{}, 1), room: s.opts.MaxPending, all: s.gate.Pending()}, gone: make(chan struct{})}
	defer c.outbox.close()
	defer s.clients.leave(c)
	refused := func(err error) {
		if sim := s.dev.Simulator(); sim != nil {
			sim.Refused(p4rt.ClientOf(stream.Context()), err)
		}
	}
	came, failed := make(chan *wire.StreamMessageRequest), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			m, err := stream.Recv()
			if err == nil && n >= heardAtOnce {
				err = s.pace.wait(stream.Context())
			}
			if err != nil {
				failed <- err
				return
			}
			select {
			case came <- m:
			case <-stream.Context().Done():
				failed <- stream.Context().Err()
				return
			}
		}
	}()
	for {
		select {
		case m := <-came:
			if err := s.hear(c, m, refused); err != nil {
				refused(err)
				return err
			}
		case <-c.outbox.ready:
			if m := c.outbox.take(); m != nil {
				if err := stream.Send(m); err != nil {
					return err
				}
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-c.gone:
			return c.last(stream)
		case <-s.stop:
			return status.Error(codes.Unavailable, "the switch ends")
		}
	}
}

// The server handles the first messages of a stream at once. Later messages of all
// streams share a rate of one per heardEvery, so that clients which repeat themselves
// leave time for writers.
const (
	heardAtOnce = 16
	heardEvery  = 100 * time.Microsecond
)

// turn returns how long a message that arrives now has to wait.
func (p *pace) turn(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.Before(now) {
		p.next = now
	}
	wait := p.next.Sub(now)
	p.next = p.next.Add(heardEvery)
	return wait
}

// wait blocks until the turn of a message, unless the wait is below timer resolution.
func (p *pace) wait(ctx context.Context) error {
	turn := p.turn(time.Now())
	if turn < time.Millisecond {
		return nil
	}
	select {
	case <-time.After(turn):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// last sends the remaining messages of a client when its stream ends, and returns the
// cause.
func (c *client) last(stream wire.StreamServer) error {
	for m := c.outbox.take(); m != nil; m = c.outbox.take() {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return c.why
}

// hear handles a message from a client. It calls refused for a rejected subscription.
func (s *Server) hear(c *client, m *wire.StreamMessageRequest, refused func(error)) error {
	switch u := m.GetUpdate().(type) {
	case *wire.StreamMessageRequest_Subscribe:
		answer := proto.Clone(u.Subscribe).(*wire.Subscribe)
		answer.Status = &spb.Status{}
		err := s.clients.join(c, m.GetClientId(), u.Subscribe.GetNotifications(), s.opts.MaxControllers)
		if err == nil && u.Subscribe.GetDeviceId() != s.opts.Device {
			err = invalidf("there is no device %d", u.Subscribe.GetDeviceId())
		}
		if err != nil {
			refused(err)
			f := failureOf(err)
			answer.Status = &spb.Status{Code: int32(f.code), Message: f.msg}
		}
		if c.outbox.unread() < maxUnread {
			c.outbox.put(&wire.StreamMessageResponse{Update: &wire.StreamMessageResponse_Subscribe{Subscribe: answer}})
		}
	case *wire.StreamMessageRequest_DigestAck:
		// The message belongs to the client from here on.
	default:
		return invalidf("the message is neither a subscription nor an acknowledgement")
	}
	return nil
}

func (l *clients) join(c *client, id uint32, wants *wire.Subscribe_Notifications, most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[uint32]*client{}
	}
	if o := l.open[id]; o != nil && o != c {
		// A client reconnects before the server has noticed its disconnect.
		o.end(status.Errorf(codes.Aborted, "client %d has another stream", id))
		delete(l.open, id)
	}
	if c.outbox != nil && l.open[c.id] == c && c.id != id {
		return invalidf("the stream already has the client id %d", c.id)
	}
	if l.open[id] == nil && len(l.open) >= most {
		return failf(noSpace, "the switch already has %d clients, which is the limit", most)
	}
	if wants == nil {
		wants = &wire.Subscribe_Notifications{}
	}
	c.id, c.wants, l.open[id] = id, wants, c
	return nil
}

func (l *clients) leave(c *client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[c.id] == c {
		delete(l.open, c.id)
	}
}

// bind binds a client to a program. A program has at most one client.
func (l *clients) bind(id uint32, program string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[id]
	if c == nil {
		return failf(codes.Unavailable, "there is no client %d: it must subscribe first", id)
	}
	for _, o := range l.open {
		if o.bound == program {
			return failf(alreadyExists, "program %s is bound to client %d", program, o.id)
		}
	}
	c.bound = program
	return nil
}

// dismiss ends the clients of programs that were replaced, as the SDE does.
func (l *clients) dismiss(programs []*program) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		if c.bound != "" && !slices.ContainsFunc(programs, func(p *program) bool { return p.name == c.bound }) {
			c.end(status.Errorf(codes.Canceled, "program %s has been replaced", c.bound))
			c.bound = ""
		}
	}
}

// programOf returns the program of a client, and whether the client has a stream.
func (l *clients) programOf(id uint32) (program string, subscribed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[id]; c != nil {
		return c.bound, true
	}
	return "", false
}

// tell sends a message to all subscribers, or for a program to its client.
func (l *clients) tell(wants func(*wire.Subscribe_Notifications) bool, p *program, m *wire.StreamMessageResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		if wants(c.wants) && (p == nil || c.bound == p.name) {
			c.outbox.put(m)
		}
	}
}

// configured notifies all clients of a change of programs.
func (l *clients) configured(m *wire.SetForwardingPipelineConfigResponse) {
	l.tell(func(*wire.Subscribe_Notifications) bool { return true }, nil, &wire.StreamMessageResponse{
		Update: &wire.StreamMessageResponse_SetForwardingPipelineConfigResponse{SetForwardingPipelineConfigResponse: m},
	})
}

// programFor returns the program of a request: the named one, or the one that its
// client is bound to. As in the SDE, a client without a stream must name the program.
func (s *Server) programFor(name string, client uint32) (*program, error) {
	subscribed := false
	if name == "" {
		name, subscribed = s.clients.programOf(client)
	}
	switch {
	case name == "" && subscribed:
		return nil, failf(codes.Unknown, "client %d is bound to no program, and the request names none", client)
	case name == "":
		return nil, failf(notFound, "client %d has no stream, and the request names no program", client)
	}
	return s.program(name)
}

func (s *Server) program(name string) (*program, error) {
	p := lists.First(s.programs, func(p *program) bool { return p.name == name })
	if p == nil {
		return nil, failf(notFound, "there is no program %q", name)
	}
	return p, nil
}
