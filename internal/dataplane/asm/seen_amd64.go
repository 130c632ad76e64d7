//go:build linux && !purego && !closures

package asm

// seen makes new code visible to the processor. On amd64 it always is.
func seen(from, to uintptr) {}
