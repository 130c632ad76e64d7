//go:build (amd64 || arm64) && !purego && !closures

package asm

import (
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"golang.org/x/sys/unix"
)

// Supported says whether code can be run here.
const Supported = true

//go:noescape
func call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64

// Prefetch brings the 128 bytes at p into the cache, without waiting for them.
//
//go:noescape
func Prefetch(p unsafe.Pointer)

//go:noescape
func callPoisoned(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64

// Call runs code from an address on, with pointers in BX, R12 and R13.
func Call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64 {
	if Debug {
		return callPoisoned(entry, bx, r12, r13)
	}
	return call(entry, bx, r12, r13)
}

// A Code is code in memory that can be run. It stays there as long as the Code
// is reachable.
type Code struct {
	memory []byte
	key    string
}

// loaded has the codes by their bytes: switches with the same program share
// one.
var loaded struct {
	sync.Mutex
	codes map[string]weak.Pointer[Code]
}

// Load puts code into memory, or finds the same that is there already.
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

// unload takes a code that nothing refers to out of memory.
func unload(c Code) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.codes[c.key].Value() == nil {
		delete(loaded.codes, c.key)
	}
	unix.Munmap(c.memory)
}

// Entry is the address of an offset in the code.
func (c *Code) Entry(offset int) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(c.memory))) + uintptr(offset)
}

// Size is the number of bytes of the code.
func (c *Code) Size() int { return len(c.memory) }
