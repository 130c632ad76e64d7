//go:build linux && !purego && !closures

#include "textflag.h"

// func call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64
//
// The frame is there for the return address of the code.
TEXT ·call(SB), NOSPLIT, $8-40
	MOVQ entry+0(FP), AX
	MOVQ bx+8(FP), BX
	MOVQ r12+16(FP), R12
	MOVQ r13+24(FP), R13
	CALL AX
	MOVQ AX, ret+32(FP)
	RET

// func Prefetch(p unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET
