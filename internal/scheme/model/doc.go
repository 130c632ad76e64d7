// Package model contains every scheme of the catalogue as the papers' pseudo-code in
// plain Go. It is the reference for the generated programs, packet by packet, and the
// native engine of the simulator.
//
// The caller provides everything: the time, in µs of a clock that wraps at 48 bits;
// random numbers, with a function in the Config; and the paths of each group, with
// SetGroup. Events drive a Switch:
//
//	Ingress   a packet arrives and needs a path of its group
//	Egress    a packet leaves the queue of a port; it may cause a report
//	Learn     a report arrives where decisions are made
//
// Some signals and guards have further events. A Switch has four blocks, like a row:
//
//	granularity  how long a choice holds         granularity.go, pdlb.go
//	signal       the information about paths     queue.go, qall.go, …
//	choice       the selection of a path         choice.go, grid.go, qdaps.go, …
//	guard        overrules the choice            rlb.go
//
// Random numbers are drawn in the same order as in the programs, so that both can use
// the same sequence. Gaps and errors of the papers are resolved as in the programs,
// with a comment.
//
// With a Hardware among its Params a Switch behaves like a Tofino: it implements the
// deviations that manifests declare, listed in hardware.go. It is then the reference
// for the Tofino programs.
package model
