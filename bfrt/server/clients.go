package server

import (
	"errors"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/p4lb/p4lb/bfrt/wire"
)

// clients are those that have a stream, by their numbers.
type clients struct {
	mu   sync.Mutex
	open map[uint32]*client
}

// A client is one with a stream.
type client struct {
	id     uint32
	wants  *wire.Subscribe_Notifications
	bound  string // the program, "" if there is none
	outbox *outbox
	gone   chan struct{} // closed once another stream has the client's number
}

// An outbox holds what is to be sent to a client, so that nobody waits for a slow
// one: what finds no room is lost.
type outbox struct {
	list chan *wire.StreamMessageResponse
	mu   sync.Mutex
	cost int // of list, about, in bytes
	room int
}

// maxMessages is how many messages wait for a client at most.
const maxMessages = 1 << 14

func (o *outbox) put(m *wire.StreamMessageResponse) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := proto.Size(m) + 64
	if o.cost+n > o.room {
		return false
	}
	select {
	case o.list <- m:
		o.cost += n
		return true
	default:
		return false
	}
}

func (o *outbox) sent(m *wire.StreamMessageResponse) {
	o.mu.Lock()
	o.cost -= proto.Size(m) + 64
	o.mu.Unlock()
}

// StreamChannel is the session of a client, for as long as the stream lives.
func (s *Server) StreamChannel(stream wire.StreamServer) error {
	c := &client{outbox: &outbox{list: make(chan *wire.StreamMessageResponse, maxMessages), room: s.opts.MaxPending}, gone: make(chan struct{})}
	defer s.clients.leave(c)
	came, failed := make(chan *wire.StreamMessageRequest), make(chan error, 1)
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case came <- m:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		select {
		case m := <-came:
			if err := s.hear(c, m); err != nil {
				return err
			}
		case m := <-c.outbox.list:
			c.outbox.sent(m)
			if err := stream.Send(m); err != nil {
				return err
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-c.gone:
			return status.Errorf(codes.Aborted, "client %d has another stream", c.id)
		case <-s.stop:
			return status.Error(codes.Unavailable, "the switch ends")
		}
	}
}

// hear deals with a message of a client.
func (s *Server) hear(c *client, m *wire.StreamMessageRequest) error {
	switch u := m.GetUpdate().(type) {
	case *wire.StreamMessageRequest_Subscribe:
		answer := proto.Clone(u.Subscribe).(*wire.Subscribe)
		answer.Status = &spb.Status{}
		err := s.clients.join(c, m.GetClientId(), u.Subscribe.GetNotifications(), s.opts.MaxControllers)
		if err == nil && u.Subscribe.GetDeviceId() != s.opts.Device {
			err = invalidf("there is no device %d", u.Subscribe.GetDeviceId())
		}
		if err != nil {
			f := failureOf(err)
			answer.Status = &spb.Status{Code: int32(f.code), Message: f.msg}
		}
		c.outbox.put(&wire.StreamMessageResponse{Update: &wire.StreamMessageResponse_Subscribe{Subscribe: answer}})
	case *wire.StreamMessageRequest_DigestAck:
		// The list is the client's from when it was sent.
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
		close(o.gone) // a client that comes again, before it is noticed that it went
		delete(l.open, id)
	}
	if c.outbox != nil && l.open[c.id] == c && c.id != id {
		return invalidf("the client is %d already", c.id)
	}
	if l.open[id] == nil && len(l.open) >= most {
		return failf(noSpace, "there are %d clients", most)
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

// bind gives a client a program, which has but one client.
func (l *clients) bind(id uint32, program string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.open[id]
	if c == nil {
		return failf(notFound, "there is no client %d: it must subscribe first", id)
	}
	for _, o := range l.open {
		if o != c && o.bound == program {
			return failf(alreadyExists, "program %s is bound to client %d", program, o.id)
		}
	}
	if c.bound != "" && c.bound != program {
		return failf(alreadyExists, "client %d is bound to program %s", id, c.bound)
	}
	c.bound = program
	return nil
}

// programOf is what a client is bound to.
func (l *clients) programOf(id uint32) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[id]; c != nil {
		return c.bound
	}
	return ""
}

// tell sends a message to those who want it; of a program, to its client.
func (l *clients) tell(wants func(*wire.Subscribe_Notifications) bool, p *program, m *wire.StreamMessageResponse) (heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		if wants(c.wants) && (p == nil || c.bound == p.name) {
			heard = c.outbox.put(m) || heard
		}
	}
	return heard
}

// configured tells all clients what has become of the programs.
func (l *clients) configured(m *wire.SetForwardingPipelineConfigResponse) {
	l.tell(func(*wire.Subscribe_Notifications) bool { return true }, nil, &wire.StreamMessageResponse{
		Update: &wire.StreamMessageResponse_SetForwardingPipelineConfigResponse{SetForwardingPipelineConfigResponse: m},
	})
}

// program is the one that a request is about: of its name, or that its client is
// bound to.
func (s *Server) programFor(name string, client uint32) (*program, error) {
	if name == "" {
		name = s.clients.programOf(client)
	}
	if name == "" {
		return nil, failf(codes.PermissionDenied, "client %d is bound to no program, and the request names none", client)
	}
	i := slices.IndexFunc(s.programs, func(p *program) bool { return p.name == name })
	if i < 0 {
		return nil, failf(notFound, "there is no program %q", name)
	}
	return s.programs[i], nil
}
