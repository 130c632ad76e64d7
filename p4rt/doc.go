// Package p4rt serves P4Runtime 1.5 over the embedded switch, and runs that
// switch in real time.
//
// A Device is the switch: package dataplane's engine with a clock, a random
// source and ports. A Server is the control plane of one device: arbitration
// between controllers (arbitration.go), the program (config.go), batches of
// writes (write.go), reads (read.go) and streams (stream.go).
//
// What controllers write is kept as they wrote it, in canonical form, so that
// reading gives back what was written; the data plane has its own form of it.
// A pipeline is a program with all that was written to it. There may be two:
// one that requests refer to, saved but not committed, and one that packets go
// through.
//
// # Locks
//
// Arbitration has a lock, the control plane's state another, packets a third,
// and the data plane its own; who needs several takes them in this order. The
// first may be held until a write has ended, so nothing that packets cause may
// wait for it: packets, digests and idle timeouts reach the controllers through
// outboxes, without it.
//
// # Choices
//
// Where the specification leaves something open, or its sections disagree:
//
//   - An unsound byte string is INVALID_ARGUMENT in a match, in an argument of
//     an action and in packet metadata, as the sections on these say, and
//     OUT_OF_RANGE elsewhere.
//   - In a batch that is all or nothing, sound updates that are taken back or
//     not attempted are ABORTED.
//   - A register may be written with INSERT as well as MODIFY, since an example
//     of the specification does so.
//   - A role's config is a P4Info with the objects that the role may touch.
//   - RECONCILE_AND_COMMIT keeps registers and counters as well where both
//     programs have the same; what the new program lacks of them is lost, while
//     an entry that it cannot have refuses the config.
//
// UNIMPLEMENTED are: meter counters by colour, excess bursts, counters and
// meters of default entries, backup replicas, truncation and class of service
// of clone sessions, value sets that are not matched exactly, types translated
// to strings, externs.
package p4rt
