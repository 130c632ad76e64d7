package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// An exchange communicates with one switch while this controller is primary.
type exchange struct {
	c       *primary.Conn
	link    *primary.Link
	timeout time.Duration
	index   *p4info.Index
	notes   []string
}

func (x *exchange) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(x.notes, text) {
		x.notes = append(x.notes, text)
	}
}

// fault converts the error of a request; what describes the request.
func (x *exchange) fault(err error, what string) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w any more: %s", what, target.ErrUnreachable, primary.LastPart(s.Message()))
	case codes.PermissionDenied:
		return fmt.Errorf("%s: %w: %s", what, target.ErrNotPrimary, s.Message())
	case codes.Unimplemented:
		return fmt.Errorf("%s: %w: %s: %w", what, target.ErrRefused, s.Message(), errors.ErrUnsupported)
	}
	return fmt.Errorf("%s: %w: %s (%v)", what, target.ErrRefused, s.Message(), s.Code())
}

// passing reports whether an error is worth a retry: the switch or the network has failed, and
// has not rejected the request.
func passing(err error) bool {
	return errors.Is(err, target.ErrUnreachable) || errors.Is(err, target.ErrNotPrimary) || errors.Is(err, errUnsettled) || errors.Is(err, errChanged)
}

// errUnsettled reports that a switch does not have the changes that it accepted.
var errUnsettled = errors.New("the switch does not hold the changes that it accepted")

// errChanged wraps a rejection that may disappear if the switch is read again.
var errChanged = fmt.Errorf("%w", target.ErrRefused)

// config reads the program that the switch runs; nil: none.
func (x *exchange) config(ctx context.Context, kind p4v1.GetForwardingPipelineConfigRequest_ResponseType) (*p4v1.ForwardingPipelineConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	r, err := x.link.Client.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{
		DeviceId: x.link.Endpoint.Device, ResponseType: kind,
	})
	switch status.Code(err) {
	case codes.OK:
		return r.GetConfig(), nil
	case codes.FailedPrecondition, codes.NotFound:
		return nil, nil // BMv2 and Stratum report a missing configuration like this
	}
	return nil, x.fault(err, "reading the program")
}

// push makes the switch run a program.
func (x *exchange) push(ctx context.Context, c *p4v1.ForwardingPipelineConfig) error {
	ctx, cancel := context.WithTimeout(ctx, max(x.timeout, 10*time.Second)) // linking a program takes some time
	defer cancel()
	_, err := x.link.Client.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: x.link.Endpoint.Device, ElectionId: x.c.Election(),
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: c,
	})
	if err != nil {
		return x.fault(err, "pushing the program")
	}
	return nil
}

// read reads entities.
func (x *exchange) read(ctx context.Context, what string, list ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	fault := func(err error) error { return x.fault(err, "reading "+what) }
	if local := x.link.Endpoint.Local; local != nil {
		all, err := local.Entities(&p4v1.ReadRequest{DeviceId: x.link.Endpoint.Device, Entities: list})
		if err != nil {
			return nil, fault(err)
		}
		return all, nil
	}
	return readEntities(ctx, x.link, x.timeout, x.index.Holds(), fault, list...)
}

// Limits of a response. Its size may be a constant plus an amount for each possible
// entity; its time may be a constant plus an amount for each received entity.
const (
	answerBytes = 16 << 20
	entityBytes = 1 << 10
	silences    = 4
	entityTime  = time.Millisecond
)

