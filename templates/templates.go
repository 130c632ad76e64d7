// Package templates holds the text of the generated programs: for each
// architecture a folder with one skeleton and one file per building block, and
// rows.yaml, the schemes that are composed of them.
//
// A file begins with a head between two lines ---, YAML that says what the block
// is to a row: docs/blocks.md is its reference, and package codegen reads it. What
// follows are templates. A block contributes to fixed places of the skeleton, by templates of the
// place's name:
//
//	manifest        YAML: what the block's registers, tables, headers, clone
//	                sessions, multicast groups, virtual ports and tasks mean;
//	                the registers are declared from it
//	constants       constants beside those of parameters
//	headers         header types; header.outer and header.inner are their places
//	                in headers_t, before and after Ethernet, emit.outer and
//	                emit.inner those in the deparser
//	metadata        members of metadata_t
//	parser.states   states, which parser.again (a packet that comes round),
//	                parser.select (an EtherType) and parser.l4 lead to
//	ingress.locals  actions and tables
//	ingress.start   statements for every packet
//	ingress.frames  an if for packets that are no traffic, up to its else
//	ingress.begin   statements for every packet that is, before it is routed
//	ingress.chosen  statements for every packet that has a path
//	ingress.end     statements for every packet, last
//	egress.locals, egress.tables, egress.frames, egress.apply
//	                the same for egress
//	strip           statements that take the block's headers off a copy
//
// Some parts have places of their own: report.fields, report.fill and
// report.learn are what a report says, how, and what comes of it; probe.learn
// what a probe teaches; again.reasons why a packet may recirculate.
//
// The skeleton for Tofino, in folder tna, has some places more: structs are cells
// of registers; controls come before that of ingress, which can be applied once
// for each path; ingress.routed is for packets that have a route, ingress.both
// for reports and probes as well; parser.source tells where a packet comes from,
// as egress.source does; egress has metadata, headers to parse and a deparser of
// its own. A deviation from the paper is part of a block's manifest.
//
// Beside the places, a granularity defines decide, a choice choose, a guard what
// part-reroute asks for, and a signal what its choice reads: cost, weight, or
// something of their own. Parts define pieces of text that others use. Lines and
// blank lines come out as they are, indentation does not matter.
package templates

import "embed"

// FS holds the rows, and in a folder for each architecture the blocks.
//
//go:embed rows.yaml v1model/*.tmpl tna/*.tmpl
var FS embed.FS
