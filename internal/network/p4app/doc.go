// Package p4app reads the projects of p4-utils (p4app.json) and of the P4
// tutorials (topology.json): which program each switch runs, what its tables
// hold, and what hosts do to begin with. What tables hold is written there in
// one of two ways, as commands of simple_switch_CLI or as JSON; both become
// updates of P4Runtime here, and settings of what P4Runtime does not have.
//
// The names in such files are looked up in the program's P4Info before anything
// is written, so that a mistake in the last line leaves no half of the others.
package p4app
