//go:build linux && !purego

package x86

// seen makes the processor see code that has been written.
//
//go:noescape
func seen(from, to uintptr)
