// Package templates contains the text of the generated programs: a folder for each
// architecture with one skeleton and one file per building block, and rows.yaml, the
// schemes that are composed of the blocks.
//
// A file starts with a YAML head between two lines ---, which describes the block
// (docs/blocks.md is the reference; package codegen reads it). Templates follow. A
// block adds text to fixed places of the skeleton, by templates named after them:
//
//	manifest        YAML: meanings of the block's registers, tables, headers,
//	                clone sessions, multicast groups, virtual ports and tasks;
//	                codegen declares the registers from it
//	constants       constants other than the parameters
//	headers         header types; header.outer and header.inner are their members
//	                of headers_t before and after Ethernet, emit.outer and
//	                emit.inner the statements of the deparser
//	metadata        members of metadata_t
//	parser.states   states; parser.again (a recirculated packet), parser.select
//	                (an EtherType) and parser.l4 lead to them
//	ingress.locals  actions and tables
//	ingress.start   statements for every packet
//	ingress.frames  an if for frames other than traffic, up to its else
//	ingress.begin   statements for traffic, before it is routed
//	ingress.chosen  statements for packets that have a path
//	ingress.end     last statements for every packet
//	egress.locals, egress.tables, egress.frames, egress.apply
//	                the same for egress
//	strip           statements that remove the block's headers from a copy
//
// Some parts have places of their own. report.fields, report.fill and report.learn
// define a report's fields, how egress sets them, and how ingress uses them.
// probe.learn uses a probe. again.reasons lists why a packet recirculates.
//
// The skeleton for Tofino (folder tna) has more places. structs are cells of
// registers. controls come before ingress, which can apply one for each path.
// ingress.routed is for packets with a route, ingress.both also for reports and
// probes. parser.source and egress.source set where a packet comes from. Egress has
// its own metadata, parser and deparser. Manifests list deviations from the paper.
//
// In addition, a granularity defines decide, a choice defines choose, a guard the
// templates that part-reroute uses, and a signal the templates that its choice reads: cost,
// weight or others. Parts define text that other blocks use. The program keeps lines
// and blank lines; codegen sets the indentation.
package templates

import "embed"

// FS holds the rows, and in a folder for each architecture the blocks.
//
//go:embed rows.yaml v1model/*.tmpl tna/*.tmpl
var FS embed.FS
