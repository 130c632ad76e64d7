package program

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A MatchKind is the kind of match of a key field.
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

// String returns the kind's name in BMv2 JSON.
func (k MatchKind) String() string { return matchNames[k] }

// parseMatchKind parses the kind's name in BMv2 JSON.
func parseMatchKind(s string) (MatchKind, error) {
	for k, name := range matchNames {
		if name == s {
			return MatchKind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown match kind %q", s)
}

// A Match is the condition of an entry on one key field. Numbers are
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

// A Handle identifies an entry of a table, or a member or group of an action
// profile. As in BMv2, the lowest free handle is used first. An entry's handle
// has a version in its upper eight bits, so that an old handle does not refer
// to a new entry.
type Handle uint32

// slotBits is the number of low bits of an entry's handle that hold its slot.
const slotBits = 24

// Slot returns the place of an entry in its table.
func (h Handle) Slot() int { return int(h & (1<<slotBits - 1)) }

func handleOf(slot int, version uint8) Handle { return Handle(version)<<slotBits | Handle(slot) }

// DefaultEntry is the handle of a table's default entry for counters and direct
// meters. It counts and meters the packets that miss.
const DefaultEntry Handle = 1<<32 - 1

// An ActionCall is an action with its arguments, big-endian.
type ActionCall struct {
	Name   string
	Params [][]byte
}

// A Target is the result of an entry: an action call, or a member or a group of
// the table's action profile.
type Target struct {
	Kind   TargetKind
	Action ActionCall
	Index  Handle // the member or group
}

// A TargetKind selects the field of a Target that is used.
type TargetKind byte

// The kinds of target.
const (
	TargetAction TargetKind = iota
	TargetMember
	TargetGroup
)

// An Entry is a table entry. In ternary and range tables the entry with the
// smallest Priority wins, as in BMv2; in P4Runtime the largest wins. Entries
// may share their bytes, which never change.
type Entry struct {
	Handle   Handle
	Match    []Match
	Priority int
	Target   Target
	// IdleTimeout is the time without a hit after which the entry is idle,
	// measured from the last packet of the switch; 0 means never.
	IdleTimeout time.Duration
	// Const marks an entry that the program declares const in a table with
	// other entries.
	Const bool
}

// An entryError is the reason why a change was refused.
type entryError string

// Error returns the reason.
func (e entryError) Error() string { return string(e) }

// The reasons why a change to a table or an action profile is refused.
const (
	ErrTableFull     entryError = "the table is full"
	ErrDuplicate     entryError = "an entry with the same key is there already"
	ErrBadHandle     entryError = "no such handle"
	ErrExpired       entryError = "the entry with this handle was deleted"
	ErrImmutable     entryError = "the entries are fixed by the program"
	ErrConstDefault  entryError = "the default action is fixed by the program"
	ErrConstAction   entryError = "the program fixes the default action; only its arguments can change"
	ErrBadMatch      entryError = "the match does not fit the table's key"
	ErrBadAction     entryError = "the action is not one of the table's"
	ErrBadParams     entryError = "the arguments do not fit the action"
	ErrBadTarget     entryError = "the table takes another form of action: with an action profile a member or a group, without one an action"
	ErrStillUsed     entryError = "the member or group is still in use"
	ErrEmptyGroup    entryError = "the group is empty"
	ErrMemberInGroup entryError = "the member is in the group already"
	ErrNotInGroup    entryError = "the member is not in the group"
	ErrNotSupported  entryError = "the program does not use this feature"
)

// Handles allocates handles, the lowest free one first.
type Handles struct {
	next Handle
	free handleHeap
}

// Take returns the lowest free handle.
func (h *Handles) Take() Handle {
	if len(h.free) > 0 {
		return h.free.pop()
	}
	h.next++
	return h.next - 1
}

// Claim takes a given handle. It returns false if the handle is not free.
func (h *Handles) Claim(want Handle) bool {
	for h.next < want {
		h.free.push(h.next)
		h.next++
	}
	if h.next == want {
		h.next++
		return true
	}
	i := slices.Index(h.free, want)
	if i >= 0 {
		h.free = slices.Delete(h.free, i, i+1)
		slices.Sort(h.free) // a sorted list is a heap
	}
	return i >= 0
}

// InUse returns the number of allocated handles.
func (h *Handles) InUse() int { return int(h.next) - len(h.free) }

// Clone returns a copy.
func (h *Handles) Clone() Handles { return Handles{h.next, slices.Clone(h.free)} }

// Release frees a handle.
func (h *Handles) Release(i Handle) { h.free.push(i) }

// A handleHeap is a heap with the smallest handle first.
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
