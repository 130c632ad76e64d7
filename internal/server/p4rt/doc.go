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
// A read holds none of them while its answer is sent: it walks views of the
// tables as they were (versions.go, answer.go), and looks at counters some at a
// time.
//
// # Limits
//
// What clients can make the server hold is bounded (package gate). A controller
// that receives too slowly loses packets, digests and idle timeouts, never an
// arbitration message that still counts; a read whose answer nobody takes ends.
// Nobody who is slow delays anybody else, or a packet.
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
//     an entry that it cannot have refuses the config. Meters count anew. The
//     program that runs goes on as it is, with the cookie of the config.
//   - The counter of a default entry counts what misses, and its meter, once
//     it is configured, marks that. Reading the direct counters or meters of a
//     whole table leaves the default entry out, as reading its entries does.
//   - Whether an entry's action executes its direct counter or meter is in no
//     P4Info. The JSON of p4lb compile says it where some of a table's actions
//     do and others do not (counter_actions, meter_actions), and which entries of
//     a preinitialized table are const (is_const); with JSON from elsewhere all
//     actions do, and no entry is. BMv2 and this switch count for all actions.
//   - The size of a selector bounds its members, and the size of its one-shot
//     entries together.
//   - A meter without configuration counts what it is asked about as green.
//   - packet_length_bytes cuts a clone where it is made: one of the ingress
//     before it is parsed, so that egress finds no header that is cut, one of
//     the egress behind its headers first. What egress puts before it is not
//     counted, except where the cut is within the headers of an egress clone.
//   - class_of_service is the priority of the clone's queue, so there are as
//     many classes as the device has priorities; 0 leaves the choice to the
//     program, whose clones have priority 0 unless it keeps another one.
//   - A program for Tofino is one for a pipe: its mirror sessions are clone
//     sessions, a register of a struct has P4Data of that struct, and the CPU
//     port may be port 0.
//   - What number a string of a translated type has is up to the target: see
//     translation.
//
// Not implemented, and why:
//
//   - Excess bursts: BMv2's meters have two independent buckets; there is no
//     place for what one leaves to the other.
//   - Backup replicas: copies go to their port whether it is up or not.
//   - Value sets that are not matched exactly: the data plane compares whole
//     members under the mask of the select alone.
//   - Strings for ports outside of tables, actions, packet metadata, digests
//     and registers, as in replicas and watch ports: P4Info does not say which
//     type ports have. For the same reason the server cannot know the names of
//     ports elsewhere unless the program lists them: other than by these, ports
//     go by decimal numbers.
//   - Random choice in selectors: BMv2's choose by hash.
//   - Externs: v1model has none beyond those that have entities of their own,
//     and P4Runtime has no messages for Tofino's filters. Whoever has the Device
//     sets those (direct.go).
package p4rt
