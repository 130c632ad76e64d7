// Package manifest is the contract between a P4 program and its users. A manifest
// describes the registers, tables and tasks of a program, so that a controller can
// deploy, inspect and measure programs that it does not know.
//
// A [Manifest] is data. Every fact is an enumeration or a number. Sentences (the
// fields called Meaning) are for people only, and no program interprets them. Each
// enumeration has a table with a line about each word; the JSON Schema and messages
// about unknown words come from these tables.
//
// [Decode] reads a manifest from JSON or YAML. An unknown key, word or version is an
// error with file, line and position. [Check] compares a manifest with the P4Info of
// its program. The package does not depend on networks or switches.
package manifest
