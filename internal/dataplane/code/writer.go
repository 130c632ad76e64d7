// Package code compiles expressions, assignments, headers and accesses to cells
// to machine code over the vector. It is the fast alternative to the closures
// of package vector.
package code

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Writer writes the parts of programs as machine code: expressions,
// assignments, headers, checksums, accesses to cells. A method that returns
// false has written nothing.
//
// Hostile input: none. Refs holds addresses of arrays and tables, none of
// packets.
type Writer struct {
	*asm.Asm
	*vector.Linker

	Refs     []unsafe.Pointer // the addresses that the code uses
	refIndex map[unsafe.Pointer]int
	Known    []uint64 // arguments of the action being compiled, if they are constant
	InPlace  bool     // use the constants in Known
}

// New returns a Writer without code.
//
// Hostile input: none.
func New(l *vector.Linker) *Writer {
	return &Writer{Asm: asm.New(), Linker: l, refIndex: map[unsafe.Pointer]int{}}
}

// Registers with a fixed meaning. AX, CX and DX hold intermediate values.
const (
	words   = asm.BX
	refs    = asm.R12
	State   = asm.R13
	ArgData = asm.DI
)

// Pool lists the registers for values of expressions.
var Pool = [...]asm.Reg{asm.SI, asm.R8, asm.R9, asm.R10, asm.R11, asm.R15}

// Word returns a word of the vector.
func Word(off int) asm.Mem { return asm.At(words, 8*off) }

// The fields of a State that the code uses.
var (
	StateArgs    = asm.At(State, int(unsafe.Offsetof(vector.State{}.Args)))
	StateBuf     = asm.At(State, int(unsafe.Offsetof(vector.State{}.Buf)))
	StateHead    = asm.At(State, int(unsafe.Offsetof(vector.State{}.Head)))
	StateEnd     = asm.At(State, int(unsafe.Offsetof(vector.State{}.End)))
	stateLength  = asm.At(State, int(unsafe.Offsetof(vector.State{}.Length)))
	stateIngress = asm.At(State, int(unsafe.Offsetof(vector.State{}.IngressLength)))
	StateError   = asm.At(State, int(unsafe.Offsetof(vector.State{}.ParserError)))
	StateSumBad  = asm.At(State, int(unsafe.Offsetof(vector.State{}.ChecksumError)))
	StateExit    = asm.At(State, int(unsafe.Offsetof(vector.State{}.Exit)))
	StateNext    = asm.At(State, int(unsafe.Offsetof(vector.State{}.Next)))
	StateSteps   = asm.At(State, int(unsafe.Offsetof(vector.State{}.Steps)))
)

// ref loads the address of a block of size bytes into a register.
//
// Hostile input: none. Refs holds addresses of arrays and tables that the program
// keeps alive, with their sizes.
func (k *Writer) ref(dst asm.Reg, p unsafe.Pointer, size int) {
	i, ok := k.refIndex[p]
	if !ok {
		i = len(k.Refs)
		k.Refs = append(k.Refs, p)
		k.refIndex[p] = i
	}
	k.LoadAddress(dst, asm.At(refs, 8*i), size)
}

// Finish returns the code, or the first error of the verifier.
func (k *Writer) Finish() ([]byte, error) {
	var s vector.State
	m := asm.Memory{Vector: 8 * k.Layout.Words, Refs: 8 * len(k.Refs), State: int(unsafe.Sizeof(s))}
	for _, at := range []uintptr{unsafe.Offsetof(s.Args), unsafe.Offsetof(s.Buf), unsafe.Offsetof(s.Next)} {
		m.Addresses = append(m.Addresses, int(at))
	}
	for _, f := range [][2]uintptr{
		{unsafe.Offsetof(s.Head), unsafe.Sizeof(s.Head)},
		{unsafe.Offsetof(s.Length), unsafe.Sizeof(s.Length)},
		{unsafe.Offsetof(s.CloneOn), unsafe.Sizeof(s.CloneOn)},
		{unsafe.Offsetof(s.CloneSession), unsafe.Sizeof(s.CloneSession)},
		{unsafe.Offsetof(s.CloneList), unsafe.Sizeof(s.CloneList)},
		{unsafe.Offsetof(s.Resubmit), unsafe.Sizeof(s.Resubmit)},
		{unsafe.Offsetof(s.Recirculate), unsafe.Sizeof(s.Recirculate)},
		{unsafe.Offsetof(s.Digest), unsafe.Sizeof(s.Digest)},
		{unsafe.Offsetof(s.Steps), unsafe.Sizeof(s.Steps)},
		{unsafe.Offsetof(s.Exit), unsafe.Sizeof(s.Exit)},
		{unsafe.Offsetof(s.ParserError), unsafe.Sizeof(s.ParserError)},
		{unsafe.Offsetof(s.ChecksumError), unsafe.Sizeof(s.ChecksumError)},
	} {
		m.Writable = append(m.Writable, [2]int{int(f[0]), int(f[1])})
	}
	return k.Assemble(m)
}
