//go:build linux && !purego && !closures

#include "textflag.h"

// func Call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64
//
// The frame is there for the return address of the code. With Debug, the other
// registers hold a number that is invalid as an address. A load from it is a Go
// panic that tests report.
TEXT ·Call(SB), NOSPLIT, $8-40
	MOVQ entry+0(FP), AX
	MOVQ bx+8(FP), BX
	MOVQ r12+16(FP), R12
	MOVQ r13+24(FP), R13
	CMPB ·Debug(SB), $0
	JNE  poison
enter:
	CALL AX
	MOVQ AX, ret+32(FP)
	RET
poison:
	MOVQ $0xbad, CX
	MOVQ CX, DX
	MOVQ CX, SI
	MOVQ CX, DI
	MOVQ CX, R8
	MOVQ CX, R9
	MOVQ CX, R10
	MOVQ CX, R11
	MOVQ CX, R15
	JMP  enter

// func Prefetch(p unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET

// func Pause()
TEXT ·Pause(SB), NOSPLIT, $0-0
	PAUSE
	RET

// func Claim(p unsafe.Pointer, lines int)
TEXT ·Claim(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ lines+8(FP), CX
claim:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX)
	ADDQ $64, AX
	DECQ CX
	JGT  claim
	RET
