// Package codegen contains the catalogue of load balancers and generates their P4_16
// programs.
//
// A scheme is a Row of four blocks, not a program:
//
//	granularity  the unit of traffic that a decision applies to
//	signal       the information about the paths
//	choice       the selection of a path
//	guard        an optional rule that overrules the choice
//
// A part contains code that several blocks share, such as the transfer of queue state
// from egress to ingress. A block is a file in package templates or in a user's
// folder. Its header lists its parts, parameters and valid combinations (block.go);
// its templates contribute to fixed places of one skeleton. A Catalogue contains
// blocks and rows that were read and checked (load.go, check.go). The program of a row
// is generated in four steps:
//
//	Row.validate    checks the combination
//	Row.values      checks the parameters
//	block.check     proves that fixed-point arithmetic does not overflow (proofs.go)
//	view.render     renders the templates, place by place (render.go)
//
// Templates receive one value, a view, with the row's parameters and with a value for
// each concern: .Load for utilisations, .Chip for Tofino's units, and so on (view.go).
// Templates also describe registers and tables. These descriptions become the
// Manifest, so that controllers and inspectors need not know any scheme.
package codegen
