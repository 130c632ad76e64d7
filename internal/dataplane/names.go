package dataplane

import (
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// The types of table entries, of trace events, and of the settings and values
// of counters, meters and filters. Other packages define them; these names are
// for the users of Switch.
type (
	MatchKind  = program.MatchKind
	Match      = program.Match
	Handle     = program.Handle
	ActionCall = program.ActionCall
	Target     = program.Target
	TargetKind = program.TargetKind
	Entry      = program.Entry
	EventKind  = program.EventKind
	Event      = program.Event
	Reading    = program.Reading
	Count      = cell.Count
	MeterRate  = cell.MeterRate
	FilterSpec = cell.FilterSpec
	WredSpec   = cell.WredSpec
)

// The kinds of match and of target, and the handle of default entries.
const (
	MatchExact    = program.MatchExact
	MatchLPM      = program.MatchLPM
	MatchTernary  = program.MatchTernary
	MatchRange    = program.MatchRange
	MatchOptional = program.MatchOptional
	MatchValid    = program.MatchValid
	TargetAction  = program.TargetAction
	TargetMember  = program.TargetMember
	TargetGroup   = program.TargetGroup
	DefaultEntry  = program.DefaultEntry
)

// The reasons why a change to a table or an action profile is refused.
const (
	ErrTableFull     = program.ErrTableFull
	ErrDuplicate     = program.ErrDuplicate
	ErrBadHandle     = program.ErrBadHandle
	ErrExpired       = program.ErrExpired
	ErrImmutable     = program.ErrImmutable
	ErrConstDefault  = program.ErrConstDefault
	ErrConstAction   = program.ErrConstAction
	ErrBadMatch      = program.ErrBadMatch
	ErrBadAction     = program.ErrBadAction
	ErrBadParams     = program.ErrBadParams
	ErrBadTarget     = program.ErrBadTarget
	ErrStillUsed     = program.ErrStillUsed
	ErrEmptyGroup    = program.ErrEmptyGroup
	ErrMemberInGroup = program.ErrMemberInGroup
	ErrNotInGroup    = program.ErrNotInGroup
	ErrNotSupported  = program.ErrNotSupported
)

// The kinds of events.
const (
	EventParseState    = program.EventParseState
	EventParserError   = program.EventParserError
	EventChecksumError = program.EventChecksumError
	EventTableHit      = program.EventTableHit
	EventTableMiss     = program.EventTableMiss
	EventAction        = program.EventAction
	EventClone         = program.EventClone
	EventEnqueue       = program.EventEnqueue
	EventDrop          = program.EventDrop
	EventRecirculate   = program.EventRecirculate
	EventResubmit      = program.EventResubmit
	EventDigest        = program.EventDigest
	EventTransmit      = program.EventTransmit
)

// ErrUnknownPrimitive is the error for a program that uses an extern of a modified
// BMv2. The error of New wraps it.
var ErrUnknownPrimitive = program.ErrUnknownPrimitive
