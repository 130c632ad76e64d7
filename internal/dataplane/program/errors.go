package program

import (
	"cmp"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// The bits of parser_err.
const (
	ErrNoMatch     = 0x0001
	errPartial     = 0x0002
	errCounter     = 0x0004
	errUserTimeout = 0x0008
	errTimeout     = 0x0010
	errSource      = 0x0020
	errOwner       = 0x0080
	errMultiWrite  = 0x0100
)

// knownErrors are hardware errors that a program may declare although parsers never
// raise them.
var knownErrors = map[string]uint64{
	"CounterRange": errCounter, "Timeout": errUserTimeout, "PhvOwner": errOwner, "MultiWrite": errMultiWrite,
}

// ErrorBits maps the errors of a program to bits of parser_err. Errors that the
// hardware does not have count as no match.
func ErrorBits(list []bmv2.NamedValue) map[uint64]uint64 {
	codes := newErrorCodes(list)
	bits := map[uint64]uint64{}
	for _, e := range list {
		bits[uint64(e.Value)] = cmp.Or(knownErrors[e.Name], ErrNoMatch)
	}
	bits[uint64(codes.noMatch)] = ErrNoMatch
	bits[uint64(codes.tooShort)] = errPartial | errSource
	bits[uint64(codes.headerTooShort)] = errPartial | errSource
	bits[uint64(codes.stackOutOfBounds)] = 0
	bits[uint64(codes.invalid)] = ErrNoMatch
	bits[uint64(codes.timeout)] = errTimeout
	bits[uint64(codes.None)] = 0
	return bits
}

// An errorCodes holds the program's numbers for the errors that the parser raises.
type errorCodes struct {
	None, tooShort, stackOutOfBounds, headerTooShort, timeout, invalid int64
	noMatch                                                            int64 // only on Tofino
}

// newErrorCodes reads the codes. As in BMv2, an error that the program does not
// list gets a number of its own.
func newErrorCodes(list []bmv2.NamedValue) errorCodes {
	codes := map[string]int64{}
	next := int64(0)
	for _, e := range list {
		codes[e.Name] = int64(e.Value)
		next = max(next, int64(e.Value)+1)
	}
	code := func(name string) int64 {
		c, ok := codes[name]
		if !ok {
			c = next
			next++
		}
		return c
	}
	return errorCodes{
		None: code("NoError"), tooShort: code("PacketTooShort"), stackOutOfBounds: code("StackOutOfBounds"),
		headerTooShort: code("HeaderTooShort"), timeout: code("ParserTimeout"), invalid: code("ParserInvalidArgument"),
		noMatch: code("NoMatch"),
	}
}

// noError is the result of a parserOp that has succeeded.
const noError int64 = -1

// A parserOp runs one operation of a parse state and returns an error code of
// the program, or noError.
type parserOp func(*vector.State) int64
