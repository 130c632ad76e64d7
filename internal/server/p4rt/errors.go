package p4rt

import (
	"errors"
	"fmt"
	"unicode/utf8"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// A failure is why a request, or one update of it, was refused, with the code
// that the specification names for it.
type failure struct {
	code codes.Code
	msg  string
}

func (f *failure) Error() string { return f.msg }

// GRPCStatus lets package status see the code.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.msg) }

func failf(code codes.Code, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// codeOf is the code of an error of this package; an error from elsewhere is
// the server's own.
func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	return codes.Internal
}

// recode gives err another code, where a section of the specification names
// one for what the general rule calls something else.
func recode(err error, code codes.Code) error {
	if err == nil {
		return nil
	}
	return &failure{code, err.Error()}
}

// unsound gives a byte string that is no value of its type the code that it has
// in matches, arguments and packet metadata.
func unsound(err error) error {
	if codeOf(err) == codes.OutOfRange {
		return recode(err, codes.InvalidArgument)
	}
	return err
}

// prefixed says what err is about.
func prefixed(err error, format string, args ...any) error {
	return &failure{codeOf(err), fmt.Sprintf(format, args...) + ": " + err.Error()}
}

// maxDetails bounds the details of a status: they travel in a header, a third
// longer, of which most clients take no more than 16 MiB.
const maxDetails = 8 << 20

// detailSize is about what an element's error takes without its message.
const detailSize = 48

// batchError is the status of a batch: nil if all went well, else UNKNOWN with
// one p4.v1.Error for each element, in order. The errors of a batch that has too
// many for one header have shorter messages, or none.
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

// shorten cuts a message to so many bytes, at a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
