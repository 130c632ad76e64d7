package p4rt

import (
	"errors"
	"fmt"
	"unicode/utf8"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A failure is the reason for rejecting a request or an update, with the status
// code required by the specification.
type failure struct {
	code codes.Code
	msg  string
}

func (f *failure) Error() string { return f.msg }

// GRPCStatus makes the code visible to package status.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.msg) }

// maxMessage bounds an error in bytes. Requests contain names and values of any
// length, and errors quote them.
const maxMessage = 500

// failf returns an error of one printable line.
func failf(code codes.Code, format string, args ...any) error {
	return &failure{code, plain.Printable(fmt.Sprintf(format, args...), "", maxMessage)}
}

// A hexed value is printed in base 16. Long values are truncated, so that an error
// also has room for its reason.
type hexed []byte

func (b hexed) String() string {
	const most = 32
	if len(b) <= most {
		return fmt.Sprintf("0x%x", []byte(b))
	}
	return fmt.Sprintf("0x%x… (%d bytes)", []byte(b[:most]), len(b))
}

// variant names the field that is set in the first oneof of a message, as the protocol
// does, or "nothing".
func variant(m proto.Message) string {
	r := m.ProtoReflect()
	if f := r.WhichOneof(r.Descriptor().Oneofs().Get(0)); f != nil {
		return string(f.Name())
	}
	return "nothing"
}

// codeOf returns the code of an error of this package. Other errors are
// internal ones.
func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return codes.Internal
}

// recode gives err another code, for sections of the specification that deviate
// from the general rule.
func recode(err error, code codes.Code) error {
	if err == nil {
		return nil
	}
	return failf(code, "%v", err)
}

// asInvalid turns OUT_OF_RANGE into INVALID_ARGUMENT, the code for invalid byte
// strings in matches, arguments and packet metadata.
func asInvalid(err error) error {
	if codeOf(err) == codes.OutOfRange {
		return recode(err, codes.InvalidArgument)
	}
	return err
}

// prefixed adds a prefix to the message of err.
func prefixed(err error, format string, args ...any) error {
	return failf(codeOf(err), "%s: %v", fmt.Sprintf(format, args...), err)
}

// maxDetails bounds the details of a status. They are sent base64-encoded in a
// header, and most clients accept headers of at most 16 MiB.
const maxDetails = 8 << 20

// detailSize is the approximate size of an element's error without its message.
const detailSize = 48

// batchError returns the status of a batch: nil on success, else UNKNOWN with
// one p4.v1.Error per element, in order. If the errors do not fit into a
// header, their messages are shortened or dropped.
func batchError(what string, results []error) error {
	failed, text := 0, 0
	for _, err := range results {
		if err != nil {
			failed++
			text += len(err.Error())
		}
	}
	if failed == 0 {
		return nil
	}
	msg := fmt.Sprintf("%d of %d %s failed", failed, len(results), what)
	room := maxDetails - detailSize*len(results)
	longest := text
	if room < text {
		longest = max(0, room/failed)
	}
	details := make([]protoadapt.MessageV1, len(results))
	for i, err := range results {
		e := &p4v1.Error{CanonicalCode: int32(codeOf(err))}
		if err != nil {
			e.Message = shorten(err.Error(), longest)
		}
		details[i] = protoadapt.MessageV1Of(e)
	}
	st, err := status.New(codes.Unknown, msg).WithDetails(details...)
	if err != nil {
		return status.Error(codes.Unknown, msg)
	}
	return st.Err()
}

// shorten truncates a message to n bytes at a character boundary.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
