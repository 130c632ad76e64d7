// Package web serves a live web page of a fabric: the topology with the load of
// its links, ports, paths, registers by meaning, drops and events. The page is
// a single document without external resources. It receives frames as
// server-sent events.
//
// While no page is open, the server does not encode frames, and Watched and
// Await let the producer of frames pause.
package web
