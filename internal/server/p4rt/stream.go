package p4rt

import (
	"context"
	"errors"
	"io"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// StreamChannel is the session of one controller. It lasts as long as the
// stream.
func (s *Server) StreamChannel(stream p4v1.P4Runtime_StreamChannelServer) error {
	c := &controller{out: newOutbox(s.limits.MaxPending, s.gate.Pending())}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.sendAll(stream, c.out)
	}()
	// The order matters: it frees the role at once, even if the last message is
	// still being sent to a client that does not read.
	defer func() { <-sent }()
	defer c.out.close()
	defer s.arb.leave(c)

	received := make(chan received)
	go receiveAll(stream, received)
	for {
		select {
		case r := <-received:
			if errors.Is(r.err, io.EOF) {
				return nil
			} else if r.err != nil {
				return r.err
			}
			if err := s.handle(stream.Context(), c, r.msg); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-s.stop:
			return errStopping
		}
	}
}

type received struct {
	msg *p4v1.StreamMessageRequest
	err error
}

// receiveAll passes received messages on until the stream ends. The handler's
// return cancels the stream's context, so this goroutine never leaks.
func receiveAll(stream p4v1.P4Runtime_StreamChannelServer, to chan<- received) {
	for {
		msg, err := stream.Recv()
		select {
		case to <- received{msg, err}:
		case <-stream.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// sendAll sends messages from the outbox until it is closed or the client
// disconnects.
func (s *Server) sendAll(stream p4v1.P4Runtime_StreamChannelServer, out *outbox) {
	for {
		m, lost, ok := out.next()
		if lost > 0 {
			s.log.Warn("dropped messages: a controller receives too slowly", "lost", lost)
		}
		if !ok || stream.Send(m) != nil {
			return
		}
	}
}

// handle processes one message. Only an arbitration error ends the stream;
// other errors are reported on it.
func (s *Server) handle(ctx context.Context, c *controller, m *p4v1.StreamMessageRequest) error {
	switch u := m.GetUpdate().(type) {
	case *p4v1.StreamMessageRequest_Arbitration:
		return s.arb.update(c, u.Arbitration)
	case *p4v1.StreamMessageRequest_Packet:
		if err := s.packetOut(c, u.Packet); err != nil {
			s.refuse(ctx, c, err, &p4v1.StreamError{Details: &p4v1.StreamError_PacketOut{PacketOut: &p4v1.PacketOutError{PacketOut: u.Packet}}})
		}
	case *p4v1.StreamMessageRequest_DigestAck:
		if err := s.digestAck(c, u.DigestAck); err != nil {
			s.refuse(ctx, c, err, &p4v1.StreamError{Details: &p4v1.StreamError_DigestListAck{DigestListAck: &p4v1.DigestListAckError{DigestListAck: u.DigestAck}}})
		}
	case *p4v1.StreamMessageRequest_Other:
		err := failf(codes.Unimplemented, "messages of type %q are not supported", u.Other.GetTypeUrl())
		s.refuse(ctx, c, err, &p4v1.StreamError{Details: &p4v1.StreamError_Other{Other: &p4v1.StreamOtherError{Other: u.Other}}})
	}
	return nil
}

// maxEcho is the size of the largest message returned with its error. A client
// might not be able to receive a larger one.
const maxEcho = 1 << 20

// refuse reports a rejected message to its controller.
func (s *Server) refuse(ctx context.Context, c *controller, err error, e *p4v1.StreamError) {
	if sim := s.dev.opts.Simulator; sim != nil {
		sim.Refused(ClientOf(ctx), err)
	}
	size := proto.Size(e)
	gate.Charge(ctx, 1+size/rejectedPart)
	if size > maxEcho {
		e.Details = nil
	}
	e.CanonicalCode, e.Message = int32(codeOf(err)), err.Error()
	c.out.bulk(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Error{Error: e}})
}

// rejectedPart is the part of a rejected message, in bytes, that is charged
// like one rejected update.
const rejectedPart = 2 << 10

// packetOut sends a controller's packet through the running program.
func (s *Server) packetOut(c *controller, m *p4v1.PacketOut) error {
	sc, primary := s.arb.isPrimary(c)
	if !primary || !sc.sendsPackets() {
		return failf(codes.PermissionDenied, "only the primary of a role with the packet_out header may send packets")
	}
	if !s.dev.hasCPU() {
		return failf(codes.FailedPrecondition, "the switch has no CPU port: start it with --cpu-port")
	}
	s.mu.RLock()
	p := s.running
	s.mu.RUnlock()
	if p == nil {
		return errNoPipeline
	}
	frame, err := p.info.packetOut.encode(m)
	if err != nil {
		return err
	}
	s.dev.inject(frame)
	return nil
}

// packetIn sends a packet from the CPU port to the primaries. It takes none of
// the server's locks, so it can be called at any time.
func (s *Server) packetIn(p *pipeline, frame []byte) {
	m := &p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: p.info.packetIn.decode(frame)}}
	s.arb.broadcast(m, (*scope).receivesPackets)
}

func (s *Server) digestAck(c *controller, ack *p4v1.DigestListAck) error {
	sc, primary := s.arb.isPrimary(c)
	if !primary || !sc.allows(ack.GetDigestId()) {
		return failf(codes.PermissionDenied, "only the primary of a role with the digest may acknowledge its lists")
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.running == nil {
		return errNoPipeline
	}
	d := s.running.digests[ack.GetDigestId()]
	if d == nil {
		return failf(codes.InvalidArgument, "there is no digest %#x", ack.GetDigestId())
	}
	d.acknowledge(ack.GetListId())
	return nil
}
