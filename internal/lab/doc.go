// Package lab runs experiments: it compares schemes in a network in virtual time,
// under the same flows.
//
// A spec.Experiment is data. A Runner runs it:
//
//	for each row, case, load and seed
//	    programs.go   generates and compiles a program for each role
//	    deploy.go     deploys them with the controller, over P4Runtime in memory
//	    run.go        runs the flows, with faults and tasks
//	    sample.go     records events
//	    metric.go     computes the metrics
//	kept.go           stores every finished run in its own folder
//
// A Comparison combines the runs of all rows, with confidence intervals over the seeds
// (compare.go, stat.go). It is written as a table, figures and a report. The folder
// papers contains the experiments of the papers, with their printed numbers as targets
// (target.go).
//
// Results do not depend on the clock or on the number of cores. A run is one
// goroutine, or several with the same results (ties: place), and its random numbers
// come from its seed.
package lab
