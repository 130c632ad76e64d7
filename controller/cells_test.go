package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A cell of a struct is one number, with the first member in the highest bits.
func TestCellNumbers(t *testing.T) {
	for _, test := range []struct {
		members []int
		value   uint64
		parts   string // of the message, in hex
	}{
		{nil, 0, "00"}, {nil, 0x1234, "1234"}, {nil, 1<<64 - 1, "ffffffffffffffff"},
		{[]int{16, 16}, 0x00070009, "07 09"}, {[]int{16, 16}, 0xffff0000, "ffff 00"}, {[]int{8, 24, 32}, 0xaa_bbbbbb_cccccccc, "aa bbbbbb cccccccc"},
		{[]int{1, 7}, 0b1_0000011, "01 03"}, {[]int{64}, 1<<64 - 1, "ffffffffffffffff"},
	} {
		r := &p4info.Register{Members: test.members}
		d := cellData(r, test.value)
		var parts []string
		if len(test.members) == 0 {
			parts = append(parts, fmt.Sprintf("%x", d.GetBitstring()))
		}
		for _, m := range d.GetStruct().GetMembers() {
			parts = append(parts, fmt.Sprintf("%x", m.GetBitstring()))
		}
		if got := strings.Join(parts, " "); got != test.parts {
			t.Errorf("%#x with members %v: %s, want %s", test.value, test.members, got, test.parts)
		}
		if got := cellNumber(r, d); got != test.value {
			t.Errorf("%s is %#x, want %#x", test.parts, got, test.value)
		}
	}
	// A switch may send more members than its program describes.
	long := cellData(&p4info.Register{Members: []int{8, 8, 8}}, 0x010203)
	if got := cellNumber(&p4info.Register{Members: []int{8, 8}}, long); got != 0x0102 {
		t.Errorf("of three members two are %#x", got)
	}
}

// The answer to a batch names each update: accepted ones are counted, and the first refused
// one is the error's.
func TestUpdateErrors(t *testing.T) {
	refused := func(list ...codes.Code) error {
		st := status.New(codes.Unknown, "batch")
		for i, c := range list {
			var err error
			if st, err = st.WithDetails(&p4v1.Error{CanonicalCode: int32(c), Message: fmt.Sprintf("reason\x1b %d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		return st.Err()
	}
	for _, test := range []struct {
		err            error
		taken, refused int
		first          int // -1: none
	}{
		{refused(codes.OK, codes.NotFound, codes.OK, codes.Internal), 2, 2, 1},
		{refused(codes.InvalidArgument), 0, 1, 0},
		{refused(codes.OK), 1, 0, -1},
		{status.Error(codes.Unavailable, "away"), 0, 0, -1},
		{nil, 0, 0, -1},
	} {
		taken, first, n := updateErrors(test.err)
		at := -1
		if first != nil {
			at = first.at
			if strings.Contains(first.msg, "\x1b") || !strings.Contains(first.msg, fmt.Sprint(at)) {
				t.Errorf("message %q", first.msg)
			}
		}
		if taken != test.taken || n != test.refused || at != test.first {
			t.Errorf("%v: %d taken, %d refused, the first at %d; want %+v", test.err, taken, n, at, test)
		}
	}
	if registerFault(nil, "reading", "r") != nil {
		t.Error("success is a fault")
	}
	for code, want := range map[codes.Code]error{
		codes.Unimplemented: errors.ErrUnsupported, codes.Unavailable: target.ErrUnreachable, codes.Canceled: target.ErrUnreachable, codes.DeadlineExceeded: target.ErrUnreachable,
		codes.PermissionDenied: target.ErrNotPrimary, codes.InvalidArgument: target.ErrRefused, codes.NotFound: target.ErrRefused,
	} {
		for _, err := range []error{status.Error(code, "because"), refused(codes.OK, code)} {
			if got := registerFault(err, "writing", "r"); !errors.Is(got, want) || !strings.HasPrefix(got.Error(), "writing register r") {
				t.Errorf("%v: %v, want %v", err, got, want)
			}
		}
	}
	for code, want := range map[codes.Code]error{codes.Unavailable: target.ErrUnreachable, codes.Canceled: target.ErrUnreachable, codes.DeadlineExceeded: target.ErrUnreachable, codes.FailedPrecondition: target.ErrOtherProgram, codes.PermissionDenied: target.ErrRefused} {
		if got := peekFault(status.Error(code, "because"), "x:1"); !errors.Is(got, want) || !strings.Contains(got.Error(), "x:1") {
			t.Errorf("%v: %v, want %v", code, got, want)
		}
	}
}

// A switch may answer with as many entities as its program can hold, and no more.
func TestCapacityOfAnswers(t *testing.T) {
	entry := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 1}}}
	l := lying(t, func(send func(*p4v1.ReadResponse) error) error {
		for range 2 {
			if err := send(&p4v1.ReadResponse{Entities: []*p4v1.Entity{entry, entry}}); err != nil {
				return err
			}
		}
		return nil
	})
	for most, fits := range map[int]bool{3: false, 4: true, 5: true} {
		list, err := readEntities(t.Context(), l, patience, most, func(err error) error { return err }, entry)
		if fits && (err != nil || len(list) != 4) || !fits && (err == nil || !strings.Contains(err.Error(), "capacity of 3 entities")) {
			t.Errorf("a capacity of %d: %d entities, %v", most, len(list), err)
		}
	}
}

// The size of an answer may be 16 MiB and 1 KiB for each possible entity.
func TestSizeOfAnswers(t *testing.T) {
	for extra, fits := range map[int]bool{0: true, 1: false} {
		const size = 16<<20 + 1<<10
		entry := &p4v1.TableEntry{TableId: 1, Metadata: make([]byte, size-100)}
		m := &p4v1.ReadResponse{Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_TableEntry{TableEntry: entry}}}}
		entry.Metadata = make([]byte, len(entry.Metadata)+size+extra-proto.Size(m))
		l := lying(t, func(send func(*p4v1.ReadResponse) error) error { return send(m) })
		list, err := readEntities(t.Context(), l, patience, 1, func(err error) error { return err })
		if fits != (err == nil && len(list) == 1) {
			t.Errorf("an answer of %d bytes: %d entities, %v", proto.Size(m), len(list), err)
		}
	}
}
