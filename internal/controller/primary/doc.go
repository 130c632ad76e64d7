// Package primary keeps a stream of P4Runtime to a switch open, and this
// controller the switch's primary: it connects again when the stream ends, and
// settles by election ids who writes where there are several controllers.
package primary
