package p4rt

import (
	"github.com/p4lb/p4lb/dataplane/num"
	"google.golang.org/grpc/codes"
)

// P4Runtime carries integers as big-endian byte strings. A receiver takes any
// length as long as the number fits its type; a sender writes the shortest
// string. Zero is one zero byte, never the empty string.

// unsigned checks that b encodes a bit<width> and returns its canonical form,
// which shares b's memory.
func unsigned(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	if n := num.BitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "0x%x takes %d bits, more than the %d of the type", b, n, width)
	}
	return b, nil
}

// canonize replaces an unsigned byte string in a message by its canonical form.
// It does not touch one that is canonical already: messages that are stored
// are, and readers share them.
func canonize(field *[]byte, width int) ([]byte, error) {
	b, err := unsigned(*field, width)
	if err == nil && len(b) != len(*field) {
		*field = b
	}
	return b, err
}

// signed checks that b encodes an int<width> in two's complement and returns
// its canonical form, which shares b's memory.
func signed(b []byte, width int) ([]byte, error) {
	if len(b) == 0 {
		return nil, failf(codes.OutOfRange, "an empty byte string is no number: zero is \\x00")
	}
	for len(b) > 1 && num.IsSignExtension(b[0], b[1]) {
		b = b[1:]
	}
	if n := num.SignedBitLen(b); n > width {
		return nil, failf(codes.OutOfRange, "0x%x takes %d bits, more than the %d of the signed type", b, n, width)
	}
	return b, nil
}
