// Package manifest is the contract between a P4 program and whoever uses it: it
// says what the program's registers hold, what its tables are for, and what it
// wants done while it runs, so that a controller deploys, inspects and measures
// a program that it has never seen.
//
// A [Manifest] is data. Each thing that a reader has to know is an enumeration
// or a number; sentences (the fields called Meaning) are for people alone, and
// no reader looks into them. Each enumeration has a table with a line about each
// of its words, from which the JSON Schema and the messages about unknown words
// are made.
//
// [Decode] reads a manifest strictly, from JSON or YAML: an unknown key, word or
// version is an error with its file, line and place. [Check] holds a manifest
// against the P4Info of its program. The package knows neither networks nor
// switches, and imports nothing of p4lb.
package manifest
