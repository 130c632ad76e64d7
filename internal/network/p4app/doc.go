// Package p4app reads projects of p4-utils (p4app.json) and of the P4 tutorials
// (topology.json): the program of each switch, its table entries, and the
// commands of the hosts. Table entries are commands of simple_switch_CLI or
// JSON; both become P4Runtime updates, and settings for features that P4Runtime
// lacks.
//
// Names are resolved with the program's P4Info before anything is written, so
// an error in the last line does not leave the other lines half written.
package p4app
