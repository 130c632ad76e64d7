// Package controller brings a scheme onto a network and keeps it there.
//
// NewPlan computes what every switch must hold: from the topology, and from the
// manifests of the generated programs, one for each role. A plan is names and
// numbers, and independent of what it is deployed to.
//
// Deploy carries it out on a Target, all switches at once:
//
//	connect   open a stream, become primary (conn.go, election.go)
//	read      the program's cookie, tables, sessions, groups, registers (live.go)
//	diff      against the plan (diff.go)
//	apply     the differences alone, in an order that leaves no packet without
//	          a way meanwhile (apply.go)
//	verify    read again: nothing may be left to do
//
// What a switch holds is never remembered, always read: so it makes no
// difference whether a switch has restarted, or the controller has. A
// Controller does the same whenever a switch comes back.
//
// While a plan is deployed there is more to do. Tasks makes what the manifests
// name: probes, thresholds, the search for failures (task*.go). A Schedule runs
// tasks when they are due, by any clock: Controller.Loop by that of the machine,
// simulations by their own.
//
// Whoever looks into switches needs no plan, only manifests. An Inspector reads
// the registers of one and says what they mean (inspect*.go), a Survey those of
// many; a Recorder keeps that, a Recording gives it back. An Observer samples
// ports for a fit (observe.go).
//
// What is known here about schemes is a vocabulary alone: the names of tables,
// parameters and groups that manifests are made of (vocabulary.go).
package controller
