// Package primary keeps a P4Runtime stream to a switch open and this controller
// primary on it. It reconnects when the stream ends, and resolves conflicts between
// controllers with election ids.
package primary
