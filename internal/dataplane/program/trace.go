package program

import "github.com/p4lb/p4lb/internal/bmv2"

// An EventKind is what an Event reports.
type EventKind byte

// The kinds of events, with the meaning of Name and Value.
const (
	EventParseState    EventKind = iota // the parser enters state Name
	EventParserError                    // error Value in state Name
	EventChecksumError                  // checksum Name is wrong
	EventTableHit                       // table Name, entry Value
	EventTableMiss                      // table Name
	EventAction                         // action Name begins, at Source
	EventClone                          // to session Value
	EventEnqueue                        // to port Value, behind Depth packets
	EventDrop                           // because of Name
	EventRecirculate                    // the packet goes back to the parser
	EventResubmit                       // the packet goes back to the parser as it came
	EventDigest                         // of list Name
	EventTransmit                       // out of port Value
)

var eventNames = [...]string{
	"parse state", "parser error", "checksum error", "table hit", "table miss", "action",
	"clone", "enqueue", "drop", "recirculate", "resubmit", "digest", "transmit",
}

// String names the kind.
func (k EventKind) String() string { return eventNames[k] }

// An Event is one thing that happened to a packet.
type Event struct {
	Kind   EventKind
	Packet uint64 // Packet.ID
	Name   string
	Value  int64
	Depth  int
	Source *bmv2.SourceInfo
}
