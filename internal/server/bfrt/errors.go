package server

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A failure is the error of an update with its gRPC code.
type failure struct {
	code codes.Code
	msg  string
}

func (f *failure) Error() string { return f.msg }

// GRPCStatus makes the code visible to package status.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.msg) }

// words are the SDE's texts for the codes. Messages of the SDE and of this server
// begin with them.
var words = map[codes.Code]string{
	codes.InvalidArgument:   "Invalid arguments",
	codes.NotFound:          "Object not found",
	codes.AlreadyExists:     "Already exists",
	codes.ResourceExhausted: "Not enough space",
	codes.Unimplemented:     "Operation not supported",
	codes.Unavailable:       "Not ready",
	codes.Unknown:           "Unexpected error",
	codes.Internal:          "Internal error",
	codes.DeadlineExceeded:  "Deadline exceeded",
}

// maxMessage bounds an error in bytes. Requests contain names of any length, and
// errors quote them.
const maxMessage = 500

// failf returns an error of one printable line.
func failf(code codes.Code, format string, args ...any) error {
	msg := plain.Printable(fmt.Sprintf(format, args...), "", maxMessage)
	if w := words[code]; w != "" {
		msg = w + ": " + msg
	}
	return &failure{code, msg}
}

// invalidf returns an error for an invalid request.
func invalidf(format string, args ...any) error {
	return failf(codes.InvalidArgument, format, args...)
}

// within adds the name of the table to an error.
func within(table string, err error) error {
	if err == nil {
		return nil
	}
	f := failureOf(err)
	head, rest, ok := strings.Cut(f.msg, ": ")
	if !ok {
		return &failure{f.code, f.msg + ": table " + table}
	}
	return &failure{f.code, head + ": table " + table + ": " + rest}
}

// failureOf maps errors of the data plane to codes.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(err, dataplane.ErrStillUsed) {
		return &failure{codes.AlreadyExists, "Action data entry is being referenced by match entries: " + err.Error()}
	}
	code := codes.InvalidArgument
	switch {
	case errors.Is(err, dataplane.ErrDuplicate), errors.Is(err, dataplane.ErrMemberInGroup):
		code = codes.AlreadyExists
	case errors.Is(err, dataplane.ErrBadHandle), errors.Is(err, dataplane.ErrNotInGroup):
		code = codes.NotFound
	case errors.Is(err, dataplane.ErrTableFull):
		code = codes.ResourceExhausted
	case errors.Is(err, dataplane.ErrNotSupported), errors.Is(err, dataplane.ErrImmutable), errors.Is(err, dataplane.ErrConstDefault):
		code = codes.Unimplemented
	}
	return &failure{code, words[code] + ": " + err.Error()}
}

// outcome returns the result of an update as a message for clients.
func outcome(err error) *wire.Error {
	if err == nil {
		return &wire.Error{}
	}
	f := failureOf(err)
	e := &wire.Error{CanonicalCode: int32(f.code), Message: f.msg, Code: int32(f.code)}
	if err == errModified {
		e.CanonicalCode = int32(codes.OK)
	}
	return e
}

const (
	// maxDetails bounds the details of a status. They travel base64-encoded in a
	// header, and most clients accept at most 16 MiB.
	maxDetails = 8 << 20
	// detailSize is the approximate size of an outcome without its message.
	detailSize = 60
)

// refused returns the status of a batch with failures. The details have an outcome
// for every update. If the messages do not fit into a header, it leaves them out;
// if the codes do not fit either, there are no details.
func refused(list []*wire.Error) error {
	s := &spb.Status{Code: int32(codes.Unknown), Message: "Error(s) in the batch"}
	size := detailSize * len(list)
	for _, e := range list {
		size += len(e.Message)
	}
	if detailSize*len(list) > maxDetails {
		list = nil
	}
	var value []byte
	for _, e := range list {
		if size > maxDetails {
			e = &wire.Error{CanonicalCode: e.CanonicalCode, Code: e.Code}
		}
		value, _ = proto.MarshalOptions{}.MarshalAppend(nil, e)
		s.Details = append(s.Details, &anypb.Any{TypeUrl: errorURL, Value: value})
	}
	return status.ErrorProto(s)
}

// reasonOf returns the message of an error, or of the first rejected part of a batch.
func reasonOf(err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	for i, d := range s.Details() {
		if e, ok := d.(*wire.Error); ok && e.GetCanonicalCode() != int32(codes.OK) {
			return fmt.Errorf("part %d: %s", i+1, e.GetMessage())
		}
	}
	return errors.New(s.Message())
}

const errorURL = "type.googleapis.com/bfrt_proto.Error"

const notFound = codes.NotFound

const unimplemented = codes.Unimplemented

// errModified is the outcome of an INSERT_OR_MODIFY that modified an existing entry.
var errModified = failf(codes.AlreadyExists, "the entry existed and has been modified")

const (
	alreadyExists = codes.AlreadyExists
	noSpace       = codes.ResourceExhausted
)
