// Package bmv2 represents the BMv2 JSON format (version 2.18 and later 2.x) as
// Go values. The format is the executable form of a P4 program: p4c and this
// module's compiler produce it, simple_switch and package dataplane load it.
//
// Load parses a document, Config.Write writes one in p4c's layout (key order,
// indentation), and Config.Validate checks that every name and id refers to
// something. Unknown keys are ignored.
//
// Programs for Tofino use the same format with additional keys: the
// architecture in __meta__, a parser and a deparser each for ingress and
// egress, filter_arrays, initial values of registers, polynomials of
// calculations, the pipeline of a ghost thread, and the blocks of different
// programs per pipe (Meta.Pipes). Package dataplane runs such documents,
// simple_switch does not.
package bmv2
