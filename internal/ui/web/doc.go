// Package web serves a page that shows a fabric as it changes: the topology with
// what its links carry, ports, paths, registers by meaning, drops and events. It
// is one document without anything from elsewhere, and gets frames as
// server-sent events.
//
// Nothing is done for nobody: as long as no page is open, frames are not
// encoded, and whoever makes them may ask whether they are wanted at all.
package web
