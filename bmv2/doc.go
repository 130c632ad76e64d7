// Package bmv2 holds the BMv2 JSON format (version 2.18 and later 2.x) as Go
// values: the executable form of a P4 program, produced by p4c and by this
// module's compiler, loaded by simple_switch and by package dataplane.
//
// Load reads a document, Config.Write writes one in the shape p4c gives it
// (key order, indentation), Config.Validate checks that every name and id
// refers to something. Keys that the format does not know are ignored.
package bmv2
