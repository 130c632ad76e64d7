//go:build !(linux && (amd64 || arm64)) || purego || closures

package asm

import (
	"errors"
	"unsafe"
)

// Supported says whether code can be run here.
const Supported = false

// Prefetch does nothing here.
func Prefetch(unsafe.Pointer) {}

// Call is for machines where code can be run.
func Call(uintptr, unsafe.Pointer, unsafe.Pointer, unsafe.Pointer) uint64 { panic(errUnsupported) }

// A Code is code in memory that can be run.
type Code struct{}

var errUnsupported = errors.New("machine code can be run on linux/amd64 and linux/arm64 alone")

// Load fails.
func Load([]byte) (*Code, error) { return nil, errUnsupported }

// Entry is for machines where code can be run.
func (*Code) Entry(int) uintptr { return 0 }

// Size is for machines where code can be run.
func (*Code) Size() int { return 0 }
