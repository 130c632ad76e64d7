// Package dataplane is the embedded switch. It runs a BMv2 JSON program like
// simple_switch, in the same order of steps. It has no clock, randomness,
// sockets or threads of its own.
//
// New links a bmv2.Config: every name becomes an index, and every expression,
// primitive and parse state becomes a closure over a flat vector of words. A
// packet goes through Receive, Ingress, a queue of the caller and Egress;
// Engine adds simple_switch's queues. Processing a packet does not allocate
// once the buffers have grown. On Linux the program also becomes machine code
// for amd64 or arm64, which is faster. The closures run rare operations, serve
// as the reference (Options.Closures), and run on other machines.
//
// Programs for Tofino (TNA, T2NA) run as in a pipe of Tofino; package lower
// translates them to the same format. tofino.go and docs/tofino.md list the
// differences from the hardware. Filters, Switch.CellSize, Generate and
// SetPortMetadata serve these programs only.
//
// The control plane uses one type for each kind of object: Tables, Profiles,
// Registers, Counters, Meters, Replication, Mirrors, Hashes and ValueSets. Handles
// have the same numbers as in BMv2.
//
// The switch differs from simple_switch only where simple_switch crashes or
// reads memory of earlier packets. Fields are zero until the program writes
// them. A run-time index outside a stack reads zero and writes nothing. A false
// assertion drops the packet. Endless loops in parsers, controls and actions
// end.
package dataplane
