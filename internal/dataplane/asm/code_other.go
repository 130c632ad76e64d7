//go:build !(linux && (amd64 || arm64)) || purego || closures

package asm

import (
	"errors"
	"unsafe"
)

// Supported reports whether this machine can run machine code.
const Supported = false

// Prefetch does nothing on this machine.
//
// Hostile input: none.
func Prefetch(unsafe.Pointer) {}

// Pause does nothing on this machine.
func Pause() {}

// Claim does nothing on this machine.
//
// Hostile input: none.
func Claim(unsafe.Pointer, int) {}

// Call panics on this machine.
//
// Hostile input: none.
func Call(uintptr, unsafe.Pointer, unsafe.Pointer, unsafe.Pointer) uint64 { panic(errUnsupported) }

// A Code is executable machine code.
type Code struct{}

var errUnsupported = errors.New("machine code needs linux/amd64 or linux/arm64")

// Load fails on this machine.
func Load([]byte) (*Code, error) { return nil, errUnsupported }

// Entry returns 0 on this machine.
func (*Code) Entry(int) uintptr { return 0 }
