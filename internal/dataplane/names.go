package dataplane

import (
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// What entries of tables are written in, what a trace tells, and what counters,
// meters and filters are set to and hold. The types belong to the packages
// that work with them, and are named here for the users of Switch.
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

// The reasons for which a change of a table or an action profile is refused.
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

// ErrUnknownPrimitive is in the error of New for a program that calls what only
// a BMv2 with externs of its own has.
var ErrUnknownPrimitive = program.ErrUnknownPrimitive