// readEntities reads at most the given number of entities, which is all that can exist. The
// switch must send an entity at least every patience. A large table may take longer in total, if
// enough entities arrive; messages without entities do not count.
func readEntities(ctx context.Context, l *primary.Link, patience time.Duration, most int, fault func(error) error, list ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := status.Error(codes.DeadlineExceeded, fmt.Sprintf("no answer within %v", patience))
	slow := status.Error(codes.DeadlineExceeded, "the answer comes too slowly")
	silence := time.AfterFunc(patience, func() { cancel(silent) })
	defer silence.Stop()
	began, room := time.Now(), answerBytes+most*entityBytes
	stream, err := l.Client.Read(ctx, &p4v1.ReadRequest{DeviceId: l.Endpoint.Device, Entities: list})
	if err != nil {
		return nil, fault(err)
	}
	var all []*p4v1.Entity
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if cause := context.Cause(ctx); err != nil && cause == silent {
			err = silent
		}
		if err != nil {
			return nil, fault(err)
		}
		room -= proto.Size(m)
		switch n := len(m.GetEntities()); {
		case len(all)+n > most || room < 0:
			return nil, fault(status.Errorf(codes.OutOfRange, "the answer exceeds the program's capacity of %d entities", most))
		case time.Since(began) > silences*patience+time.Duration(len(all)+n)*entityTime:
			return nil, fault(slow)
		case n > 0:
			silence.Reset(patience)
		}
		all = append(all, m.GetEntities()...)
	}
}

// write tries to apply updates, and returns how many the switch has accepted. The
// error is about the first rejected one.
func (x *exchange) write(ctx context.Context, list []*p4v1.Update, name func(i int) string) (taken int, err error) {
	batch := cmp.Or(x.link.Endpoint.Limits.Batch, 1000)
	for from := 0; from < len(list); from += batch {
		part := list[from:min(from+batch, len(list))]
		n, err := x.writeBatch(ctx, part, func(i int) string { return name(from + i) })
		taken += n
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

func (x *exchange) writeBatch(ctx context.Context, list []*p4v1.Update, name func(i int) string) (taken int, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	req := &p4v1.WriteRequest{DeviceId: x.link.Endpoint.Device, ElectionId: x.c.Election(), Updates: list}
	if local := x.link.Endpoint.Local; local != nil {
		err = local.Write(req)
	} else {
		_, err = x.link.Client.Write(ctx, req)
	}
	if err == nil {
		return len(list), nil
	}
	taken, first, count := updateErrors(err)
	if first == nil {
		return 0, x.fault(err, fmt.Sprintf("writing %d updates, beginning with %s", len(list), name(0)))
	}
	more := ""
	if count > 1 {
		more = fmt.Sprintf(", and %d more", count-1)
	}
	reason := target.ErrRefused
	if first.code == codes.AlreadyExists || first.code == codes.NotFound {
		// The switch has changed since it was read, for example because of a
		// controller that has just died. Read it again.
		reason = errChanged
	}
	return taken, fmt.Errorf("%s %s: %w: %s (%v)%s", verbs[list[first.at].GetType()], name(first.at), reason, first.msg, first.code, more)
}

var verbs = map[p4v1.Update_Type]string{
	p4v1.Update_INSERT: "inserting", p4v1.Update_MODIFY: "modifying", p4v1.Update_DELETE: "deleting",
}

// An updateError is the reason why an update of a batch was rejected.
type updateError struct {
	at   int
	code codes.Code
	msg  string
}

// updateErrors analyses the error of a batch. It returns the number of accepted updates, the
// first rejected one, and the number of rejected ones. first is nil if the error does not list
// updates.
func updateErrors(err error) (taken int, first *updateError, refused int) {
	for i, d := range status.Convert(err).Details() {
		e, ok := d.(*p4v1.Error)
		switch {
		case !ok:
		case e.GetCanonicalCode() == int32(codes.OK):
			taken++
		default:
			refused++
			if first == nil {
				first = &updateError{i, codes.Code(e.GetCanonicalCode()), primary.Clean(e.GetMessage())}
			}
		}
	}
	return taken, first, refused
}

// sameProgram reports whether the switch runs the planned program.
func sameProgram(c *p4v1.ForwardingPipelineConfig, p *plan.Pipeline, x *p4info.Index) bool {
	return c.GetCookie().GetCookie() == x.Cookie && proto.Equal(c.GetP4Info(), p.P4Info)
}
