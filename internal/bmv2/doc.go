// Package bmv2 holds the BMv2 JSON format (version 2.18 and later 2.x) as Go
// values: the executable form of a P4 program, produced by p4c and by this
// module's compiler, loaded by simple_switch and by package dataplane.
//
// Load reads a document, Config.Write writes one in the shape p4c gives it
// (key order, indentation), Config.Validate checks that every name and id
// refers to something. Keys that the format does not know are ignored.
//
// Programs for Tofino are lowered to the same format and a few keys more, which
// other documents do not have: the architecture in __meta__, a parser and a
// deparser for each of ingress and egress, filter_arrays, initial values of
// registers, polynomials of calculations, the pipeline of a ghost thread, the
// blocks of further pipes and which pipe has them (Meta.Pipes). Package dataplane
// runs such documents, simple_switch does not.
package bmv2
