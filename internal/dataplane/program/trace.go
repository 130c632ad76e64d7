package program

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// An EventKind is the kind of an Event.
type EventKind byte

// The kinds of events, with the meaning of Name and Value.
const (
	EventParseState    EventKind = iota // the parser enters state Name
	EventParserError                    // error Value in state Name
	EventChecksumError                  // checksum Name is wrong
	EventTableHit                       // table Name, entry Value
	EventTableMiss                      // table Name
	EventAction                         // action Name starts; Source is its position
	EventClone                          // to session Value
	EventEnqueue                        // to port Value, after Depth packets
	EventDrop                           // because of Name
	EventRecirculate                    // the packet returns to the parser
	EventResubmit                       // the packet returns to the parser as it was received
	EventDigest                         // of list Name
	EventTransmit                       // out of port Value
)

var eventNames = [...]string{
	"parse state", "parser error", "checksum error", "table hit", "table miss", "action",
	"clone", "enqueue", "drop", "recirculate", "resubmit", "digest", "transmit",
}

// String returns the name of the kind.
func (k EventKind) String() string { return eventNames[k] }

// An Event is one step of a packet.
type Event struct {
	Kind   EventKind
	Packet uint64 // Packet.ID
	Name   string
	Value  int64
	Depth  int
	Source *bmv2.SourceInfo

	state *vector.State
}

// A Reading is the value of a field at an event. Fields of invalid headers are
// omitted.
type Reading struct {
	Header, Field string
	Width         int
	Value         *big.Int
}
