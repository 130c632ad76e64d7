// Package lab runs experiments: schemes of the catalogue in a network in virtual
// time, under the same flows, and what came of it.
//
// A spec.Experiment is data. A Runner runs it:
//
//	for each row, case, load and seed
//	    programs.go   generate and compile a program for each role
//	    deploy.go     have the controller deploy them, over P4Runtime in memory
//	    run.go        let the flows run, with faults and tasks
//	    sample.go     take down what happens
//	    metric.go     say it in numbers
//	kept.go           keep every finished run in a folder of its own
//
// What the runs of a row say together is a Comparison, with confidence intervals
// over the seeds (compare.go, stat.go). It becomes a table, plots and a report.
// The experiments of the papers are files in papers, with the numbers that they
// print as targets (target.go).
//
// Nothing depends on the clock or on how many cores there are: a run is one
// goroutine, or with ties by place several that come to the same, and its random
// numbers come from its seed.
package lab
