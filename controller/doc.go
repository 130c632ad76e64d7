// Package controller deploys a scheme to a network and keeps it deployed.
//
// Deploy applies a plan to a target, on all switches in parallel:
//
//	connect   opens a stream and becomes primary
//	read      reads cookie, tables, sessions, groups and registers (read.go)
//	diff      compares them with the plan (diff.go)
//	apply     writes the differences in an order that never leaves packets
//	          without a path (apply.go)
//	verify    reads again: no difference may be left
//
// The controller always reads the state of a switch instead of remembering it, so
// restarts of the switch or of the controller do not matter. A Controller repeats the
// deployment whenever a switch returns.
//
// Controller.Loop runs the tasks of the manifests in real time while a plan is
// deployed. The package knows schemes only through manifests.
package controller
