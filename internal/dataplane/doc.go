// Package dataplane is the embedded switch: it runs a BMv2 JSON program as
// simple_switch does, in the order in which simple_switch does things, without
// clock, randomness, sockets or threads of its own.
//
// New links a bmv2.Config: every name becomes an index, every expression,
// primitive and parse state a closure over a flat vector of words. A packet
// then goes through Receive, Ingress, a queue of the caller's, and Egress;
// Engine puts simple_switch's queues in between. In the steady state a packet
// costs no allocation. On Linux the program is compiled to machine code of amd64
// or arm64 as well, which does the same faster; the closures remain for what is
// rare, for other machines, and as the reference (Options.Closures).
//
// Programs for Tofino (TNA, T2NA), which package lower brings into the same
// terms, run as in a pipe of Tofino. What that means, and where it differs from
// the hardware, is said in tofino.go, docs/tofino.md has the list; only such
// programs have Switch.CellSize, Generate, SetPortMetadata, FilterSet and
// WredSet.
//
// The control plane uses the methods of Switch named after what they change:
// TableAdd, MemberAdd, GroupAdd, RegisterWrite, MeterSet, SetMirror, SetGroup
// and so on. Handles have the numbers that BMv2
// would give.
//
// What differs from simple_switch, all of it where simple_switch crashes or
// reads memory of earlier packets: fields that were never written are zero; a
// run-time index outside a stack reads zero and writes nothing; a false
// assertion drops the packet; parsers, controls and actions that go in circles
// end.
package dataplane
