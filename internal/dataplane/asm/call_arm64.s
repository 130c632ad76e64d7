//go:build linux && !purego && !closures

#include "textflag.h"

// func Call(entry uintptr, bx, r12, r13 unsafe.Pointer) uint64
//
// With Debug, the other registers hold a number that is invalid as an address. A
// load from it is a Go panic that tests report.
TEXT ·Call(SB), NOSPLIT, $16-40
	MOVD  entry+0(FP), R16
	MOVD  bx+8(FP), R3
	MOVD  r12+16(FP), R12
	MOVD  r13+24(FP), R13
	MOVBU ·Debug(SB), R0
	CBNZ  R0, poison
enter:
	CALL (R16)
	MOVD R0, ret+32(FP)
	RET
poison:
	MOVD $0xbad, R0
	MOVD R0, R1
	MOVD R0, R2
	MOVD R0, R4
	MOVD R0, R6
	MOVD R0, R7
	MOVD R0, R8
	MOVD R0, R9
	MOVD R0, R10
	MOVD R0, R11
	MOVD R0, R15
	MOVD R0, R17
	JMP  enter

// func Prefetch(p unsafe.Pointer)
TEXT ·Prefetch(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	PRFM 64(R0), PLDL1KEEP
	RET

// func Pause()
TEXT ·Pause(SB), NOSPLIT, $0-0
	YIELD
	RET

// func Claim(p unsafe.Pointer, lines int)
TEXT ·Claim(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD lines+8(FP), R1
claim:
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0
	SUBS $1, R1, R1
	BGT  claim
	RET

// func seen(from, to uintptr)
//
// Lines of a cache have at least 16 bytes.
TEXT ·seen(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD to+8(FP), R1
	MOVD R0, R2
clean:
	DC   CVAU, R2
	ADD  $16, R2
	CMP  R1, R2
	BLO  clean
	DSB  $11
forget:
	WORD $0xd50b7520 // IC IVAU, R0
	ADD  $16, R0
	CMP  R1, R0
	BLO  forget
	DSB  $11
	ISB  $15
	RET
