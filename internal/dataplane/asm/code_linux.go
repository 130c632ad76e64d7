//go:build (amd64 || arm64) && !purego && !closures

package asm

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"golang.org/x/sys/unix"
)

// Supported reports whether this machine can run machine code.
const Supported = true

// Prefetch brings the 128 bytes at p into the cache, without waiting for them.
//
// Hostile input: none. The instruction reads nothing that the program sees, and
// ignores invalid addresses.
//
//go:noescape
func Prefetch(p unsafe.Pointer)

// Pause is the processor's hint for spin loops.
//
// Hostile input: none.
func Pause()

// Claim prefetches a number of 64-byte lines at p for writing, without waiting for them. The core
// then owns lines that another core has written last.
//
// Hostile input: none, as for Prefetch.
//
//go:noescape
func Claim(p unsafe.Pointer, lines int)

// Call runs code from an address on, with pointers in BX, R12 and R13. With Debug, it
// sets all other registers to 0xbad.
//
// Hostile input: none. The verifier has checked the code for memory of the sizes
// that the caller of Assemble gave, and the caller of Call must pass pointers to
// such memory.
//
//go:noescape
func Call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64

// A Code is executable machine code in memory. The memory is freed when the
// Code becomes unreachable.
type Code struct {
	memory []byte
	key    string
}

// loaded maps code to its Code, so that switches with the same program share it.
var loaded struct {
	sync.Mutex
	codes map[string]weak.Pointer[Code]
}

// Load makes code executable, or returns the Code of the same bytes.
//
// Hostile input: none. The verifier has accepted the bytes. No page
// is ever both writable and executable.
func Load(code []byte) (*Code, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if c := loaded.codes[string(code)].Value(); c != nil {
		return c, nil
	}
	memory, err := unix.Mmap(-1, 0, len(code), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	copy(memory, code)
	if err := unix.Mprotect(memory, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		unix.Munmap(memory)
		return nil, err
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	seen(from, from+uintptr(len(memory)))
	c := &Code{memory: memory, key: string(code)}
	if loaded.codes == nil {
		loaded.codes = map[string]weak.Pointer[Code]{}
	}
	loaded.codes[c.key] = weak.Make(c)
	runtime.AddCleanup(c, unload, Code{memory, c.key})
	return c, nil
}

// unload frees the memory of an unreachable Code.
func unload(c Code) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.codes[c.key].Value() == nil {
		delete(loaded.codes, c.key)
	}
	unix.Munmap(c.memory)
}

// Entry returns the address of an offset in the code.
//
// Hostile input: none. Every offset is the place of a label.
func (c *Code) Entry(offset int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(c.memory))) + uintptr(offset)
}
