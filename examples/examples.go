// Package examples holds P4 programs to read, compile and run: each NAME.p4
// with the packets that it is tried on in NAME.stf.
package examples

import "embed"

// FS holds the programs and their packet tests.
//
//go:embed *.p4 *.stf own
var FS embed.FS
