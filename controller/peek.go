package controller

import (
	"context"
	"fmt"
	"io"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A Peek reads the registers of a switch without being its controller, which every
// server allows. With P4Runtime, it cannot write.
type Peek interface {
	Registers
	io.Closer
}

// NewPeek connects to an endpoint and reads which program the switch runs.
func NewPeek(ctx context.Context, e Endpoint, timeout time.Duration) (Peek, error) {
	conn, err := primary.Dial(e, timeout)
	if err != nil {
		return nil, err
	}
	if e.Speak != nil {
		e.Open(conn)
		return newSessionPeek(e, conn), nil
	}
	p, err := newPeek(ctx, e, conn, timeout)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

// A p4Peek is a Peek that uses P4Runtime.
type p4Peek struct {
	p4Registers
	info *configv1.P4Info
	conn *grpc.ClientConn
}

var _ Holder = (*p4Peek)(nil)

// A sessionPeek is a Peek that uses another protocol, such as BfRt.
type sessionPeek struct {
	registers.Access
	conn *grpc.ClientConn
}

// A countingPeek is a Peek that can also read the counters of ports.
type countingPeek struct {
	sessionPeek
	registers.Meter
}

func newSessionPeek(e target.Endpoint, conn *grpc.ClientConn) Peek {
	p := sessionPeek{e.Registers, conn}
	if m, ok := e.Registers.(registers.Meter); ok {
		return &countingPeek{p, m}
	}
	return &p
}

// Close closes the connection.
func (p *sessionPeek) Close() error { return p.conn.Close() }

func newPeek(ctx context.Context, e target.Endpoint, conn *grpc.ClientConn, timeout time.Duration) (*p4Peek, error) {
	client := p4v1.NewP4RuntimeClient(conn)
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := client.GetForwardingPipelineConfig(short, &p4v1.GetForwardingPipelineConfigRequest{
		DeviceId: e.Device, ResponseType: p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE,
	})
	if err != nil {
		return nil, peekFault(err, e.Address)
	}
	info := reply.GetConfig().GetP4Info()
	if info == nil {
		return nil, fmt.Errorf("%w: the switch at %s runs none yet", target.ErrOtherProgram, e.Address)
	}
	x, err := p4info.New(info, nil)
	if err != nil {
		return nil, err
	}
	return &p4Peek{p4Registers{link: &primary.Link{Endpoint: e, Client: client}, index: x, timeout: timeout}, info, conn}, nil
}

// peekFault returns the error of reading the program.
func peekFault(err error, address string) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return fmt.Errorf("%w over P4Runtime at %s: %s", target.ErrUnreachable, address, primary.LastPart(s.Message()))
	case codes.FailedPrecondition:
		return fmt.Errorf("%w: the switch at %s runs none yet", target.ErrOtherProgram, address)
	}
	return fmt.Errorf("asking the switch at %s for its program: %w: %s (%v)", address, target.ErrRefused, s.Message(), s.Code())
}

// Close closes the connection.
func (p *p4Peek) Close() error { return p.conn.Close() }
