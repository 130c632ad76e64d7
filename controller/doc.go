// Package controller brings a scheme onto a network and keeps it there.
//
// Deploy carries a plan (controller/plan) out on a target (controller/target),
// all switches at once:
//
//	connect   open a stream, become primary (controller/primary)
//	read      the program's cookie, tables, sessions, groups, registers (read.go)
//	diff      against the plan (diff.go)
//	apply     the differences alone, in an order that leaves no packet without
//	          a way meanwhile (apply.go)
//	verify    read again: nothing may be left to do
//
// What a switch holds is never remembered, always read: so it makes no
// difference whether a switch has restarted, or the controller has. A
// Controller does the same whenever a switch comes back.
//
// While a plan is deployed, Controller.Loop runs what the manifests ask for
// (controller/task) in real time. What is known here about schemes is the
// vocabulary of manifests alone.
package controller
