// Package templates holds the text of the generated programs: for each
// architecture a folder with one skeleton and one file per building block.
//
// A block contributes to fixed places of the skeleton, by templates of the
// place's name:
//
//	registers         YAML: what the block remembers, and what it means
//	needs             YAML: what the block asks of whoever runs the switch
//	constants         declarations
//	headers, header   header types, and their members of headers_t
//	metadata          members of metadata_t
//	parser.select     cases of the select on the EtherType
//	parser.states     states of the parser
//	functions         functions beside the controls
//	ingress.locals    actions and tables of the ingress
//	ingress.frames    an if for packets that are no traffic, up to its else
//	ingress.begin     statements for every packet from a port, first
//	ingress.end       statements for every routed packet, last
//	egress.locals, egress.frames, egress.apply   likewise
//	deparser          emits
//
// Beside the places, a granularity defines decide, a choice choose, a guard
// keep, and a signal whatever its choice reads. Indentation does not matter:
// the text is laid out afterwards.
package templates

import (
	"embed"
	"io/fs"
)

//go:embed v1model/*.tmpl
var files embed.FS

// For returns the templates of an architecture.
func For(architecture string) (fs.FS, error) { return fs.Sub(files, architecture) }
