package program

import (
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A MatchKind is how a field of a table's key is matched.
type MatchKind byte

// The kinds of match.
const (
	MatchExact MatchKind = iota
	MatchLPM
	MatchTernary
	MatchRange
	MatchOptional
	MatchValid
)

var matchNames = [...]string{bmv2.MatchExact, bmv2.MatchLPM, bmv2.MatchTernary, bmv2.MatchRange, bmv2.MatchOptional, bmv2.MatchValid}

// String is the name that the BMv2 JSON format gives the kind.
func (k MatchKind) String() string { return matchNames[k] }

// parseMatchKind reads the name that the BMv2 JSON format gives a kind.
func parseMatchKind(s string) (MatchKind, error) {
	for k, name := range matchNames {
		if name == s {
			return MatchKind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown match kind %q", s)
}

// A Match is what an entry wants of one field of its table's key. Numbers are
// big-endian, with or without leading zeros.
//
//	exact     Value
//	valid     Value: 1 or 0
//	lpm       Value, PrefixLen
//	ternary   Value, Mask
//	range     Value, High (both included)
//	optional  Value, or nil for any
type Match struct {
	Value     []byte
	Mask      []byte
	High      []byte
	PrefixLen int
}

// A Handle names an entry of a table, a member or a group of an action
// profile. Free handles are used again, lowest first, as in BMv2: that of an
// entry has a version in its upper eight bits, so that who still has one from
// before does not change another entry.
type Handle uint32

// slotBits is how many of the low bits of an entry's handle say where it is.
const slotBits = 24

// Slot is the place of an entry in its table.
func (h Handle) Slot() int { return int(h & (1<<slotBits - 1)) }

func handleOf(slot int, version uint8) Handle { return Handle(version)<<slotBits | Handle(slot) }

// DefaultEntry stands for the default entry of a table where counters and
// direct meters go by handle. It counts and meters the packets that miss.
const DefaultEntry Handle = 1<<32 - 1

// An ActionCall is an action with its arguments, big-endian.
type ActionCall struct {
	Name   string
	Params [][]byte
}

// A Target is what an entry leads to: a call, or a member or a group of the
// table's action profile.
type Target struct {
	Kind   TargetKind
	Action ActionCall
	Index  Handle // of the member or group
}

// A TargetKind says which field of a Target counts.
type TargetKind byte

// The kinds of target.
const (
	TargetAction TargetKind = iota
	TargetMember
	TargetGroup
)

// An Entry is a table entry. For ternary and range tables Priority decides
// between matches; as everywhere in BMv2 the smallest number wins (P4Runtime
// has it the other way round). What an entry is made of may be shared: nobody
// changes its bytes.
type Entry struct {
	Handle   Handle
	Match    []Match
	Priority int
	Target   Target
	// IdleTimeout is the time without a hit, from the last packet that the
	// switch has seen on, after which the entry counts as idle; 0 is never.
	IdleTimeout time.Duration
	// Const is set for what the program says may never be changed, in a table
	// whose other entries may.
	Const bool
}

// An entryError is a refused change, by its reason.
type entryError string

// Error is the reason.
func (e entryError) Error() string { return string(e) }

// The reasons for which a change of a table or an action profile is refused.
const (
	ErrTableFull     entryError = "the table is full"
	ErrDuplicate     entryError = "an entry with the same key is there already"
	ErrBadHandle     entryError = "no such handle"
	ErrExpired       entryError = "the handle is that of an entry that is gone"
	ErrImmutable     entryError = "the entries are fixed by the program"
	ErrConstDefault  entryError = "the default action is fixed by the program"
	ErrConstAction   entryError = "the default action is fixed by the program, but for its arguments"
	ErrBadMatch      entryError = "the match does not fit the table's key"
	ErrBadAction     entryError = "the action is not one of the table's"
	ErrBadParams     entryError = "the arguments do not fit the action"
	ErrBadTarget     entryError = "the table wants another kind of target"
	ErrStillUsed     entryError = "the member or group is still in use"
	ErrEmptyGroup    entryError = "the group is empty"
	ErrMemberInGroup entryError = "the member is in the group already"
	ErrNotInGroup    entryError = "the member is not in the group"
	ErrNotSupported  entryError = "the program does not ask for this"
)

// Handles gives out the lowest free handle.
type Handles struct {
	next Handle
	free handleHeap
}

// Take gives out the lowest free handle.
func (h *Handles) Take() Handle {
	if len(h.free) > 0 {
		return h.free.pop()
	}
	h.next++
	return h.next - 1
}

// InUse is the number of handles that are given out.
func (h *Handles) InUse() int { return int(h.next) - len(h.free) }

// Release takes a handle back.
func (h *Handles) Release(i Handle) { h.free.push(i) }

// A handleHeap has its smallest element first.
type handleHeap []Handle

func (h *handleHeap) push(x Handle) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0 && s[(i-1)/2] > s[i]; i = (i - 1) / 2 {
		s[(i-1)/2], s[i] = s[i], s[(i-1)/2]
	}
}

func (h *handleHeap) pop() Handle {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && s[c+1] < s[c] {
			c++
		}
		if s[i] <= s[c] {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	*h = s
	return top
}
