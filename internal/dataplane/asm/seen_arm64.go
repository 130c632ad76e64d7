//go:build linux && !purego && !closures

package asm

// seen makes new code visible to the processor.
//
//go:noescape
func seen(from, to uintptr)
