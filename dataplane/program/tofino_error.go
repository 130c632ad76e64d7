package program

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/vector"
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

// ErrorBits gives the errors that a program declares their bits. Those that
// the hardware does not know count as no match.
func ErrorBits(list []bmv2.NamedValue) map[uint64]uint64 {
	codes := newErrorCodes(list)
	bits := map[uint64]uint64{}
	for _, e := range list {
		bits[uint64(e.Value)] = ErrNoMatch
		switch e.Name {
		case "CounterRange":
			bits[uint64(e.Value)] = errCounter
		case "Timeout":
			bits[uint64(e.Value)] = errUserTimeout
		case "PhvOwner":
			bits[uint64(e.Value)] = errOwner
		case "MultiWrite":
			bits[uint64(e.Value)] = errMultiWrite
		}
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

// refuse makes a select in which nothing matches an error, where v1model goes
// on. The state reject is no error: Tofino's compiler ends the parser there as
// it does with accept, and so it does where a header stack is full.
func refuse(ps *Parser, src *bmv2.Parser, states map[string]*parseState) {
	code := ps.Codes.noMatch
	noMatch := &parseState{name: "no match", ops: []parserOp{func(*vector.State) int64 { return code }}}
	for _, s := range src.ParseStates {
		if st := states[s.Name]; len(st.cases) > 0 && !hasDefault(s) {
			st.others = noMatch
		}
	}
}

func hasDefault(s *bmv2.ParseState) bool {
	for _, t := range s.Transitions {
		if t.Type == "default" || t.Type != "parse_vset" && (t.Value == "" || t.Value == "default") {
			return true
		}
	}
	return false
}
