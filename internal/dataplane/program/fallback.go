package program

import (
	"sync"
	"sync/atomic"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A fallback counts, in a test binary, how often machine code returns to Go at one
// kind of place.
type fallback struct{ taken atomic.Uint64 }

// The kinds of places. In addition, each primitive and each operation of a parser
// is a kind.
const (
	fromTable          = "a table"
	fromCondition      = "a condition in a control"
	fromActionTest     = "a condition in an action"
	fromActionLoop     = "an action with a loop"
	fromControlLoop    = "a control with a loop"
	fromHashSetting    = "a hash that the control plane has set"
	fromSelect         = "a select"
	fromFrameCheck     = "a parser that reads the frame check sequence"
	fromNoMatch        = "a select of Tofino without a match"
	fromSumCondition   = "the condition of a checksum"
	fromVerifyChecksum = "the verification of a checksum"
	fromUpdateChecksum = "the update of a checksum"
	fromDeparser       = "a deparser"
	fromPrimitive      = "primitive "
	fromParserOp       = "parser operation "
)

// fallbacks maps names to fallbacks.
var fallbacks = sync.OnceValue(func() map[string]*fallback {
	m := map[string]*fallback{}
	for _, name := range []string{
		fromTable, fromCondition, fromActionTest, fromActionLoop, fromControlLoop, fromHashSetting, fromSelect, fromFrameCheck,
		fromNoMatch, fromSumCondition, fromVerifyChecksum, fromUpdateChecksum, fromDeparser,
	} {
		m[name] = new(fallback)
	}
	for name := range opcodes() {
		m[fromPrimitive+name] = new(fallback)
	}
	for _, op := range []string{"extract", "extract_VL", "set", "verify", "shift", "advance"} {
		m[fromParserOp+op] = new(fallback)
	}
	return m
})

// fromOp returns the kind of place for a parser operation.
func fromOp(op *bmv2.ParserOp) string {
	if op.Op == "primitive" {
		return fromPrimitive + op.Primitive.Op
	}
	return fromParserOp + op.Op
}

// fallbackNamed returns the fallback called name. It panics for an unknown name,
// which is a bug in the compiler.
func fallbackNamed(name string) *fallback {
	f := fallbacks()[name]
	if f == nil {
		panic("no fallback is named " + name)
	}
	return f
}

// Fallbacks returns the number of returns to Go in this test binary for each
// kind of place.
func Fallbacks() map[string]uint64 {
	m := map[string]uint64{}
	for name, f := range fallbacks() {
		m[name] = f.taken.Load()
	}
	return m
}
