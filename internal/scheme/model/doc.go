// Package model holds every scheme of the catalogue a second time: the papers'
// pseudo-code in plain Go. It is the oracle that the generated programs are
// held against, packet for packet, and the native engine of the simulator.
//
// A Switch is told everything: the time, in µs of a clock that wraps at 48
// bits; the random numbers, by a function that the Config brings; the paths of
// each group, by SetGroup. Then it is driven by events:
//
//	Ingress   a packet arrives: which of its group's paths does it take?
//	Egress    a packet leaves a port's queue: is there something to report?
//	Learn     a report arrives where the decisions are made
//
// and by those of single signals and guards, which stand with them. As a scheme
// is a row of four blocks, so is a Switch:
//
//	granularity  for how long a choice holds     granularity.go, pdlb.go
//	signal       what is known about the paths   queue.go, qall.go, …
//	choice       which path is taken             choice.go, grid.go, qdaps.go, …
//	guard        what may overrule that          rlb.go
//
// Random numbers are drawn in the order in which the programs draw them, so
// that both sides can be fed from the same sequence. What the papers leave open
// or get wrong is resolved here as in the programs, and said where it is.
//
// With a Hardware among its Params a Switch is a Tofino: what the hardware
// forces to be different, and manifests declare, it does otherwise. hardware.go
// has the list. Such a Switch is the oracle of the programs for Tofino, which
// are lowered and run as those for BMv2 are.
package model
