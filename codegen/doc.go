// Package codegen is the catalogue of load balancers, and the generator of their
// P4_16 programs.
//
// A scheme is a Row, not a program: it answers four questions, each by a block.
//
//	granularity  how much traffic is decided about at once?
//	signal       what is known about the paths?
//	choice       how is one of them taken?
//	guard        what may overrule that?
//
// What several blocks need is a part, such as the way of queue state from egress
// to ingress. A block is a file in package templates, or in a folder of the user's:
// its head says what it is built on, what can be set of it, and what it can be
// combined with (block.go), its templates contribute to fixed places of one
// skeleton. A Catalogue is blocks and rows that were read and checked (load.go,
// check.go). The program of a row is put together in four steps:
//
//	Row.validate    does the combination have a meaning?
//	Row.values      are the parameters within their bounds?
//	block.check     does every intermediate of the fixed point fit? (proofs.go)
//	view.render     the blocks' templates, place by place (render.go)
//
// The templates get one value, a view, whose methods name things and compute
// numbers. They also say what the registers and tables mean; that becomes the
// Manifest, so that controllers and inspectors need not know any scheme.
package codegen
