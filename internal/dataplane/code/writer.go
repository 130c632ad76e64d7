// Package code writes expressions, assignments, headers and accesses to cells as
// machine code over the vector: what package vector links to closures, faster.
package code

import (
	"unsafe"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Writer writes what programs are made of as machine code: expressions,
// assignments, headers, checksums, accesses to cells. What its methods return
// false for they have written nothing for.
type Writer struct {
	*asm.Asm
	*vector.Linker

	Refs     []unsafe.Pointer // that the code takes addresses from
	refIndex map[unsafe.Pointer]int
	Known    []uint64 // the arguments of the action being compiled
	InPlace  bool     // they are known
}

// New begins a program.
func New(l *vector.Linker) *Writer {
	return &Writer{Asm: new(asm.Asm), Linker: l, refIndex: map[unsafe.Pointer]int{}}
}

// Registers with a fixed meaning. AX, CX and DX are for what lies between.
const (
	words   = asm.BX
	refs    = asm.R12
	State   = asm.R13
	ArgData = asm.DI
)

// Pool are the registers that expressions are computed in.
var Pool = [...]asm.Reg{asm.SI, asm.R8, asm.R9, asm.R10, asm.R11, asm.R15}

// Word is a word of the vector.
func Word(off int) asm.Mem { return asm.At(words, 8*off) }

// The fields of a Packet that the code uses.
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

// ref loads an address into a register.
func (k *Writer) ref(dst asm.Reg, p unsafe.Pointer) {
	i, ok := k.refIndex[p]
	if !ok {
		i = len(k.Refs)
		k.Refs = append(k.Refs, p)
		k.refIndex[p] = i
	}
	k.Load(dst, asm.At(refs, 8*i))
}
