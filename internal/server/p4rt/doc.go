// Package p4rt serves P4Runtime 1.5 for the embedded switch and runs that
// switch in real time.
//
// A Device is the switch: the engine of package dataplane with a clock, a
// random source and ports. A Server is the control plane of one device:
// arbitration between controllers (arbitration.go), the program (config.go),
// batches of writes (write.go), reads (read.go) and streams (stream.go).
//
// The server stores messages as controllers wrote them, in canonical form, so
// that a read returns them unchanged. The data plane has its own form. A
// pipeline is a program with everything written to it. There may be two
// pipelines: one that requests refer to, saved but not committed, and one that
// processes packets.
//
// # Locks
//
// There are four locks, always taken in this order: the arbiter's, the
// server's, the device's, the data plane's. The arbiter's lock may be held
// until a write has ended, so packet processing must not wait for it: packets,
// digests and idle timeouts are sent to controllers through outboxes.
//
// A read holds no lock while it sends its answer. It walks views of the tables
// (versions.go, answer.go) and reads counters in batches.
//
// # Limits
//
// Package gate limits the resources that clients can use. A controller that
// receives too slowly loses packets, digests and idle timeouts, but never its
// latest arbitration message. A read ends if the client stops receiving. A slow
// client delays neither other clients nor packets.
//
// # Choices
//
// The server makes these choices where the specification is open or contradicts
// itself:
//
//   - An invalid byte string is INVALID_ARGUMENT in a match, in an argument of an action
//     and in packet metadata, as the sections on these require, and OUT_OF_RANGE elsewhere.
//   - If a batch is all or nothing and fails, valid updates that were rolled back or not
//     attempted are ABORTED.
//   - A register can be written with INSERT as well as MODIFY, because an example of the
//     specification does so.
//   - A role's config is a P4Info with the objects that the role may access.
//   - RECONCILE_AND_COMMIT also keeps registers and counters that both programs have. State
//     of objects that the new program lacks is lost, but an entry that it cannot hold
//     rejects the config. Meters are reset. If the same program is running already, it
//     continues unchanged with the cookie of the new config.
//   - The counter of a default entry counts misses; its meter, once configured, marks them.
//     Reading the direct counters or meters of a whole table omits the default entry, like
//     reading the entries of a table does.
//   - P4Info does not describe whether an entry's action executes its direct counter or
//     meter. The JSON of p4lb compile does, if some actions of a table do and others do not
//     (counter_actions, meter_actions). It also marks the const entries of a preinitialized
//     table (is_const). With other JSON, all actions execute them and no entry is const.
//     BMv2 and this switch count for all actions.
//   - The size of a selector bounds the number of its members, and the total size of its
//     one-shot entries.
//   - A meter without configuration counts packets as green.
//   - packet_length_bytes truncates a clone where it is made: an ingress clone before
//     parsing, so egress sees no truncated header, and an egress clone after deparsing.
//     Headers added by egress do not count, unless the cut is within the headers of an
//     egress clone.
//   - class_of_service is the priority of the clone's queue, so there are as many classes as
//     priorities in the device. With 0 the program chooses; its clones have priority 0
//     unless it preserves another one.
//   - A Tofino program runs in one pipe. Its mirror sessions are clone sessions, a register
//     of a struct has P4Data of that struct, and the CPU port may be port 0.
//   - The target chooses the numbers for strings of a translated type: see translation.
//
// The server does not implement:
//
//   - Excess bursts: BMv2's meters have two independent buckets and cannot pass tokens from
//     one to the other.
//   - Backup replicas: copies are sent to their port whether it is up or not.
//   - Value sets with ranges.
//   - Strings for ports outside of tables, actions, packet metadata, digests and registers,
//     for example in replicas and watch ports: P4Info does not name the type of ports. The
//     server knows port names only if the program lists them; other ports are decimal
//     numbers.
//   - Random choice in selectors: BMv2's selectors use a hash.
//   - Externs: v1model has only externs with entities of their own, and P4Runtime has
//     no messages for Tofino's filters. Programs that embed the Device configure these
//     directly (direct.go).
package p4rt
