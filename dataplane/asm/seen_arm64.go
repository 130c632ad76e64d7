//go:build linux && !purego

package asm

// seen makes the processor see code that has been written.
//
//go:noescape
func seen(from, to uintptr)
