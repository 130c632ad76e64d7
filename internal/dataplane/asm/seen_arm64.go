//go:build linux && !purego && !closures

package asm

// seen makes the processor see code that has been written.
//
//go:noescape
func seen(from, to uintptr)
